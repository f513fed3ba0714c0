"""Workloads, and the claims that a StatefulSet makes by name."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SERVICE, VOLUME_CLAIM
from pilotage.teardown.relations.families.pods import workload_rows
from pilotage.teardown.relations.rows import Form, Named, Relation, Row

ROWS = (
    *workload_rows("apps", "Deployment", "spec.template.spec"),
    *workload_rows("apps", "StatefulSet", "spec.template.spec"),
    Row("apps", "StatefulSet", Relation.NEEDS, "spec.serviceName", A_SERVICE),
    Row(
        "apps",
        "StatefulSet",
        Relation.CLAIMS,
        "spec.volumeClaimTemplates[].metadata.name",
        Named((VOLUME_CLAIM,), form=Form.NUMBERED),
    ),
    *workload_rows("apps", "DaemonSet", "spec.template.spec"),
    *workload_rows("apps", "ReplicaSet", "spec.template.spec", demand=False),
)
