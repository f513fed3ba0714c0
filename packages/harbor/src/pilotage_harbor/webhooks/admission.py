"""Admission of a write: by policies (`pilotage_harbor.policies.policies`), then webhooks
(`pilotage_harbor.webhooks.webhooks`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pilotage_harbor.calls import telling

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json
    from pilotage_harbor.policies.policies import Policies
    from pilotage_harbor.verbs.scope import Scope


class Attributes:
    """One write, as admission sees it. `mutate` may put another object into `obj`."""

    __slots__ = ("dry_run", "obj", "old", "operation", "options", "scope")

    def __init__(
        self,
        operation: str,
        scope: Scope,
        obj: Json | None,
        old: Json | None,
        *,
        dry_run: bool = False,
        options: Json | None = None,
    ) -> None:
        self.operation = operation
        self.scope = scope
        self.obj: Any = obj
        self.old = old
        self.dry_run = dry_run
        self.options = options

    def with_object(self, obj: Json) -> Attributes:
        """The same write of another object."""
        return Attributes(self.operation, self.scope, obj, self.old, dry_run=self.dry_run, options=self.options)


class Admission(Protocol):
    """Is asked before a write; raises StatusError to refuse it; returns warnings."""

    async def mutate(self, attributes: Attributes) -> list[str]:
        """May change `attributes.obj`, or replace it."""

    async def validate(self, attributes: Attributes) -> list[str]:
        """Says yes or no to what would be stored."""


class NoAdmission:
    """Nobody is asked."""

    async def mutate(self, attributes: Attributes) -> list[str]:
        """See `Admission`."""
        return []

    async def validate(self, attributes: Attributes) -> list[str]:
        """See `Admission`."""
        return []


class InOrder:
    """An `Admission` in kube-apiserver's order: webhooks may change what is written, then policies, then webhooks."""

    def __init__(self, policies: Policies, webhooks: Admission) -> None:
        self._policies = policies
        self._webhooks = webhooks

    async def mutate(self, attributes: Attributes) -> list[str]:
        """See `Admission`."""
        return await self._webhooks.mutate(attributes)

    async def validate(self, attributes: Attributes) -> list[str]:
        """See `Admission`."""
        warnings = self._policies.check(attributes)
        if not warnings:
            return await self._webhooks.validate(attributes)
        with telling(warnings):
            return warnings + await self._webhooks.validate(attributes)
