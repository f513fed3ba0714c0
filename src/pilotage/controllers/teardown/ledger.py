"""The engine's ledger of a Teardown: the parts that it names, as they are, and what was made of them.

A part that is named without a uid is the object of that name that is sealed for the target: it was written down before
it was made, and the answer never came. One that is named with a uid has to be a proven part, too: whoever may create a
Teardown can name anything. What is not proven stays, and the receipt says so.
"""

import asyncio
import datetime as dt
from collections.abc import Iterable

import msgspec

from pilotage.api.endpoint import Deletion
from pilotage.api.teardown import TeardownPart, TeardownSpec
from pilotage.controllers.caches import Caches, Seen
from pilotage.controllers.proof import is_proven
from pilotage.controllers.seals import Identity
from pilotage.controllers.teardown.foreign_references import PossibleReferrers
from pilotage.kube import Absent, Client, KindNotServed, ObjectKey
from pilotage.teardown.diagnosis.finalizer_owners import finalizer_owner
from pilotage.teardown.planning.ledger import Ledger, Policy, kept_by_spec, merge
from pilotage.teardown.planning.plan import make_ledger
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.world import Item, KindReading, World

NAMED_MAX = 5
"""Maximum number of objects that are named in a remark."""
UNPROVEN_SECONDS = 5.0
"""Time that a router without readable proxies is given to drop a route."""


async def find_parts(
    client: Client, caches: Caches, whose: Identity, spec: TeardownSpec
) -> tuple[list[Seen], tuple[str, ...]]:
    """Everything that a Teardown takes, and what was made of it; and remarks on what was named and stays.

    An ApiError if something could not be read.
    """
    found: dict[str, Seen] = {}
    if spec.all_parts:
        found = {seen.object.meta.uid: seen for seen in caches.parts_of(whose)}
    named = await asyncio.gather(*(_part(client, caches, whose, part) for part in spec.parts))
    found |= {seen.object.meta.uid: seen for seen in named if isinstance(seen, Seen)}
    return with_owned(caches, found.values()), tuple(remark for remark in named if isinstance(remark, str))


def parts_now(caches: Caches, whose: Identity, spec: TeardownSpec, ledger: Ledger) -> list[Seen]:
    """The cached objects that a Teardown takes, also those that have appeared since it began."""
    found = {seen.object.meta.uid: seen for seen in (caches.parts_of(whose) if spec.all_parts else ())}
    for entry in ledger.going:
        obj = caches.get(entry.resource, entry.key)
        if obj is not None and obj.meta.uid == entry.uid and entry.uid not in found:
            found[entry.uid] = Seen(entry.resource, obj, caches.is_full(entry.resource))
    return with_owned(caches, found.values())


def with_owned(caches: Caches, parts: Iterable[Seen]) -> list[Seen]:
    """These, and all that is owned by them, each in its own namespace."""
    found = {seen.object.meta.uid: seen for seen in parts}
    open_ = [*found.values()]
    while open_:
        owner = open_.pop().object.meta
        for seen in caches.owned_by(owner.namespace, owner.uid):
            uid = seen.object.meta.uid
            if uid not in found:
                found[uid] = seen
                open_.append(seen)
    return [*found.values()]


async def _part(client: Client, caches: Caches, whose: Identity, named: TeardownPart) -> Seen | str | None:
    """One that is named, from the cache or from the API; None if it is gone; a remark if it is not the target's."""
    resource = caches.kind(named.api_version, named.kind)
    said = f"{named.kind.lower()}/{named.name}"
    if resource is None or resource.plural != named.resource:
        return f"{said} stays: endpoints are not made of this kind"
    key = ObjectKey(whose.namespace, named.name)
    obj = caches.get(resource, key)
    if obj is None:
        try:
            obj = await client.get(resource, key)
        except Absent:
            return None
        except KindNotServed:
            if caches.serves(resource):
                raise
            return None  # nothing of a kind that the cluster does not have can be there
    if named.uid and obj.meta.uid != named.uid:
        return None
    if await is_proven(client, caches, whose, resource, obj):
        return Seen(resource, obj, caches.is_full(resource))
    if not named.uid:
        return None
    return f"{said} stays: it is not proven to be a part of the endpoint, and carries no seal of the operator for it"


def unproven(caches: Caches, whose: Identity, parts: Iterable[Seen]) -> list[Seen]:
    """Objects that carry the label of an endpoint and are not among its parts: somebody else has labelled them so."""
    known = {seen.object.meta.uid for seen in parts}
    return [seen for seen in caches.labelled(whose.namespace, whose.uid) if seen.object.meta.uid not in known]


def first_ledger(
    spec: TeardownSpec,
    parts: list[Seen],
    labelled: list[Seen],
    beside: PossibleReferrers,
    now: dt.datetime,
    *,
    remarks: tuple[str, ...] = (),
) -> Ledger:
    """The ledger of a teardown that begins. What is `beside` the parts and points at one stays, and is named.

    `labelled`: what `unproven` gives, which stays, too.
    """
    world = _world(parts, now, spec.target.namespace)
    named = _named(world)  # what is owned by something else here goes with it
    _add(world, [*beside.objects, *labelled])
    if labelled:
        names = sorted(f"{seen.resource.kind.lower()}/{seen.object.meta.name}" for seen in labelled)
        more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
        said = f"{', '.join(names[:NAMED_MAX])}{more} stay, labelled as parts of the endpoint, but not proven to be"
        remarks = (*remarks, said)
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
    """Name, for people, of the controller that removes a finalizer."""
    return finalizer_owner(world, item, finalizer).who


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
    return Policy(
        keep=kept_by_spec(deletion.keep),
        drain_seconds=deletion.drain_seconds,
        detach_seconds=UNPROVEN_SECONDS,
        timeout_seconds=deletion.timeouts.total(),
    )
