"""What ``make demo`` runs: a small controller of ours against a real API server."""
