"""Aggregated APIs: served by a Service of the cluster."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SERVICE_ANYWHERE
from pilotage.teardown.relations.rows import Relation, Row

ROWS = (Row("apiregistration.k8s.io", "APIService", Relation.TARGETS, "spec.service", A_SERVICE_ANYWHERE),)
