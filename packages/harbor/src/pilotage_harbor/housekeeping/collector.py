"""The garbage collector, as kube-controller-manager has it.

An object goes when none of its owners is there any more; a reference with another uid, or into another namespace, leads
to nobody. One live owner keeps it, and the dead references are taken away. Foreground deletion deletes all dependents
and waits for those that block; orphaning takes the references away first. An owner of a kind that is not served is
unknown, which is not absent: whatever refers to it waits until that kind is served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.core.objects import metadata_of
from pilotage_harbor.housekeeping.client import MERGE_PATCH, STRATEGIC_PATCH, Asker, controller, path_of
from pilotage_harbor.housekeeping.graph import IGNORED, OwnerGraph
from pilotage_harbor.housekeeping.workqueue import RateLimitingQueue
from pilotage_harbor.verbs.deletions import FOREGROUND, ORPHAN

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from pilotage_harbor.core import Core
    from pilotage_harbor.housekeeping.client import Handle
    from pilotage_harbor.housekeeping.graph import GraphNode, OwnerReference
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import StoredObject

WORKERS = 8
"""Number of objects that are processed at the same time: a slow webhook holds up only its own."""
FINALIZER_TRIES_MAX = 5


class _Unknown(Exception):
    """A kind is not served, so nothing can be said about its objects."""


class _Exempt(Exception):
    """A cluster-scoped object refers to a namespaced owner: nothing is ever done about it."""


class Collector:
    """The garbage collector. `begin` considers all existing objects; then `tasks` do the work."""

    def __init__(self, core: Core, handle: Handle) -> None:
        self._core = core
        self._asker = Asker(handle, controller("generic-garbage-collector"), "kube-controller-manager")
        self._deleting: RateLimitingQueue[str] = RateLimitingQueue()
        self._orphaning: RateLimitingQueue[str] = RateLimitingQueue()
        self._graph = OwnerGraph(self._is_there, self._deleting.add, self._orphaning.add)
        self._unknown: dict[str, None] = {}
        """Uids of objects that wait for a kind to be served."""
        self._stop_listening: Callable[[], None] | None = None

    def begin(self) -> None:
        """Take in what is stored, and listen from now on."""
        store = self._core.store
        for storage in sorted(store.storages()):
            if storage not in IGNORED:
                for entry in store.entries(storage):
                    self._graph.see(storage, entry)
        self._stop_listening = store.listen_to_all(self._graph.observe)

    def tasks(self) -> Iterable[Coroutine[Any, Any, None]]:
        """The coroutines of the collector."""
        yield from (self._deleting.serve(self._attempt) for _ in range(WORKERS))
        yield self._orphaning.serve(self._orphan)

    def end(self) -> None:
        """Listen no more."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._deleting.close()
        self._orphaning.close()

    def kinds_changed(self) -> None:
        """Kinds are served that were not, or the other way round: what was unknown may be known now."""
        unknown, self._unknown = self._unknown, {}
        for uid in unknown:
            self._deleting.add(uid)

    # Deciding

    async def _attempt(self, uid: str) -> None:
        node = self._graph.nodes.get(uid)
        if node is None or (node.deleting and not node.foreground):
            return
        try:
            kind, entry = self._find(node)
            if entry is None:
                return
            if node.foreground:
                await self._wait_for_dependents(node)
            elif node.owners:
                await self._judge(node, kind, entry)
        except _Unknown:
            self._unknown[uid] = None
        except _Exempt:
            return
        except StatusError as error:
            if error.code != 404:
                raise

    async def _judge(self, node: GraphNode, kind: Kind, entry: StoredObject) -> None:
        """Keep it, for a live owner's sake, or delete it."""
        solid, dead, waiting = self._classify(node)
        if solid:
            if dead or waiting:
                await self._drop_references(node, kind, {owner.uid for owner in (*dead, *waiting)})
            return
        dependents = self._graph.dependents(node.uid)
        if waiting and dependents:
            # Two that wait for each other would wait for ever: this one stops blocking its owners first.
            if any(dependent.foreground for dependent in dependents):
                await self._unblock_owners(node, kind)
            await self._delete(node, kind, entry, "Foreground")
            return
        finalizers = metadata_of(entry).get("finalizers") or ()
        policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        await self._delete(node, kind, entry, policy)

    def _classify(self, node: GraphNode) -> tuple[list[OwnerReference], list[OwnerReference], list[OwnerReference]]:
        """Owners that live, that are not there, and that are being deleted in the foreground."""
        solid: list[OwnerReference] = []
        dead: list[OwnerReference] = []
        waiting: list[OwnerReference] = []
        for owner in node.owners:
            entry = self._owner(owner, node.namespace)
            above = self._graph.nodes.get(owner.uid)
            if entry is None or entry.uid != owner.uid:
                dead.append(owner)
            elif above is not None and above.foreground:
                waiting.append(owner)
            else:
                solid.append(owner)
        return solid, dead, waiting

    async def _wait_for_dependents(self, node: GraphNode) -> None:
        blocking = self._graph.blocking(node.uid)
        if not blocking:
            await self._drop_finalizer(node, FOREGROUND)
        for dependent in blocking:
            if not dependent.foreground:
                self._deleting.add(dependent.uid)

    async def _orphan(self, uid: str) -> None:
        node = self._graph.nodes.get(uid)
        if node is None:
            return
        for dependent in self._graph.dependents(uid):
            kind = self._core.registry.storage(dependent.storage)
            if kind is not None:
                try:
                    await self._drop_references(dependent, kind, {uid})
                except StatusError as error:
                    if error.code != 404:
                        raise
        await self._drop_finalizer(node, ORPHAN)

    # Looking up

    def _find(self, node: GraphNode) -> tuple[Kind, StoredObject | None]:
        """The object of a node as it is now; None if it is gone."""
        kind = self._core.registry.storage(node.storage)
        if kind is None:
            raise _Unknown
        entry = self._core.store.get(node.storage, node.namespace, node.name)
        return kind, entry if entry is not None and entry.uid == node.uid else None

    def _owner(self, reference: OwnerReference, namespace: str) -> StoredObject | None:
        kind = self._core.registry.of(reference.api_version, reference.kind)
        if kind is None:
            raise _Unknown
        if kind.namespaced and not namespace:
            raise _Exempt
        return self._core.store.get(kind.storage, namespace if kind.namespaced else "", reference.name)

    def _is_there(self, reference: OwnerReference, namespace: str) -> bool:
        try:
            entry = self._owner(reference, namespace)
        except (_Unknown, _Exempt):
            return False
        return entry is not None and entry.uid == reference.uid

    # Acting

    async def _delete(self, node: GraphNode, kind: Kind, entry: StoredObject, policy: str) -> None:
        """Delete just this object, as it was looked at; or as it is, if its owners are still the same."""
        owners = node.owners
        try:
            await self._send_delete(node, kind, {"uid": node.uid, "resourceVersion": str(entry.version)}, policy)
        except StatusError as error:
            _, live = self._find(node)
            if error.code != 409 or live is None or live.version == entry.version or node.owners != owners:
                raise
            await self._send_delete(node, kind, {"uid": node.uid}, policy)

    async def _send_delete(self, node: GraphNode, kind: Kind, preconditions: Json, policy: str) -> None:
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": preconditions,
            "propagationPolicy": policy,
        }
        await self._asker.ask("DELETE", path_of(kind, node.namespace, node.name), options)

    async def _drop_references(self, node: GraphNode, kind: Kind, owners: set[str]) -> None:
        if not kind.custom:
            gone = [{"$patch": "delete", "uid": uid} for uid in sorted(owners)]
            await self._patch(node, kind, {"uid": node.uid, "ownerReferences": gone}, STRATEGIC_PATCH)
            return
        await self._replace_references(node, kind, lambda each: None if each["uid"] in owners else each)

    async def _unblock_owners(self, node: GraphNode, kind: Kind) -> None:
        await self._replace_references(node, kind, lambda each: {**each, "blockOwnerDeletion": False})

    async def _replace_references(self, node: GraphNode, kind: Kind, change: Callable[[Json], Json | None]) -> None:
        _, entry = self._find(node)
        if entry is None:
            return
        references = metadata_of(entry).get("ownerReferences") or []
        changed = [new for new in map(change, references) if new is not None]
        meta = {"resourceVersion": str(entry.version), "ownerReferences": changed or None}
        await self._patch(node, kind, meta, MERGE_PATCH)

    async def _drop_finalizer(self, node: GraphNode, finalizer: str) -> None:
        for tries_left in reversed(range(FINALIZER_TRIES_MAX)):
            kind, entry = self._find(node)
            if entry is None:
                return
            finalizers = metadata_of(entry).get("finalizers") or []
            if finalizer not in finalizers:
                return
            kept = [each for each in finalizers if each != finalizer]
            try:
                meta = {"resourceVersion": str(entry.version), "finalizers": kept or None}
                await self._patch(node, kind, meta, MERGE_PATCH)
            except StatusError as error:
                if error.code == 404:
                    return
                if error.code != 409 or not tries_left:
                    raise
            else:
                return

    async def _patch(self, node: GraphNode, kind: Kind, meta: Json, media: str) -> None:
        await self._asker.ask("PATCH", path_of(kind, node.namespace, node.name), {"metadata": meta}, media)
