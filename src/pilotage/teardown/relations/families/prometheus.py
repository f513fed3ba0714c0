"""Prometheus operator: what is scraped, found by labels and namespaces."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import POD, SERVICE
from pilotage.teardown.relations.rows import Relation, Row, Selected

_GROUP = "monitoring.coreos.com"
_WHERE = "spec.namespaceSelector"

ROWS = (
    Row(_GROUP, "ServiceMonitor", Relation.SELECTS, "spec.selector", Selected((SERVICE,), namespaces=_WHERE)),
    Row(_GROUP, "PodMonitor", Relation.SELECTS, "spec.selector", Selected((POD,), namespaces=_WHERE)),
)
