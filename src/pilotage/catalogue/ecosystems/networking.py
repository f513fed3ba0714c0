"""Ingresses and network policies."""

from pilotage.api.names import ANNOTATION_CANARY_OF
from pilotage.catalogue.kind import Ecosystem, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByReference, mounts, needs, routes_to, selects
from pilotage.catalogue.shared import (
    A_POD_BY_LABELS,
    A_SECRET,
    A_SERVICE,
    AN_INGRESS,
    AN_INGRESS_CLASS,
    ANYTHING_BY_GROUP,
)

_GROUP = "networking.k8s.io"
_TAKEN_UP = ("status.loadBalancer.ingress",)

ECOSYSTEM = Ecosystem(
    "Networking",
    (
        KnownKind(
            _GROUP,
            "Ingress",
            short_names=("ing",),
            relations=(
                routes_to("spec.defaultBackend.service", A_SERVICE),
                routes_to("spec.defaultBackend.resource", ANYTHING_BY_GROUP),
                routes_to("spec.rules[].http.paths[].backend.service", A_SERVICE),
                routes_to("spec.rules[].http.paths[].backend.resource", ANYTHING_BY_GROUP),
                mounts("spec.tls[].secretName", A_SECRET),
                needs("spec.ingressClassName", AN_INGRESS_CLASS),
                needs(f"metadata.annotations[{ANNOTATION_CANARY_OF}]", AN_INGRESS),
            ),
            phase=Phase.DETACH,
            route_status=_TAKEN_UP,
            serves=True,
        ),
        KnownKind("extensions", "Ingress", phase=Phase.DETACH, route_status=_TAKEN_UP),
        KnownKind(
            _GROUP,
            "IngressClass",
            relations=(needs("spec.parameters", ByReference(group="apiGroup", namespace="namespace")),),
        ),
        KnownKind(
            _GROUP,
            "NetworkPolicy",
            short_names=("netpol",),
            relations=(selects("spec.podSelector", A_POD_BY_LABELS),),
        ),
    ),
)
