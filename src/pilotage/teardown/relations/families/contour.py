"""Contour: HTTPProxies, what they include and route to, and the certificates they borrow."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SECRET, A_SERVICE, INGRESS_CLASS, SECRET
from pilotage.teardown.relations.rows import Form, Kind, Named, Relation, Row

_GROUP = "projectcontour.io"
_PROXY = Named((Kind(_GROUP, "HTTPProxy"),), namespace="namespace")
_EXTENSION = Named((Kind(_GROUP, "ExtensionService"),), namespace="namespace")
_DELEGATED = Named((SECRET,), form=Form.SLASHED)

ROWS = (
    Row(_GROUP, "HTTPProxy", Relation.ROUTES_TO, "spec.routes[].services[]", A_SERVICE, note="weight"),
    Row(_GROUP, "HTTPProxy", Relation.ROUTES_TO, "spec.tcpproxy.services[]", A_SERVICE, note="weight"),
    Row(_GROUP, "HTTPProxy", Relation.ROUTES_TO, "spec.includes[]", _PROXY),
    Row(_GROUP, "HTTPProxy", Relation.ROUTES_TO, "spec.tcpproxy.include", _PROXY),
    Row(_GROUP, "HTTPProxy", Relation.ROUTES_TO, "spec.tcpproxy.includes", _PROXY),
    Row(_GROUP, "HTTPProxy", Relation.MOUNTS, "spec.virtualhost.tls.secretName", _DELEGATED),
    Row(_GROUP, "HTTPProxy", Relation.MOUNTS, "spec.virtualhost.tls.clientValidation.caSecret", _DELEGATED),
    Row(_GROUP, "HTTPProxy", Relation.MOUNTS, "spec.virtualhost.tls.clientValidation.crlSecret", _DELEGATED),
    Row(_GROUP, "HTTPProxy", Relation.MOUNTS, "spec.routes[].services[].validation.caSecret", _DELEGATED),
    Row(_GROUP, "HTTPProxy", Relation.NEEDS, "spec.virtualhost.authorization.extensionRef", _EXTENSION),
    Row(_GROUP, "HTTPProxy", Relation.NEEDS, "spec.ingressClassName", Named((INGRESS_CLASS,))),
    Row(_GROUP, "ExtensionService", Relation.ROUTES_TO, "spec.services[]", A_SERVICE, note="weight"),
    Row(_GROUP, "ExtensionService", Relation.MOUNTS, "spec.validation.caSecret", A_SECRET),
    Row(_GROUP, "TLSCertificateDelegation", Relation.TARGETS, "spec.delegations[].secretName", A_SECRET),
)
