"""Gateway API: routes, their gateways and backends."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import CONFIG_MAP, SECRET, SERVICE
from pilotage.teardown.relations.rows import Kind, Named, Reference, Relation, Row

_GROUP = "gateway.networking.k8s.io"
_ROUTES = ("GRPCRoute", "HTTPRoute", "TCPRoute", "TLSRoute", "UDPRoute")
_BACKEND = Reference(group="group", namespace="namespace", default=SERVICE)
_PARENT = Reference(group="group", namespace="namespace", default=Kind(_GROUP, "Gateway"))
_CERTIFICATE = Reference(group="group", namespace="namespace", default=SECRET)
_AUTHORITY = Reference(group="group", namespace="namespace", default=CONFIG_MAP)
_LOCAL_AUTHORITY = Reference(group="group", default=CONFIG_MAP)

ROWS = (
    *(
        Row(_GROUP, route, Relation.ROUTES_TO, "spec.rules[].backendRefs[]", _BACKEND, note="weight")
        for route in _ROUTES
    ),
    *(
        Row(_GROUP, route, Relation.ROUTES_TO, f"spec.rules[].{filters}[].requestMirror.backendRef", _BACKEND)
        for route in ("GRPCRoute", "HTTPRoute")
        for filters in ("filters", "backendRefs[].filters")
    ),
    *(Row(_GROUP, route, Relation.NEEDS, "spec.parentRefs[]", _PARENT) for route in _ROUTES),
    Row(
        _GROUP,
        "Gateway",
        Relation.NEEDS,
        "spec.gatewayClassName",
        Named((Kind(_GROUP, "GatewayClass", namespaced=False),)),
    ),
    Row(_GROUP, "Gateway", Relation.MOUNTS, "spec.listeners[].tls.certificateRefs[]", _CERTIFICATE),
    Row(
        _GROUP,
        "Gateway",
        Relation.MOUNTS,
        "spec.listeners[].tls.frontendValidation.caCertificateRefs[]",
        _AUTHORITY,
    ),
    Row(_GROUP, "Gateway", Relation.NEEDS, "spec.infrastructure.parametersRef", Reference(group="group")),
    Row(
        _GROUP,
        "GatewayClass",
        Relation.NEEDS,
        "spec.parametersRef",
        Reference(group="group", namespace="namespace"),
    ),
    # A grant may name one object; without a name it is about all of a kind, and points at none.
    Row(_GROUP, "ReferenceGrant", Relation.TARGETS, "spec.to[]", Reference(group="group")),
    Row(_GROUP, "BackendTLSPolicy", Relation.TARGETS, "spec.targetRefs[]", Reference(group="group", default=SERVICE)),
    Row(_GROUP, "BackendTLSPolicy", Relation.MOUNTS, "spec.validation.caCertificateRefs[]", _LOCAL_AUTHORITY),
)
