"""Istio: virtual services, destination rules and gateways. Hosts of the mesh are Services."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import (
    ANY_NAMESPACE,
    ByName,
    BySelector,
    NameForm,
    TargetKind,
    needs,
    routes_to,
    selects,
    targets,
)
from pilotage.catalogue.shared import POD, SERVICE

_GROUP = "networking.istio.io"
_HOST = ByName((SERVICE,), form=NameForm.HOST)
_GATEWAY = ByName((TargetKind(_GROUP, "Gateway"),), form=NameForm.SLASHED)
_DELEGATE = ByName((TargetKind(_GROUP, "VirtualService"),), namespace="namespace")
_WEIGHED_HOST = ByName((SERVICE,), name="destination.host", form=NameForm.HOST)

ECOSYSTEM = Ecosystem(
    "Istio",
    (
        KnownKind(
            _GROUP,
            "VirtualService",
            relations=(
                *(
                    routes_to(f"spec.{protocol}[].route[]", _WEIGHED_HOST, note="weight")
                    for protocol in ("http", "tcp", "tls")
                ),
                routes_to("spec.http[].mirror.host", _HOST),
                routes_to("spec.http[].mirrors[].destination.host", _HOST),
                routes_to("spec.http[].delegate", _DELEGATE),
                needs("spec.gateways[]", _GATEWAY),
            ),
            phase=Phase.DETACH,
            route_status=(),
            serves=True,
        ),
        KnownKind(_GROUP, "DestinationRule", relations=(targets("spec.host", _HOST),)),
        KnownKind(
            _GROUP,
            "Gateway",
            # The proxies of a gateway may run in any namespace, and mostly run in another one.
            relations=(selects("spec.selector", BySelector((POD,), plain=True, namespaces=ANY_NAMESPACE)),),
            phase=Phase.DETACH,
        ),
    ),
    (
        KnownFinalizer(
            ("istio-finalizer.install.istio.io",),
            "Istio operator",
            "uninstalls the control plane that this object describes",
            "Istio's control plane, its webhooks and its permissions.",
            ("istio-operator", "istio-operator-*"),
            ("istio-operator",),
            leases=("istio-operator-lock*",),
        ),
    ),
)
