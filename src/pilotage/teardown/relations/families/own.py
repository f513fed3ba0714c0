"""Pilotage's own kinds."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SECRET, A_SERVICE, ANYTHING, SERVICE
from pilotage.teardown.relations.families.usages import usage_rows
from pilotage.teardown.relations.rows import Kind, Named, Relation, Row

_GROUP = "pilotage.dev"

ROWS = (
    Row(_GROUP, "ServingEndpoint", Relation.MOUNTS, "spec.model.name", Named((Kind(_GROUP, "Model"),))),
    # Its parts have no owner: what it has written down of them is all that ties them to it. They go first.
    Row(_GROUP, "ServingEndpoint", Relation.DEFINES, "status.ledger[]", ANYTHING),
    Row(_GROUP, "Model", Relation.MOUNTS, "spec.secretRef", A_SECRET),
    Row(
        _GROUP, "GatewayRoute", Relation.ROUTES_TO, "spec.backends[]", Named((SERVICE,), name="service"), note="weight"
    ),
    Row(_GROUP, "HostProcess", Relation.NEEDS, "spec.host", Named((Kind(_GROUP, "Host", namespaced=False),))),
    # As a Service and a pod: routes to it go first, then the process, then the Service.
    Row(_GROUP, "HostProcess", Relation.SELECTS, "spec.service", A_SERVICE, back=True),
    Row(_GROUP, "HostProcess", Relation.MOUNTS, "spec.model.secret", A_SECRET),
    *usage_rows(_GROUP, "Usage", across=True),
    *usage_rows(_GROUP, "ClusterUsage", across=True, user_across=True),
)
