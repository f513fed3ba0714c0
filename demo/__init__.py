"""Demo of ``make demo``: the whole system on one machine. `buoys` is a whole controller in a hundred lines."""
