"""Kinds that configure the API server: roles, admission, aggregated APIs, definitions."""

from pilotage.catalogue.kind import Ecosystem, KnownKind, ReadFor
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByName, ByReference, TargetKind, When, targets
from pilotage.catalogue.shared import A_SERVICE_ANYWHERE, SERVICE_ACCOUNT

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_CLUSTER_ROLE = TargetKind(_RBAC, "ClusterRole", namespaced=False)
# Users and groups are no objects.
_SUBJECTS = targets("subjects[]", ByName((SERVICE_ACCOUNT,), namespace="namespace"), When("kind", ("ServiceAccount",)))
_HAZARDS = frozenset({ReadFor.HAZARDS})


def _webhooks(kind: str) -> KnownKind:
    return KnownKind(
        _ADMISSION,
        kind,
        relations=(targets("webhooks[].clientConfig.service", A_SERVICE_ANYWHERE),),
        read_for=frozenset({ReadFor.FINALIZERS}),
        phase=Phase.QUIESCE,
    )


def _binding(policy: str, read_for: frozenset[ReadFor] = frozenset()) -> KnownKind:
    target = ByName((TargetKind(_ADMISSION, policy, namespaced=False),))
    return KnownKind(_ADMISSION, f"{policy}Binding", relations=(targets("spec.policyName", target),), read_for=read_for)


ECOSYSTEM = Ecosystem(
    "Control plane",
    (
        KnownKind(
            _RBAC,
            "RoleBinding",
            relations=(
                targets("roleRef", ByName((TargetKind(_RBAC, "Role"),)), When("kind", ("Role",))),
                targets("roleRef", ByName((_CLUSTER_ROLE,)), When("kind", ("ClusterRole",))),
                _SUBJECTS,
            ),
        ),
        KnownKind(
            _RBAC,
            "ClusterRoleBinding",
            relations=(targets("roleRef", ByReference(group="apiGroup", default=_CLUSTER_ROLE)), _SUBJECTS),
        ),
        _webhooks("MutatingWebhookConfiguration"),
        _webhooks("ValidatingWebhookConfiguration"),
        KnownKind(_ADMISSION, "ValidatingAdmissionPolicy", read_for=_HAZARDS),
        _binding("ValidatingAdmissionPolicy", _HAZARDS),
        _binding("MutatingAdmissionPolicy"),
        KnownKind(
            "apiregistration.k8s.io",
            "APIService",
            relations=(targets("spec.service", A_SERVICE_ANYWHERE),),
            phase=Phase.QUIESCE,
        ),
        # Definitions are read by their metadata alone: with their schemas they are larger than all else together.
        KnownKind(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            short_names=("crd", "crds"),
            relations=(targets("spec.conversion.webhook.clientConfig.service", A_SERVICE_ANYWHERE),),
            needs_body=False,
            phase=Phase.RELEASE,
        ),
        KnownKind("certificates.k8s.io", "CertificateSigningRequest", short_names=("csr",)),
    ),
)
