"""The kinds that have to be read in full besides those that the relations need.

They stand apart from what needs them, because they have to be known first: reading begins while the rest is imported.
"""

from __future__ import annotations

from pilotage.teardown.world import GroupKind

KEEPERS = frozenset(
    {
        GroupKind("coordination.k8s.io", "Lease"),
        GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""To tell who keeps a finalizer, and whether it runs."""
HAZARDS = KEEPERS | {
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
}
"""To tell what will stand in the way."""
