"""cert-manager: certificates, the Secrets they are kept in, and who issues them."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.relation import ByReference, TargetKind, mounts, needs, targets
from pilotage.catalogue.shared import A_SECRET

_GROUP = "cert-manager.io"
_ISSUER = needs("spec.issuerRef", ByReference(group="group", default=TargetKind(_GROUP, "Issuer")))

ECOSYSTEM = Ecosystem(
    "cert-manager",
    (
        KnownKind(_GROUP, "Certificate", relations=(targets("spec.secretName", A_SECRET), _ISSUER)),
        KnownKind(_GROUP, "CertificateRequest", relations=(_ISSUER,)),
        KnownKind(
            _GROUP,
            "Issuer",
            relations=(
                mounts("spec.ca.secretName", A_SECRET),
                targets("spec.acme.privateKeySecretRef", A_SECRET),
            ),
        ),
    ),
    (
        KnownFinalizer(
            ("finalizer.acme.cert-manager.io", "acme.cert-manager.io/finalizer"),
            "cert-manager",
            "takes the challenge's record out of DNS or its solver out of the cluster",
            "a TXT record in DNS, or the pods and Ingress of an HTTP solver.",
            ("cert-manager",),
            ("cert-manager",),
            (("app.kubernetes.io/name", "cert-manager"),),
            ("cert-manager-controller",),
        ),
    ),
)
