"""How long a teardown takes, and what it asks of the API server: `python -m bench.teardown`.

Endpoints (`bundles`) are made ready on kwok, and taken down by each of the `contestants` in turn: Pilotage, kubectl,
kapp, Helm, and the floor, which is as fast as it goes without any order. `look` measures `tree` and `why` beside bare
lists and kube-lineage. Everybody has a user of their own, so that the audit log says who asked what.
"""
