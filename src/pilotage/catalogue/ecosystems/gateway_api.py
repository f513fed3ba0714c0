"""Gateway API: routes, their gateways and backends."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import (
    ByName,
    ByReference,
    RelationField,
    TargetKind,
    mounts,
    needs,
    routes_to,
    targets,
)
from pilotage.catalogue.shared import CONFIG_MAP, SECRET, SERVICE

_GROUP = "gateway.networking.k8s.io"
_BACKEND = ByReference(group="group", namespace="namespace", default=SERVICE)
_PARENT = ByReference(group="group", namespace="namespace", default=TargetKind(_GROUP, "Gateway"))
_MIRRORS = tuple(
    routes_to(f"spec.rules[].{filters}[].requestMirror.backendRef", _BACKEND)
    for filters in ("filters", "backendRefs[].filters")
)


def _route(kind: str, mirrors: tuple[RelationField, ...] = (), *, serves: bool = False) -> KnownKind:
    return KnownKind(
        _GROUP,
        kind,
        relations=(
            routes_to("spec.rules[].backendRefs[]", _BACKEND, note="weight"),
            *mirrors,
            needs("spec.parentRefs[]", _PARENT),
        ),
        phase=Phase.DETACH,
        serves=serves,
    )


ECOSYSTEM = Ecosystem(
    "Gateway API",
    (
        _route("GRPCRoute", _MIRRORS, serves=True),
        _route("HTTPRoute", _MIRRORS, serves=True),
        _route("TCPRoute"),
        _route("TLSRoute"),
        _route("UDPRoute"),
        KnownKind(
            _GROUP,
            "Gateway",
            relations=(
                needs("spec.gatewayClassName", ByName((TargetKind(_GROUP, "GatewayClass", namespaced=False),))),
                mounts(
                    "spec.listeners[].tls.certificateRefs[]",
                    ByReference(group="group", namespace="namespace", default=SECRET),
                ),
                mounts(
                    "spec.listeners[].tls.frontendValidation.caCertificateRefs[]",
                    ByReference(group="group", namespace="namespace", default=CONFIG_MAP),
                ),
                needs("spec.infrastructure.parametersRef", ByReference(group="group")),
            ),
            phase=Phase.DETACH,
        ),
        KnownKind(
            _GROUP,
            "GatewayClass",
            relations=(needs("spec.parametersRef", ByReference(group="group", namespace="namespace")),),
        ),
        # A grant may name one object; without a name it is about all of a kind, and points at none.
        KnownKind(_GROUP, "ReferenceGrant", relations=(targets("spec.to[]", ByReference(group="group")),)),
        KnownKind(
            _GROUP,
            "BackendTLSPolicy",
            relations=(
                targets("spec.targetRefs[]", ByReference(group="group", default=SERVICE)),
                mounts("spec.validation.caCertificateRefs[]", ByReference(group="group", default=CONFIG_MAP)),
            ),
        ),
    ),
    (
        KnownFinalizer(
            ("gateway-exists-finalizer.gateway.networking.k8s.io",),
            "Gateway API controller",
            "waits until no Gateway uses the class",
            "Gateways whose class is not there.",
            ("envoy-gateway", "contour", "*-gateway-controller"),
        ),
    ),
    defined=True,
)
