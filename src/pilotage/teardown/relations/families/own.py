"""Pilotage's own kinds."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SECRET
from pilotage.teardown.relations.families.usages import usage_rows
from pilotage.teardown.relations.rows import Kind, Named, Relation, Row

_GROUP = "pilotage.dev"

ROWS = (
    Row(_GROUP, "ServingEndpoint", Relation.MOUNTS, "spec.model.name", Named((Kind(_GROUP, "Model"),))),
    Row(_GROUP, "Model", Relation.MOUNTS, "spec.secretRef", A_SECRET),
    *usage_rows(_GROUP, "Usage", across=True),
    *usage_rows(_GROUP, "ClusterUsage", across=True, user_across=True),
)
