"""The execution of a ledger: observe, decide, act, prove, and the receipt.

`decide` and `decision` are pure; the modules around them do the I/O.
"""
