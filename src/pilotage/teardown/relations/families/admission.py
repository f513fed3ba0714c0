"""Who is asked about writes: webhooks behind Services, and policies with their bindings."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SERVICE_ANYWHERE
from pilotage.teardown.relations.rows import Kind, Named, Relation, Row

_GROUP = "admissionregistration.k8s.io"


def _policy(kind: str) -> Named:
    return Named((Kind(_GROUP, kind, namespaced=False),))


ROWS = (
    *(
        Row(_GROUP, kind, Relation.TARGETS, "webhooks[].clientConfig.service", A_SERVICE_ANYWHERE)
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    ),
    *(
        Row(_GROUP, f"{kind}Binding", Relation.TARGETS, "spec.policyName", _policy(kind))
        for kind in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
    ),
    # Definitions are read by their metadata alone: with their schemas they are larger than all else together.
    Row(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        Relation.TARGETS,
        "spec.conversion.webhook.clientConfig.service",
        A_SERVICE_ANYWHERE,
        demand=False,
    ),
)
