"""A controller's own writes: read your writes, and do not be woken by them.

Every write of a controller passes here, for three reasons: without the Lease it is not sent; its answer goes into the
caches at once, so that the next reconcile reads what this one wrote; and when it changed the very object that is being
reconciled, its event does not wake the controller that caused it. The event often comes before the answer does. So
while a write is in flight, changes of its object are held, and told apart by resourceVersion once the answer is there.
"""

from collections.abc import Callable, Iterable

from pilotage.kube import Object, ObjectKey, Resource
from pilotage.runtime.informer import Change, Handler, Informer
from pilotage.runtime.types import reconciling


class _InFlight:
    """Writes to one key that have no answer yet, and what happened to it meanwhile."""

    __slots__ = ("changes", "unanswered", "versions")

    def __init__(self) -> None:
        self.unanswered = 0
        self.versions: set[str] = set()
        self.changes: list[Change] = []


class OwnWrites:
    """The write guard of one controller (`pilotage.kube.WriteGuard`), and the filter in front of its queue."""

    def __init__(
        self,
        resource: Resource,
        wake: Handler,
        *,
        informers: Callable[[Resource], Iterable[Informer]],
        may_write: Callable[[], None],
    ) -> None:
        """`wake` is told of changes of `resource` that others made; `may_write` raises when nothing may be written."""
        self._resource = resource
        self._wake = wake
        self._informers = informers
        self._may_write = may_write
        self._in_flight: dict[ObjectKey, _InFlight] = {}

    def before(self, resource: Resource, key: ObjectKey) -> None:
        """Remember that a write to this key is under way; raises without the Lease."""
        self._may_write()
        if self._is_own(resource, key):
            self._in_flight.setdefault(key, _InFlight()).unanswered += 1

    def allowed(self) -> None:
        """Raise unless the Lease is held now."""
        self._may_write()

    def after(self, resource: Resource, key: ObjectKey, written: Object | None) -> None:
        """Put the answer into the cache, and let events of the key through again."""
        own = self._is_own(resource, key)
        try:
            if written is not None:
                for informer in self._informers(resource):
                    informer.observe(written, writer=self.on_change if own else None)
        finally:
            if own:
                self._answered(key, written)

    def on_change(self, change: Change) -> None:
        """The handler for the informer of `resource`: passes on, or holds back while a write is in flight."""
        in_flight = self._in_flight.get(change.object.key)
        if in_flight is None:
            self._wake(change)
        else:
            in_flight.changes.append(change)

    def _answered(self, key: ObjectKey, written: Object | None) -> None:
        in_flight = self._in_flight[key]
        in_flight.unanswered -= 1
        if written is not None:
            in_flight.versions.add(written.meta.resource_version)
        if in_flight.unanswered:
            return
        del self._in_flight[key]
        for change in in_flight.changes:
            if change.gap or change.new is None or change.new.meta.resource_version not in in_flight.versions:
                self._wake(change)

    def _is_own(self, resource: Resource, key: ObjectKey) -> bool:
        current = reconciling.get()
        return current is not None and key == current.key and resource == self._resource
