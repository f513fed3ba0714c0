"""Order of the entries of a ledger: which of them have to be gone before which.

The order comes from the relations, not from a list of kinds: who points at something usually needs it, and goes first.
What cannot be ordered, because it waits for itself in a circle, goes together, and the circle is reported.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from pilotage.catalogue.names import SERVICE, SERVICE_ACCOUNT
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import known
from pilotage.catalogue.relation import Relation
from pilotage.teardown.snapshot.graph import Edge, Graph

_SOURCE_FIRST = frozenset(
    {
        Relation.ROUTES_TO,
        Relation.SCALES,
        Relation.MOUNTS,
        Relation.CLAIMS,
        Relation.TARGETS,
        Relation.NEEDS,
        Relation.PROTECTS,
    }
)
_TRAFFIC = frozenset({Relation.ROUTES_TO, Relation.SCALES, Relation.SELECTS})

Waiting = dict[str, set[str]]
"""Uid -> the uids that have to be gone before it."""
Point = tuple[str, bool]
"""A uid that begins to go, or (true) that is gone."""
T = TypeVar("T", bound=Hashable)


def order(
    graph: Graph,
    phases: Mapping[str, Phase],
    *,
    carriers: Mapping[str, str],
    holders: Mapping[str, str],
    keepers: Iterable[tuple[str, str]] = (),
) -> tuple[Waiting, list[tuple[str, ...]]]:
    """The uids that each uid of `phases` waits for, and the cycles that were broken to get there.

    `carriers`: who goes along with whom; what the one waits for, the other has to wait for.
    `holders`: whose parts go one by one, by the uid of a part. The holder is marked first, and goes when they are gone.
    `keepers` are pairs (who keeps a finalizer, on which object): the keeper goes after the object.
    """
    after: Waiting = {uid: set() for uid in phases}
    running_parts: dict[str, list[str]] = {holder: [] for holder in holders.values()}
    for part, holder in holders.items():
        if phases[part] >= Phase.STOP:
            running_parts[holder].append(part)
    for uid in phases:
        for edge in graph.out_of(uid):
            if edge.target is not None and edge.target.uid in phases and edge.target.uid != uid:
                _by_relation(after, edge, phases, running_parts)
        _through_services(after, graph, uid, phases)
        _through_accounts(after, graph, uid, phases)
    for keeper, kept in keepers:
        if keeper in phases and kept in phases and keeper != kept:
            after[keeper].add(kept)
            after[kept] = {uid for uid in after[kept] if uid != keeper and keeper not in _upwards(uid, carriers)}
    _lift(after, carriers)
    _scale_until_drained(after, phases)
    for part in holders:
        for holder in _upwards(part, holders, carriers):
            after[holder].discard(part)
            after[part].discard(holder)
    return after, break_cycles(after, {**holders, **carriers})


def _lift(after: Waiting, carriers: Mapping[str, str]) -> None:
    """Move the waits of a carried object to its carrier, and drop waits between a carrier and what it carries."""
    for uid in carriers:
        carried = [uid]
        while (carrier := carriers.get(carried[-1])) is not None and carrier not in carried:
            carried.append(carrier)
        if len(carried) > 1:
            after[carried[-1]] |= after[uid] - set(carried)
    for uid in carriers:
        for carrier in _upwards(uid, carriers):
            after[carrier].discard(uid)
            after[uid].discard(carrier)


def _upwards(uid: str, *ways: Mapping[str, str]) -> list[str]:
    """All above an object, by whichever of the mappings has it."""
    found: list[str] = []
    open_ = [uid]
    while open_:
        below = open_.pop()
        for way in ways:
            above = way.get(below)
            if above is not None and above not in found and above != uid:
                found.append(above)
                open_.append(above)
    return found


def _by_relation(after: Waiting, edge: Edge, phases: Mapping[str, Phase], parts: Mapping[str, list[str]]) -> None:
    assert edge.target is not None
    source, target = edge.source.uid, edge.target.uid
    if edge.relation is Relation.OWNS:
        return  # the plan decides how owners go
    if edge.relation is Relation.DEFINES or known(edge.source.group_kind).guard is not None:
        after[source].add(target)
    elif phases[target] is Phase.DETACH and phases[source] > Phase.DETACH:
        for uid in parts.get(source, (source,)):  # a rollout and the route it moves: routes go first, whoever has them
            after[uid].add(target)
    elif edge.relation in _SOURCE_FIRST or phases[source] <= phases[target]:
        # A holder may be marked before its routes and autoscalers are gone: what runs below it is what they are for.
        waiting = parts[target] if edge.relation in _TRAFFIC and target in parts else (target,)
        for uid in waiting:
            after[uid].add(source)
    else:
        after[source].add(target)


def _through_services(after: Waiting, graph: Graph, uid: str, phases: Mapping[str, Phase]) -> None:
    """Order sources of traffic before the workload behind a Service, and observers of the Service after it."""
    for edge in graph.out_of(uid):
        if edge.target is None or edge.relation not in (Relation.ROUTES_TO, Relation.TARGETS, Relation.SELECTS):
            continue
        if edge.name.group_kind != SERVICE:
            continue
        for behind in graph.out_of(edge.target.uid):
            selected = behind.target.uid if behind.relation is Relation.SELECTS and behind.target else ""
            if selected not in phases or selected == uid:
                continue
            if phases[uid] < phases[selected]:
                after[selected].add(uid)
            elif phases[uid] > phases[selected]:
                after[uid].add(selected)


def _scale_until_drained(after: Waiting, phases: Mapping[str, Phase]) -> None:
    """Keep the scaler of a workload as long as there are routes to it: there is traffic until then."""
    for uid, phase in phases.items():
        if phase is Phase.STOP:
            routes = {other for other in after[uid] if phases[other] is Phase.DETACH}
            for other in after[uid]:
                if Phase.DETACH < phases[other] < Phase.STOP:
                    after[other] |= routes


def _through_accounts(after: Waiting, graph: Graph, uid: str, phases: Mapping[str, Phase]) -> None:
    """Keep the role bindings of a ServiceAccount until the workloads that run under it are gone."""
    for edge in graph.out_of(uid):
        if edge.relation is Relation.TARGETS and edge.name.group_kind == SERVICE_ACCOUNT and edge.target is not None:
            users = (each.source.uid for each in graph.into(edge.target.uid) if each.relation is Relation.MOUNTS)
            after[uid].update(user for user in users if user in phases and user != uid)


def break_cycles(after: Waiting, owners: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Let nobody wait within a circle; returns the circles. `owners`: whose part an object is, held or carried."""
    points = [(uid, ends) for uid in after for ends in (False, True)]
    circles = []
    for circle in strongly_connected(points, _waiting(after, owners)):
        gone = {uid for uid, ends in circle if ends}
        waiting = [uid for uid, ends in circle if not ends and after[uid] & gone]
        for uid in waiting:
            after[uid] -= gone
        if waiting:
            circles.append(tuple(dict.fromkeys(uid for uid, _ in circle)))
    return circles


def needed_by(after: Waiting, owners: Mapping[str, str], uids: Iterable[str]) -> set[str]:
    """All that has to begin or to be gone before these are gone, themselves included."""
    waits_for = _waiting(after, owners)
    open_ = [(uid, True) for uid in uids]
    found = set(open_)
    while open_:
        for point in waits_for(open_.pop()):
            if point not in found:
                found.add(point)
                open_.append(point)
    return {uid for uid, _ in found}


def _waiting(after: Waiting, owners: Mapping[str, str]) -> Callable[[Point], list[Point]]:
    """Points that a point waits for.

    An object begins to go and, later, is gone. What waits for it waits until it is gone with its parts; a part begins
    when its owner has begun.
    """
    parts: dict[str, list[str]] = {}
    for part, owner in owners.items():
        if part in after and owner in after:
            parts.setdefault(owner, []).append(part)

    def waits_for(point: Point) -> list[Point]:
        uid, ends = point
        if ends:
            return [(uid, False), *((part, True) for part in parts.get(uid, ()))]
        begun = [(owners[uid], False)] if owners.get(uid) in after else []
        return [*begun, *((other, True) for other in sorted(after[uid]))]

    return waits_for


def strongly_connected(nodes: Iterable[T], successors: Callable[[T], Iterable[T]]) -> list[tuple[T, ...]]:
    """The strongly connected components of a graph (Tarjan's algorithm, without recursion), sinks first."""
    index: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    on_stack: set[T] = set()
    found: list[tuple[T, ...]] = []
    for root in nodes:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        path = [(root, iter(successors(root)))]
        while path:
            node, remaining = path[-1]
            for other in remaining:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    path.append((other, iter(successors(other))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    found.append(tuple(reversed(component)))
    return found
