"""cert-manager: certificates, the Secrets they are kept in, and who issues them."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SECRET
from pilotage.teardown.relations.rows import Kind, Reference, Relation, Row

_GROUP = "cert-manager.io"
_ISSUER = Reference(group="group", default=Kind(_GROUP, "Issuer"))

ROWS = (
    Row(_GROUP, "Certificate", Relation.TARGETS, "spec.secretName", A_SECRET),
    Row(_GROUP, "Certificate", Relation.NEEDS, "spec.issuerRef", _ISSUER),
    Row(_GROUP, "CertificateRequest", Relation.NEEDS, "spec.issuerRef", _ISSUER),
    Row(_GROUP, "Issuer", Relation.MOUNTS, "spec.ca.secretName", A_SECRET),
    Row(_GROUP, "Issuer", Relation.TARGETS, "spec.acme.privateKeySecretRef", A_SECRET),
)
