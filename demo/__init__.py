"""What ``make demo`` runs: the whole system on one machine. `buoys` is a whole controller in a hundred lines."""
