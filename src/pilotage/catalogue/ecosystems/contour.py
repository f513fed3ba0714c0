"""Contour: HTTPProxies, what they include and route to, and the certificates they borrow."""

from pilotage.catalogue.kind import Ecosystem, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByName, NameForm, TargetKind, mounts, needs, routes_to, targets
from pilotage.catalogue.shared import A_SECRET, A_SERVICE, AN_INGRESS_CLASS, SECRET

_GROUP = "projectcontour.io"
_PROXY = ByName((TargetKind(_GROUP, "HTTPProxy"),), namespace="namespace")
_EXTENSION = ByName((TargetKind(_GROUP, "ExtensionService"),), namespace="namespace")
_DELEGATED = ByName((SECRET,), form=NameForm.SLASHED)

ECOSYSTEM = Ecosystem(
    "Contour",
    (
        KnownKind(
            _GROUP,
            "HTTPProxy",
            relations=(
                routes_to("spec.routes[].services[]", A_SERVICE, note="weight"),
                routes_to("spec.tcpproxy.services[]", A_SERVICE, note="weight"),
                routes_to("spec.includes[]", _PROXY),
                routes_to("spec.tcpproxy.include", _PROXY),
                routes_to("spec.tcpproxy.includes", _PROXY),
                mounts("spec.virtualhost.tls.secretName", _DELEGATED),
                mounts("spec.virtualhost.tls.clientValidation.caSecret", _DELEGATED),
                mounts("spec.virtualhost.tls.clientValidation.crlSecret", _DELEGATED),
                mounts("spec.routes[].services[].validation.caSecret", _DELEGATED),
                needs("spec.virtualhost.authorization.extensionRef", _EXTENSION),
                needs("spec.ingressClassName", AN_INGRESS_CLASS),
            ),
            phase=Phase.DETACH,
            route_status=("status.currentStatus",),
            serves=True,
        ),
        KnownKind(
            _GROUP,
            "ExtensionService",
            relations=(
                routes_to("spec.services[]", A_SERVICE, note="weight"),
                mounts("spec.validation.caSecret", A_SECRET),
            ),
        ),
        KnownKind(_GROUP, "TLSCertificateDelegation", relations=(targets("spec.delegations[].secretName", A_SECRET),)),
    ),
    defined=True,
)
