"""Ingresses and network policies."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import (
    A_SECRET,
    A_SERVICE,
    ANYTHING_BY_GROUP,
    INGRESS_CLASS,
    POD,
)
from pilotage.teardown.relations.rows import Named, Reference, Relation, Row, Selected

_GROUP = "networking.k8s.io"

ROWS = (
    Row(_GROUP, "Ingress", Relation.ROUTES_TO, "spec.defaultBackend.service", A_SERVICE),
    Row(_GROUP, "Ingress", Relation.ROUTES_TO, "spec.defaultBackend.resource", ANYTHING_BY_GROUP),
    Row(_GROUP, "Ingress", Relation.ROUTES_TO, "spec.rules[].http.paths[].backend.service", A_SERVICE),
    Row(_GROUP, "Ingress", Relation.ROUTES_TO, "spec.rules[].http.paths[].backend.resource", ANYTHING_BY_GROUP),
    Row(_GROUP, "Ingress", Relation.MOUNTS, "spec.tls[].secretName", A_SECRET),
    Row(_GROUP, "Ingress", Relation.NEEDS, "spec.ingressClassName", Named((INGRESS_CLASS,))),
    Row(
        _GROUP,
        "IngressClass",
        Relation.NEEDS,
        "spec.parameters",
        Reference(group="apiGroup", namespace="namespace"),
    ),
    Row(_GROUP, "NetworkPolicy", Relation.SELECTS, "spec.podSelector", Selected((POD,))),
)
