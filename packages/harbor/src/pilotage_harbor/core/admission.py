"""The contract of admission: what it sees of a write, and how whoever is asked is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json


class AdmissionAttributes:
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

    def with_object(self, obj: Json) -> AdmissionAttributes:
        """The same write of another object."""
        return AdmissionAttributes(
            self.operation, self.scope, obj, self.old, dry_run=self.dry_run, options=self.options
        )


class Admission(Protocol):
    """Is asked before a write; raises StatusError to refuse it; returns warnings."""

    async def mutate(self, attributes: AdmissionAttributes) -> list[str]:
        """May change `attributes.obj`, or replace it."""

    async def validate(self, attributes: AdmissionAttributes) -> list[str]:
        """Says yes or no to what would be stored."""


class NoAdmission:
    """Admission without webhooks and policies."""

    async def mutate(self, attributes: AdmissionAttributes) -> list[str]:
        """Change nothing."""
        return []

    async def validate(self, attributes: AdmissionAttributes) -> list[str]:
        """Refuse nothing."""
        return []


class Post(Protocol):
    """Sends a body to a URL; gives the status and the body of the answer, or raises `admission.posting.Failed`."""

    async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
        """`authorities` are PEM certificates; without any, those of the machine are trusted."""
