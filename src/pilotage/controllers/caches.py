"""Caches of the parts of endpoints: one informer for each kind, of labelled objects only.

Of what others make from our parts (ReplicaSets, pods, slices) the metadata is enough. Kinds that a cluster may not
have (Gateway API, Contour, KServe, KEDA; our own that came later, after an upgrade) are empty until it has them.

A label proves nothing. An object counts as a part of an endpoint in the endpoint's namespace only, and only if it is
sealed, or stands in the endpoint's ledger, or is owned by one that counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pilotage.api.names import LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_MANAGED_BY, MANAGED_BY, PROCESSES
from pilotage.controllers.seals import Identity, Seals
from pilotage.kube import PODS, Object, ObjectKey, Resource
from pilotage.kube.wire import OwnerReference
from pilotage.runtime.informer import Informer
from pilotage.runtime.manager import Manager
from pilotage.serving.resources import (
    AUTOSCALERS,
    CLAIMS,
    DEPLOYMENTS,
    INFERENCE_SERVICES,
    JOBS,
    REPLICA_SETS,
    SCALED_OBJECTS,
    SERVICES,
    SLICES,
)
from pilotage.traffic.routers import ROUTERS

MADE_BY_US = (
    DEPLOYMENTS,
    SERVICES,
    CLAIMS,
    AUTOSCALERS,
    JOBS,
    *(each.resource for each in ROUTERS.values() if each.built_in and each.resource is not None),
)
MADE_BY_US_WHERE_SERVED = (
    INFERENCE_SERVICES,
    SCALED_OBJECTS,
    PROCESSES,
    *(each.resource for each in ROUTERS.values() if not each.built_in and each.resource is not None),
)
MADE_FROM_OURS = (REPLICA_SETS, PODS, SLICES)

SELECTOR = f"{LABEL_MANAGED_BY}={MANAGED_BY},{LABEL_ENDPOINT_UID}"
OWNERS_MAX = 3
"""Controllers give an object one owner, rarely two. Thousands would be looked up one by one, while others wait."""
_BY_UID = "endpoint uid"
_BY_ENDPOINT = "endpoint"
_BY_OWNER = "owner"


class Seen(NamedTuple):
    """One object of a cache."""

    resource: Resource
    object: Object
    full: bool
    """Whether all of it is known, or its metadata alone."""


class Caches:
    """The caches, and which of their objects count as parts of an endpoint."""

    def __init__(self, manager: Manager, seals: Seals, namespace: str = "") -> None:
        """`namespace`: look at one only."""
        self.seals = seals
        self.informers: dict[Resource, Informer] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        for resource in (*MADE_BY_US, *MADE_BY_US_WHERE_SERVED, *MADE_FROM_OURS):
            informer = manager.informer(
                resource,
                namespace=namespace,
                labels=SELECTOR,
                metadata_only=resource in MADE_FROM_OURS,
                optional=resource in MADE_BY_US_WHERE_SERVED,
            )
            informer.add_index(_BY_UID, _endpoint_uid)
            informer.add_index(_BY_ENDPOINT, _endpoint)
            informer.add_index(_BY_OWNER, _owners)
            self.informers[resource] = informer
            self._kinds[resource.group, resource.kind] = resource

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """One object, if it is labelled as a part."""
        informer = self.informers.get(resource)
        return informer.store.get(key) if informer is not None else None

    def has(self, resource: Resource) -> bool:
        """Whether there is a cache of a kind."""
        return resource in self.informers

    def is_full(self, resource: Resource) -> bool:
        """Whether a cache has whole objects."""
        return resource not in MADE_FROM_OURS

    def serves(self, resource: Resource) -> bool:
        """Whether the cluster has a kind, as far as is known."""
        informer = self.informers.get(resource)
        return informer is not None and not informer.absent

    def kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind that parts can be of, in whatever version."""
        return self._kinds.get((api_version.rpartition("/")[0], kind))

    def part(self, whose: Identity, resource: Resource, name: str) -> Object | None:
        """The part of an endpoint that has this name, as far as the cache knows."""
        found = self.get(resource, ObjectKey(whose.namespace, name))
        return found if found is not None and self.counts(whose, resource, found) else None

    def counts(self, whose: Identity, resource: Resource, obj: Object) -> bool:
        """Whether an object is a part of an endpoint, or was made from one that the caches have."""
        return self._counts(whose, resource, obj, {})

    def parts_of(self, whose: Identity) -> list[Seen]:
        """Everything that is proven to be a part of an endpoint, or made from one."""
        known: dict[str, bool] = {}
        labelled = self.labelled(whose.namespace, whose.uid)
        return [seen for seen in labelled if self._counts(whose, seen.resource, seen.object, known)]

    def labelled(self, namespace: str, uid: str) -> list[Seen]:
        """Everything that carries the label with an endpoint's uid, whoever put it there."""
        return self._indexed(_BY_UID, _placed(namespace, uid))

    def named_for(self, key: ObjectKey) -> list[Seen]:
        """Everything that is labelled with the name of an endpoint, whoever put the label there."""
        return self._indexed(_BY_ENDPOINT, _placed(key.namespace, key.name))

    def owned_by(self, namespace: str, uid: str) -> list[Seen]:
        """Everything in a namespace that names an object there as its owner."""
        return self._indexed(_BY_OWNER, _placed(namespace, uid))

    def _counts(self, whose: Identity, resource: Resource, obj: Object, known: dict[str, bool]) -> bool:
        """Look for a proven part among the object and its owners, iteratively: a forged chain of owners may be long."""
        if obj.meta.namespace != whose.namespace:
            return False
        owned: dict[str, str] = {obj.meta.uid: ""}
        """The uid of the object that an owner was found by, by the owner's uid."""
        open_ = [(resource, obj)]
        while open_:
            kind, each = open_.pop()
            uid = each.meta.uid
            if known.get(uid, False) or self.seals.is_part(whose, kind, each):
                while uid:
                    known[uid] = True
                    uid = owned[uid]
                return True
            for owner in () if uid in known else owners_of(each):
                found = self._owner(whose, owner)
                if found is not None and owner.uid not in owned:
                    owned[owner.uid] = uid
                    open_.append(found)
        known |= dict.fromkeys(owned, False)
        return False

    def _owner(self, whose: Identity, owner: OwnerReference) -> tuple[Resource, Object] | None:
        """The owner that is meant, if the caches have it; one is always in the namespace of what it owns."""
        resource = self.kind(owner.api_version, owner.kind)
        found = self.get(resource, ObjectKey(whose.namespace, owner.name)) if resource is not None else None
        return (resource, found) if resource is not None and found is not None and found.meta.uid == owner.uid else None

    def _indexed(self, index: str, value: str) -> list[Seen]:
        return [
            Seen(resource, obj, not informer.metadata_only)
            for resource, informer in self.informers.items()
            if len(informer.store)
            for obj in informer.store.indexed(index, value)
        ]

    def __iter__(self) -> Iterator[Informer]:
        return iter(self.informers.values())


def endpoint_of(obj: Object) -> ObjectKey:
    """The key of the endpoint that a part is labelled with, which may be gone."""
    return ObjectKey(obj.meta.namespace, obj.meta.labels.get(LABEL_ENDPOINT, ""))


def owners_of(obj: Object) -> Sequence[OwnerReference]:
    """The owners of an object that are looked at: none where somebody has given it more than any controller does."""
    found = obj.meta.owner_references
    return found if len(found) <= OWNERS_MAX else ()


def _endpoint_uid(obj: Object) -> Iterable[str]:
    return (_placed(obj.meta.namespace, obj.meta.labels.get(LABEL_ENDPOINT_UID, "")),)


def _endpoint(obj: Object) -> Iterable[str]:
    return (_placed(obj.meta.namespace, obj.meta.labels.get(LABEL_ENDPOINT, "")),)


def _owners(obj: Object) -> Iterable[str]:
    return (_placed(obj.meta.namespace, owner.uid) for owner in owners_of(obj))


def _placed(namespace: str, value: str) -> str:
    """An index value within one namespace: objects of others are never found by it."""
    return f"{namespace}/{value}"
