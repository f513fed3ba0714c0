"""Whether an object is a part of an endpoint where the caches cannot tell: its owners are read from the API.

An object whose owners are all gone is what the garbage collector takes in any case: to take it loses nothing that would
stay. That is how a pod counts whose ReplicaSet went before any cache has shown it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pilotage.api.teardown import Target
from pilotage.controllers.caches import Caches, owners_of
from pilotage.controllers.seals import Identity
from pilotage.kube import Absent, Client, KindNotServed, Object, ObjectKey, Resource
from pilotage.runtime.store import Store
from pilotage.teardown.planning.ledger import Entry

OWNERS_DEEP = 4
"""A pod, its ReplicaSet, its Deployment, the InferenceService above: nothing of ours goes deeper."""


class Known(NamedTuple):
    """An `Identity` by value."""

    namespace: str
    uid: str
    ledger: frozenset[str] = frozenset()


def of_target(target: Target, endpoints: Store) -> Known:
    """The endpoint that a Teardown is about, with its ledger while it is there."""
    found = endpoints.get(ObjectKey(target.namespace, target.name))
    written = found.get("status", "ledger", default=[]) if found is not None and found.meta.uid == target.uid else []
    return Known(target.namespace, target.uid, uids_of(written))


def uids_of(ledger: Iterable[object]) -> frozenset[str]:
    """The uids in an endpoint's `status.ledger`."""
    return frozenset(each["uid"] for each in ledger if isinstance(each, dict) and each.get("uid"))


async def is_proven(
    client: Client, caches: Caches, whose: Identity, resource: Resource, obj: Object, *, deep: int = OWNERS_DEEP
) -> bool:
    """Whether an object is a part of an endpoint, or made from one. An ApiError if an owner cannot be read."""
    if caches.counts(whose, resource, obj):
        return True
    owners = owners_of(obj)
    if obj.meta.namespace != whose.namespace or not owners or not deep:
        return False
    stays = False
    for owner in owners:
        kind = caches.kind(owner.api_version, owner.kind)
        if kind is None:
            return False
        try:
            found = await client.get(kind, ObjectKey(whose.namespace, owner.name), metadata_only=True)
        except Absent:
            continue
        except KindNotServed:  # nobody can say that it is gone, and the collector takes nothing of it either
            stays = True
            continue
        if found.meta.uid != owner.uid:
            continue
        if await is_proven(client, caches, whose, kind, found, deep=deep - 1):
            return True
        stays = True
    return not stays


async def refused(client: Client, caches: Caches, whose: Identity, entry: Entry, *, kept: str = "") -> str:
    """Why an entry of a ledger that was read back must not be acted on; empty if it may.

    What is gone or already going is fine: nothing is done to it on the ledger's word. `kept`: what `kept_for` gives,
    where its seal is a proof, too.
    """
    if entry.namespace != whose.namespace:
        return f"{entry} is in another namespace than the endpoint"
    kind = caches.kind(entry.resource.api_version, entry.resource.kind)
    if kind is None or kind.plural != entry.resource.plural:
        return f"{entry} is of a kind that endpoints are not made of"
    found = caches.get(kind, entry.key)
    if found is None:
        try:
            found = await client.get(entry.resource, entry.key, metadata_only=True)
        except (Absent, KindNotServed):
            return ""
    if found.meta.uid != entry.uid or found.meta.terminating:
        return ""
    if (kept and caches.seals.fits(kind, found, kept)) or await is_proven(client, caches, whose, kind, found):
        return ""
    return f"{entry} is not proven to be a part of the endpoint: it carries no seal of the operator for it"
