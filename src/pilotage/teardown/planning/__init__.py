"""Planning: the way from the arguments of a request to a ledger with members, phases and order.

Pure: nothing here talks to a server.
"""
