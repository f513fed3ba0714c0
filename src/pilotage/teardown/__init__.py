"""The heart: what a teardown would take, in which order, what stands in its way, and the proof that it is done.

`world` is what was observed (`gather` reads a cluster, `dump` reads files). `relations` says who points at whom. `plan`
makes a ledger from both, `decide` says what may be done now, `executor` does it, `receipt` proves it. `why` explains
what is stuck, `leaks` what was left behind. The deciding parts do no I/O and have no clock: they are given both.
"""
