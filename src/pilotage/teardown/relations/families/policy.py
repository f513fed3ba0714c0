"""Disruption budgets. They guard the eviction of pods; a DELETE does not ask them."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import POD
from pilotage.teardown.relations.rows import Relation, Row, Selected

ROWS = (Row("policy", "PodDisruptionBudget", Relation.PROTECTS, "spec.selector", Selected((POD,))),)
