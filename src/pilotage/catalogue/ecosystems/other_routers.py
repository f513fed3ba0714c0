"""Routes of Traefik and OpenShift."""

from pilotage.catalogue.kind import Ecosystem, KnownKind
from pilotage.catalogue.phase import Phase

ECOSYSTEM = Ecosystem(
    "Traefik and OpenShift",
    (
        KnownKind("traefik.io", "IngressRoute", phase=Phase.DETACH),
        KnownKind("traefik.io", "IngressRouteTCP", phase=Phase.DETACH),
        KnownKind("traefik.io", "IngressRouteUDP", phase=Phase.DETACH),
        KnownKind("route.openshift.io", "Route", phase=Phase.DETACH),
    ),
)
