"""Verdicts from measured sums: is a candidate better, no worse, or worse than the side that it is compared with?

Pure: sums and settings in, a verdict out. No I/O, no clock; whoever calls passes the time. `rates` and `means` have the
intervals, which hold at every look; `strata` compares only what ran at the same time; `ratio` notices that requests
were not divided as asked; `metrics` reads each metric from the sums; `verdict` puts them together, and `text` prints
the result.

Not here: where numbers come from (the gateway, or a source of the user's), and what follows from a verdict.
"""
