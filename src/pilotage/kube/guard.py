"""Who is asked before a write is sent, and told when it is answered: for those who keep a Lease, or a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pilotage.kube.names import ObjectKey, Resource
    from pilotage.kube.wire import Object


class WriteGuard(Protocol):
    """Is told of every write of a client before it is sent and after it is answered. See `Client.guarded_by`."""

    def before(self, resource: Resource, key: ObjectKey) -> None:
        """A write to this key is about to be sent; raises to forbid it."""

    def allowed(self) -> None:
        """All waiting is over, and it will be sent now; raises to forbid it. May be called more than once."""

    def after(self, resource: Resource, key: ObjectKey, written: Object | None) -> None:
        """It was answered: with the object as it is now, or None when it failed or left no object to see."""
