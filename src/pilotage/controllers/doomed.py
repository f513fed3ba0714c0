"""From what a Teardown names to the engine's ledger: the parts, as they are, and what was made of them.

A part that is named without a uid is the object of that name that carries the target's label: it was written down
before it was made, and the answer never came. Any other object of that name is somebody else's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from pilotage.controllers.caches import Seen
from pilotage.kinds.names import LABEL_ENDPOINT_UID
from pilotage.kube import Absent, KindNotServed, ObjectKey, Resource
from pilotage.teardown.keepers import keeper
from pilotage.teardown.ledger import merge
from pilotage.teardown.plan import make_ledger
from pilotage.teardown.policy import Keep, Policy
from pilotage.teardown.relations import relate
from pilotage.teardown.world import Item, KindReading, World

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from pilotage.controllers.caches import Caches
    from pilotage.controllers.strangers import Look
    from pilotage.kinds.endpoint import Deletion
    from pilotage.kinds.teardown import Doomed, TeardownSpec
    from pilotage.kube import Client
    from pilotage.teardown.ledger import Ledger

UNPROVEN_SECONDS = 5.0
"""How long a router that nobody can look into is given to let go of a route."""


async def find_parts(client: Client, caches: Caches, spec: TeardownSpec) -> list[Seen]:
    """Everything that a Teardown takes, and what was made of it. An ApiError if something could not be read."""
    found: dict[str, Seen] = {}
    if spec.all_parts:
        found = {seen.object.meta.uid: seen for seen in caches.parts_of(spec.target.uid)}
    named = await asyncio.gather(*(_part(client, caches, spec, doomed) for doomed in spec.parts))
    found |= {seen.object.meta.uid: seen for seen in named if seen is not None}
    return with_owned(caches, found.values())


def parts_now(caches: Caches, spec: TeardownSpec, ledger: Ledger) -> list[Seen]:
    """What the caches have of all that a Teardown takes: what has appeared since it began is among it."""
    found = {seen.object.meta.uid: seen for seen in caches.parts_of(spec.target.uid) if spec.all_parts}
    for entry in ledger.going:
        obj = caches.get(entry.resource, entry.key)
        if obj is not None and obj.meta.uid == entry.uid and entry.uid not in found:
            found[entry.uid] = Seen(entry.resource, obj, caches.is_full(entry.resource))
    return with_owned(caches, found.values())


def with_owned(caches: Caches, parts: Iterable[Seen]) -> list[Seen]:
    """These, and all that is owned by them."""
    found = {seen.object.meta.uid: seen for seen in parts}
    open_ = [*found]
    while open_:
        for seen in caches.owned_by(open_.pop()):
            uid = seen.object.meta.uid
            if uid not in found:
                found[uid] = seen
                open_.append(uid)
    return [*found.values()]


async def _part(client: Client, caches: Caches, spec: TeardownSpec, doomed: Doomed) -> Seen | None:
    """One that is named, from the cache or from the API; None if it is gone, or is somebody else's."""
    group, _, version = doomed.api_version.rpartition("/")
    resource = Resource(group, version, doomed.resource, doomed.kind)
    key = ObjectKey(spec.target.namespace, doomed.name)
    obj, full = caches.get(resource, key), True
    if obj is None:
        try:
            obj = await client.get(resource, key)
        except Absent:
            return None
        except KindNotServed:
            if caches.serves(resource):
                raise
            return None  # nothing of a kind that the cluster does not have can be there
    ours = obj.meta.uid == doomed.uid if doomed.uid else obj.meta.labels.get(LABEL_ENDPOINT_UID) == spec.target.uid
    return Seen(resource, obj, full) if ours else None


def first_ledger(
    spec: TeardownSpec, parts: list[Seen], beside: Look, now: dt.datetime, *, remarks: tuple[str, ...] = ()
) -> Ledger:
    """The ledger of a teardown that begins. What is `beside` the parts and points at one stays, and is named."""
    world = _world(parts, now, spec.target.namespace)
    named = _named(world)  # what is owned by something else here goes with it
    _add(world, beside.found)
    ledger = make_ledger(world, relate(world), named, _policy(spec.deletion), who_keeps=_who_keeps)
    return msgspec.structs.replace(ledger, remarks=(*ledger.remarks, *remarks, *beside.problems))


def grown_ledger(ledger: Ledger, parts: list[Seen], now: dt.datetime, namespace: str) -> Ledger:
    """The ledger with parts that have appeared since; the same one if there are none."""
    known = {entry.uid for entry in ledger.entries}
    if all(seen.object.meta.uid in known for seen in parts):
        return ledger
    world = _world(parts, now, namespace)
    planned = make_ledger(world, relate(world), _named(world), ledger.policy, who_keeps=_who_keeps)
    return msgspec.structs.replace(merge(ledger, planned), started=ledger.started)


def _who_keeps(world: World, item: Item, finalizer: str) -> str:
    """As a person calls the controller that takes a finalizer off."""
    return keeper(world, item, finalizer).who


def _named(world: World) -> list[Item]:
    return [item for item in world if not any(world.get(owner.uid) is not None for owner in item.meta.owner_references)]


def _world(parts: list[Seen], now: dt.datetime, namespace: str) -> World:
    world = World(now, live=False, namespaces=(namespace,))
    _add(world, parts)
    return world


def _add(world: World, found: Iterable[Seen]) -> None:
    for seen in found:
        if world.get(seen.object.meta.uid) is None:
            world.add(Item(seen.resource, seen.object, full=seen.full))
            world.read_kind(KindReading(seen.resource))


def _policy(deletion: Deletion) -> Policy:
    timeouts = deletion.timeouts
    keep = {"Volumes": Keep.VOLUMES, "ModelCache": Keep.CACHES, "Secrets": Keep.SECRETS}
    return Policy(
        keep=frozenset(keep[each] for each in deletion.keep if each in keep),
        drain_seconds=deletion.drain_seconds,
        detach_seconds=UNPROVEN_SECONDS,
        timeout_seconds=timeouts.detach + timeouts.drain + timeouts.quiesce + timeouts.stop + timeouts.remove,
    )
