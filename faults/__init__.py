"""Faults of one machine, played on a real `pilotage up` with real model servers: see `__main__`."""
