"""Who is asked before a write is sent, and told when it is answered: for those who keep a Lease, or a cache.

And what an answer to a write shows.
"""

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


def is_shown(subresource: str, *, dry_run: bool) -> bool:
    """Whether a write is answered with the object itself as it is now, and not with a Scale, or with what would be."""
    return not dry_run and subresource in ("", "status")


def is_gone(answer: Object, method: str) -> bool:
    """Whether the answer to a write proves that the object is no more.

    A delete of most kinds is answered with a Status then, that of some (Pods, Services, ServiceAccounts) with the last
    state of the object. What stays is marked as being deleted, and waits for something: finalizers, which a Namespace
    has in its spec too, or a grace period.
    """
    meta = answer.meta
    if not meta.terminating:
        return method == "DELETE"
    return not (meta.finalizers or meta.deletion_grace_period_seconds or answer.get("spec", "finalizers"))
