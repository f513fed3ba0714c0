"""Served kinds: a `Kind` is one resource in one version, and its `RestStrategy` is what is particular to it.

`registry` knows all of them, `table` prints them, `scaling` is their scale subresource. Which kinds there are is said
above: by `builtin`, and by CustomResourceDefinitions (`housekeeping.custom_kinds`).
"""

from pilotage_harbor.kinds.kind import ALL_VERBS, Json, Kind, RestStrategy, TableColumn, View

__all__ = ["ALL_VERBS", "Json", "Kind", "RestStrategy", "TableColumn", "View"]
