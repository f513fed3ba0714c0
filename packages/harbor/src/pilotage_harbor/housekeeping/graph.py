"""The graph of owners, by uid, kept up from the events of the store for the garbage collector. No I/O, no waiting.

Only objects that have owners, or whose deletion waits for their dependents, have a node: for all others an event costs
a search for two words in their bytes. The store is always up to date here, so no owner has to be imagined until it is
seen: whether one is there can be looked up at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pilotage_harbor.storage.store import DELETED
from pilotage_harbor.verbs.deletions import FOREGROUND, ORPHAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.storage.store import Event, StoredObject

IGNORED = frozenset({"events", "events.events.k8s.io"})
"""Storages whose objects are never collected."""

_OWNED, _DELETING = b'"ownerReferences"', b'"deletionTimestamp"'


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """An ownerReference, as far as the collector cares."""

    api_version: str
    kind: str
    name: str
    uid: str
    block_owner_deletion: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata


_head = msgspec.json.Decoder(_Head)


class GraphNode:
    """One object of the graph."""

    __slots__ = ("deleting", "foreground", "name", "namespace", "orphaning", "owners", "storage", "uid")

    def __init__(self, storage: str, entry: StoredObject) -> None:
        self.storage = storage
        self.namespace = entry.namespace
        self.name = entry.name
        self.uid = entry.uid
        self.owners: tuple[OwnerReference, ...] = ()
        self.deleting = False
        self.foreground = False
        """Whether it is being deleted, and waits until its dependents are."""
        self.orphaning = False
        """Whether it is being deleted, and waits until its dependents are orphaned."""


class OwnerGraph:
    """The owner graph. Calls `attempt` with the uid of an object to check, `orphan` with that of an owner to orphan.

    `is_there` tells whether a reference from a namespace certainly leads to its owner.
    """

    def __init__(
        self,
        is_there: Callable[[OwnerReference, str], bool],
        attempt: Callable[[str], None],
        orphan: Callable[[str], None],
    ) -> None:
        self.nodes: dict[str, GraphNode] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._is_there = is_there
        self._attempt = attempt
        self._orphan = orphan

    def dependents(self, uid: str) -> list[GraphNode]:
        """Those with a reference to this uid, in the order in which they came."""
        return [self.nodes[each] for each in self._dependents.get(uid, ())]

    def blocking(self, uid: str) -> list[GraphNode]:
        """The dependents that a foreground deletion waits for."""
        return [
            node
            for node in self.dependents(uid)
            if any(owner.uid == uid and owner.block_owner_deletion for owner in node.owners)
        ]

    def observe(self, event: Event) -> None:
        """Update the graph with an event of the store."""
        if event.type == DELETED:
            self._gone(event.entry.uid)
        elif event.storage not in IGNORED:
            self.see(event.storage, event.entry)

    def see(self, storage: str, entry: StoredObject) -> None:
        """This is how an object is now."""
        node = self.nodes.get(entry.uid)
        if node is None and _OWNED not in entry.raw and _DELETING not in entry.raw:
            return
        meta = _head.decode(entry.raw).metadata
        owners = tuple(meta.owner_references or ())
        deleting = meta.deletion_timestamp is not None
        finalizers = meta.finalizers or ()
        foreground, orphaning = deleting and FOREGROUND in finalizers, deleting and ORPHAN in finalizers
        if node is None:
            if not owners and not foreground and not orphaning:
                return
            node = self.nodes[entry.uid] = GraphNode(storage, entry)
        if owners != node.owners:
            self._set_owners(node, owners)
        starts_orphaning = orphaning and not node.orphaning
        starts_waiting = foreground and not node.foreground
        node.deleting, node.foreground, node.orphaning = deleting, foreground, orphaning
        if starts_orphaning:
            self._orphan(node.uid)
        elif starts_waiting:
            for dependent in self._dependents.get(node.uid, ()):
                self._attempt(dependent)
            self._attempt(node.uid)
        if not owners and not foreground and not orphaning:
            del self.nodes[entry.uid]

    def _set_owners(self, node: GraphNode, owners: tuple[OwnerReference, ...]) -> None:
        old, new = {owner.uid: owner for owner in node.owners}, {owner.uid: owner for owner in owners}
        node.owners = owners
        in_doubt = False
        for uid, owner in old.items():
            kept = new.get(uid)
            if kept is None:
                self._release(uid, node.uid)
            if owner.block_owner_deletion and (kept is None or not kept.block_owner_deletion):
                self._attempt(uid)
        for uid, owner in new.items():
            if uid not in old:
                self._dependents.setdefault(uid, {})[node.uid] = None
                in_doubt = in_doubt or not self._is_there(owner, node.namespace)
        if in_doubt:
            self._attempt(node.uid)

    def _gone(self, uid: str) -> None:
        node = self.nodes.pop(uid, None)
        for dependent in self._dependents.get(uid, ()):
            self._attempt(dependent)
        if node is None:
            return
        for owner in node.owners:
            self._release(owner.uid, uid)
            waiting = self.nodes.get(owner.uid)
            if waiting is not None and waiting.foreground:
                self._attempt(owner.uid)

    def _release(self, owner: str, dependent: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.pop(dependent, None)
            if not dependents:
                del self._dependents[owner]
