"""Ledger of the named objects: their dependents, the objects that stay, the holds, and the order.

Along goes what the named objects own, because the garbage collector would take it anyway. What merely refers to them
goes along only when asked for (`adopt`), and then only what refers to nothing else. Volumes and Secrets that were not
named stay, and are listed.
"""

from collections.abc import Callable, Iterable

import msgspec

from pilotage.catalogue.groups import is_built_in
from pilotage.catalogue.kind import KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import known, phase_of, workloads
from pilotage.catalogue.relation import Relation
from pilotage.kube import Json
from pilotage.kube.wire import format_time
from pilotage.teardown.planning.closure import Members, gather_members
from pilotage.teardown.planning.ledger import HOLD, Disposition, Entry, Ledger, Pointer, Policy, merge
from pilotage.teardown.planning.order import break_cycles, needed_by, order
from pilotage.teardown.snapshot.fields import dig
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.world import Item, World

OwnerOfFinalizer = Callable[[World, Item, str], Item | None]
"""The workload that takes a finalizer off an object, if it is known."""
WhoKeeps = Callable[[World, Item, str], str]
"""The name of that controller, for a person."""
IsAbandoned = Callable[[World, Item, str], bool]
"""Whether nobody was seen to run who would take a finalizer off an object."""


def make_ledger(
    world: World,
    graph: Graph,
    targets: Iterable[Item],
    policy: Policy,
    *,
    adopt: bool = False,
    owner_of_finalizer: OwnerOfFinalizer | None = None,
    who_keeps: WhoKeeps = lambda *_: "",
    is_abandoned: IsAbandoned = lambda *_: False,
) -> Ledger:
    """The ledger of a teardown of these objects. `adopt`: with what refers to them and to nothing else, and with the
    parts of those that are stuck in deletion.
    """
    named = list(targets)
    members = gather_members(world, graph, named, policy, adopt=adopt)
    carriers = _carriers(members)
    abandoned = {
        uid: tuple(each for each in item.meta.finalizers if adopt and is_abandoned(world, item, each))
        for uid, item in members.going.items()
    }
    holds = {
        uid
        for uid in members.going
        if _goes_in_parts(uid, members, carriers, graph, adopt=adopt, abandoned=bool(abandoned[uid]))
    }
    for uid in holds:  # its parts are ours to delete, each in its turn
        for child in members.parts(uid):
            carriers.pop(child, None)
    # One that is itself owned by something that cannot be held goes before that, and not along with it.
    wrapped = [(carriers.pop(uid), uid) for uid in members.going if uid in holds and uid in carriers]
    phases = {uid: Phase.RELEASE if uid in holds else _phase(uid, members) for uid in members.going}
    holders = {child: uid for uid in members.going if uid in holds for child in members.parts(uid)}
    keepers = [*_keepers(world, members, owner_of_finalizer), *wrapped]
    after, cycles = order(graph, phases, carriers=carriers, holders=holders, keepers=keepers)
    owners = {**holders, **carriers}
    last = _last_of_all(after, members, owners, carriers, phases)
    if members.contents or holders:  # what is in a Namespace, defined, or held may have closed another
        cycles += break_cycles(after, owners)
    entries = [
        Entry(
            resource=item.resource,
            namespace=item.meta.namespace,
            name=item.meta.name,
            uid=uid,
            phase=phases[uid],
            disposition=Disposition.COLLECT if uid in carriers else Disposition.DELETE,
            reason=members.reasons[uid],
            owner=owners.get(uid, ""),
            after=tuple(sorted(after[uid])),
            last=uid in last,
            hold=uid in holds and not item.terminating,
            finalizer_owner=", ".join(dict.fromkeys(who_keeps(world, item, each) for each in item.meta.finalizers)),
            settle_seconds=(settle := _settle_seconds(world, item, policy))[0],
            unverified=settle[1],
            abandoned=abandoned[uid],
        )
        for uid, item in members.going.items()
    ]
    entries += (
        Entry(
            resource=item.resource,
            namespace=item.meta.namespace,
            name=item.meta.name,
            uid=uid,
            phase=Phase.REMOVE,
            disposition=Disposition.KEEP,
            reason=members.reasons[uid],
            disown=tuple(owner.uid for owner in item.meta.owner_references if owner.uid in members.going),
        )
        for uid, item in members.kept.items()
    )
    entries.sort(key=lambda entry: (entry.phase, entry.namespace, entry.resource.kind, entry.name))
    return Ledger(
        targets=tuple(str(item) for item in named),
        adopt=adopt,
        started=format_time(world.now),
        policy=policy,
        entries=tuple(entries),
        cycles=tuple(cycles),
        remarks=tuple(members.remarks),
        pointers=tuple(_pointers(graph, members).values()),
    )


def plan_again(
    saved: Ledger,
    world: World,
    graph: Graph,
    *,
    owner_of_finalizer: OwnerOfFinalizer | None = None,
    who_keeps: WhoKeeps = lambda *_: "",
    is_abandoned: IsAbandoned = lambda *_: False,
) -> Ledger:
    """The ledger of a teardown that was cut off, with what has appeared since: see `merge`.

    What it took then it still takes, by uid, and what that owns by now; what it kept stays. An object that was made
    anew under an old name is another one.
    """
    kept = saved.policy.keep_uids | {entry.uid for entry in saved.kept}
    there = [item for entry in saved.going if (item := world.get(entry.uid)) is not None]
    planned = make_ledger(
        world,
        graph,
        there,
        msgspec.structs.replace(saved.policy, keep_uids=kept),
        adopt=saved.adopt,
        owner_of_finalizer=owner_of_finalizer,
        who_keeps=who_keeps,
        is_abandoned=is_abandoned,
    )
    return merge(saved, planned)


def _carriers(members: Members) -> dict[str, str]:
    """Carrier of each part that is taken along: the first of its owners that goes."""
    carriers: dict[str, str] = {}
    for uid in members.going:
        for part in members.parts(uid):
            if part not in carriers and uid not in _chain(part, carriers, uid):
                carriers[part] = uid
    return carriers


def _chain(part: str, carriers: dict[str, str], start: str) -> set[str]:
    """`start` itself if `part` carries it, directly or not: then it cannot be the carrier of `part`."""
    above = start
    seen: set[str] = set()
    while above in carriers and above not in seen:
        seen.add(above)
        above = carriers[above]
        if above == part:
            return {start}
    return {start} if start == part else set()


def _goes_in_parts(
    uid: str, members: Members, carriers: dict[str, str], graph: Graph, *, adopt: bool, abandoned: bool
) -> bool:
    """Whether an owner's parts have an order of their own: deleted with it, they would go in any.

    The parts of one that is already being deleted are its controller's to take, unless we are asked to do it, or it was
    us who began: then our finalizer is on it. Those of one that is `abandoned` would wait for it forever.
    """
    item = members.going[uid]
    if known(item.group_kind).takes_down and not abandoned:
        return False  # its controller takes them down in order
    if is_built_in(item.resource.group) and not (abandoned and item.group_kind in workloads()):
        return False
    if item.terminating and not adopt and HOLD not in item.meta.finalizers:
        return False
    below = {part for part in members.below(uid) if part in carriers}
    if item.terminating or abandoned:
        return bool(below)
    phases = {phase_of(members.going[part].group_kind) for part in below}
    return len(phases) > 1 or any(
        edge.relation is not Relation.OWNS and edge.target is not None and edge.target.uid in below
        for part in below
        for edge in graph.out_of(part)
    )


def _phase(uid: str, members: Members) -> Phase:
    """Phase by kind; an owner of something that runs counts as running, and an object of several phases goes last."""
    item = members.going[uid]
    phase = phase_of(item.group_kind)
    if phase is not Phase.REMOVE or is_built_in(item.resource.group):
        return phase
    below = {phase_of(members.going[part].group_kind) for part in members.below(uid)}
    if len(below) > 1:
        return Phase.RELEASE
    return Phase.STOP if below == {Phase.STOP} else phase


def _pointers(graph: Graph, members: Members) -> dict[str, Pointer]:
    """Objects that stay and point at a member, once each."""
    found: dict[str, Pointer] = {}
    for uid, item in members.going.items():
        for edge in graph.into(uid):
            source = edge.source
            if source.uid not in members.going and edge.relation is not Relation.OWNS and source.uid not in found:
                found[source.uid] = Pointer(
                    resource=source.resource,
                    namespace=source.meta.namespace,
                    name=source.meta.name,
                    uid=source.uid,
                    text=f"{source} {edge.relation} {item}",
                )
    return found


def _keepers(world: World, members: Members, owner_of_finalizer: OwnerOfFinalizer | None) -> list[tuple[str, str]]:
    """Pairs of a workload in the ledger and an object whose finalizer it keeps."""
    if owner_of_finalizer is None or not any(item.group_kind in workloads() for item in members.going.values()):
        return []
    pairs = []
    for uid, item in members.going.items():
        if is_built_in(item.resource.group):
            continue
        for finalizer in item.meta.finalizers:
            workload = owner_of_finalizer(world, item, finalizer)
            if workload is not None and workload.uid in members.going:
                pairs.append((workload.uid, uid))
    return pairs


def _last_of_all(
    after: dict[str, set[str]],
    members: Members,
    owners: dict[str, str],
    carriers: dict[str, str],
    phases: dict[str, Phase],
) -> set[str]:
    """Let Namespaces and definitions wait for all that is in them; returns what waits for all that runs.

    That is what nothing is known about: a ConfigMap that no workload mounts may still be read by one. Custom resources
    with finalizers do not wait: what runs may be what finalizes them.
    """
    running = {uid for uid in members.going if phases[uid] <= Phase.STOP}
    beside: dict[str, set[str]] = {}
    for uid in running & owners.keys() - carriers.keys():
        beside.setdefault(owners[uid], set()).add(uid)
    needed = needed_by(after, owners, running)
    last = set()
    for uid, item in members.going.items():
        if uid in members.contents:
            after[uid] |= {part for part in members.contents[uid] if part in members.going and part not in carriers}
        elif uid in carriers or uid in needed or (item.meta.finalizers and not is_built_in(item.resource.group)):
            continue
        elif phases[uid] is Phase.REMOVE and not after[uid] & running:
            if uid in owners:  # a part waits for what runs beside it
                after[uid] |= beside.get(owners[uid], set())
            else:
                last.add(uid)
    return last


def _settle_seconds(world: World, item: Item, policy: Policy) -> tuple[float, str]:
    """Seconds to wait after a route is gone, and what then is unverified; zero and nothing for what is no route.

    A route that no router has taken up is programmed nowhere, so there is nothing to wait for. One that has been taken
    up is in a proxy, and nothing in the API says when the proxy has dropped it: that takes a bounded wait, and the
    receipt says so.
    """
    kind = known(item.group_kind)
    if kind.phase is not Phase.DETACH:
        return 0.0, ""
    body = world.body(item)
    if body is not None and not _taken_up(kind, body):
        return policy.drain_seconds, ""
    seconds = policy.detach_seconds + policy.drain_seconds
    return seconds, f"no proxy was asked whether it still has the route; waited {policy.detach_seconds:g} s"


def _taken_up(kind: KnownKind, route: Json) -> bool:
    """Whether a router has written a status on it. Kinds whose routers write none count as taken up."""
    values = (dig(route, *path.split(".")) for path in kind.route_status)
    return not kind.route_status or any(value not in (None, "", [], {}) for value in values)
