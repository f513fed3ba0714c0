"""From the arguments of a request to a ledger: which objects a teardown covers, in which phase and order they go.

Pure: nothing here talks to a server.
"""
