"""Pilotage beside the others, measured in one run on one real API server: `make bench`, or `python -m bench --help`.

- One module per benchmark: `watch`, `lists`, `patch`, `lifecycle`, `startup`. Each returns a `Section`.
- What is measured is always a fresh process: of one client (`peers`), which measures itself with a `meter`, or of one
  operator (`operators`), which `driver` keeps busy and `lives` measures from outside. `processes` starts them.
- `stock` makes the objects on the API server; `figures` holds and prints what came out.

Another client's library is imported only in the process that measures it.
"""
