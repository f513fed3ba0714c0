"""The controller of `Teardown`: the operator's front end of `teardown.engine`.

`ledger` makes the engine's ledger from a Teardown, `observer` observes with the operator's caches, and `controller`
advances the executor, keeps the record and writes the receipt into it.
"""
