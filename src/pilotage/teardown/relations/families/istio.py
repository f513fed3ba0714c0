"""Istio: virtual services, destination rules and gateways. Hosts of the mesh are Services."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import POD, SERVICE
from pilotage.teardown.relations.rows import ANY_NAMESPACE, Form, Kind, Named, Relation, Row, Selected

_GROUP = "networking.istio.io"
_HOST = Named((SERVICE,), form=Form.HOST)
_GATEWAY = Named((Kind(_GROUP, "Gateway"),), form=Form.SLASHED)
_DELEGATE = Named((Kind(_GROUP, "VirtualService"),), namespace="namespace")
_WEIGHED_HOST = Named((SERVICE,), name="destination.host", form=Form.HOST)

ROWS = (
    *(
        Row(_GROUP, "VirtualService", Relation.ROUTES_TO, f"spec.{protocol}[].route[]", _WEIGHED_HOST, note="weight")
        for protocol in ("http", "tcp", "tls")
    ),
    Row(_GROUP, "VirtualService", Relation.ROUTES_TO, "spec.http[].mirror.host", _HOST),
    Row(_GROUP, "VirtualService", Relation.ROUTES_TO, "spec.http[].mirrors[].destination.host", _HOST),
    Row(_GROUP, "VirtualService", Relation.ROUTES_TO, "spec.http[].delegate", _DELEGATE),
    Row(_GROUP, "VirtualService", Relation.NEEDS, "spec.gateways[]", _GATEWAY),
    Row(_GROUP, "DestinationRule", Relation.TARGETS, "spec.host", _HOST),
    # The proxies of a gateway may run in any namespace, and mostly run in another one.
    Row(
        _GROUP,
        "Gateway",
        Relation.SELECTS,
        "spec.selector",
        Selected((POD,), plain=True, namespaces=ANY_NAMESPACE),
    ),
)
