"""The order of admission: webhooks may change a write, then policies decide, then webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.calls import telling

if TYPE_CHECKING:
    from pilotage_harbor.admission.policies import Policies
    from pilotage_harbor.core.admission import Admission, AdmissionAttributes


class InOrder:
    """An `Admission` in kube-apiserver's order: webhooks may change what is written, then policies, then webhooks."""

    def __init__(self, policies: Policies, webhooks: Admission) -> None:
        self._policies = policies
        self._webhooks = webhooks

    async def mutate(self, attributes: AdmissionAttributes) -> list[str]:
        """Ask the mutating webhooks, as `Admission.mutate` says."""
        return await self._webhooks.mutate(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> list[str]:
        """Apply the policies and ask the validating webhooks, as `Admission.validate` says."""
        warnings = self._policies.check(attributes)
        if not warnings:
            return await self._webhooks.validate(attributes)
        with telling(warnings):
            return warnings + await self._webhooks.validate(attributes)
