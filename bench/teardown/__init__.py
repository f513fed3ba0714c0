"""Duration of a teardown, and its requests to the API server: `python -m bench.teardown`.

Endpoints (`bundles`) are made ready on kwok, and taken down by each of the `contestants` in turn: Pilotage, kubectl,
kapp, Helm, and the floor, which is the fastest deletion without any order. `look` measures `tree` and `why` beside bare
lists and kube-lineage. Each contestant has a user of its own, so that the audit log tells their requests apart.
"""
