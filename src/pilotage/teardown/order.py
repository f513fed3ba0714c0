"""In which order the objects of a ledger go: which of them have to be gone before which.

The order comes from the relations, not from a list of kinds: who points at something usually needs it, and goes first.
What cannot be ordered, because it waits for itself in a circle, goes together, and the circle is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.teardown.graph import Relation
from pilotage.teardown.phases import Phase
from pilotage.teardown.world import GroupKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pilotage.teardown.graph import Edge, Graph

_SOURCE_FIRST = frozenset(
    {Relation.ROUTES_TO, Relation.SCALES, Relation.MOUNTS, Relation.CLAIMS, Relation.TARGETS, Relation.PROTECTS}
)
_GUARDS = frozenset({GroupKind("policy", "PodDisruptionBudget")})
"""They protect without forbidding the delete: they stay until what they protect is gone."""

Waiting = dict[str, set[str]]
"""Uid -> the uids that have to be gone before it."""


def order(
    graph: Graph,
    phases: Mapping[str, Phase],
    *,
    carriers: Mapping[str, str],
    holders: Mapping[str, str],
    keepers: Iterable[tuple[str, str]] = (),
) -> tuple[Waiting, list[tuple[str, ...]]]:
    """What each uid of `phases` has to wait for, and the circles that were broken up to get there.

    `carriers`: who goes along with whom; what the one waits for, the other has to wait for.
    `holders`: whose parts go one by one, by the uid of a part. The holder is marked first, and goes when they are gone.
    `keepers` are pairs (who keeps a finalizer, on which object): the keeper goes after the object.
    """
    after: Waiting = {uid: set() for uid in phases}
    for uid in phases:
        for edge in graph.out_of(uid):
            if edge.target is not None and edge.target.uid in phases and edge.target.uid != uid:
                _by_relation(after, edge, phases)
        _through_services(after, graph, uid, phases)
    for keeper, kept in keepers:
        if keeper in phases and kept in phases and keeper != kept:
            after[keeper].add(kept)
            after[kept].discard(keeper)
    _lift(after, carriers)
    for part in holders:
        for holder in _upwards(part, holders, carriers):
            after[holder].discard(part)
    return after, _break_cycles(after, holders)


def _lift(after: Waiting, carriers: Mapping[str, str]) -> None:
    """What is carried along cannot wait by itself: its carrier waits for it. Nobody waits for what he carries."""
    for uid in carriers:
        carried = [uid]
        while (carrier := carriers.get(carried[-1])) is not None and carrier not in carried:
            carried.append(carrier)
        if len(carried) > 1:
            after[carried[-1]] |= after[uid] - set(carried)
    for uid in carriers:
        for carrier in _upwards(uid, carriers, {}):
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


def _by_relation(after: Waiting, edge: Edge, phases: Mapping[str, Phase]) -> None:
    assert edge.target is not None
    source, target = edge.source.uid, edge.target.uid
    if edge.relation is Relation.OWNS:
        return  # the plan decides how owners go
    if edge.relation is Relation.DEFINES or edge.source.group_kind in _GUARDS:
        after[source].add(target)
    elif edge.relation in _SOURCE_FIRST or phases[source] <= phases[target]:
        after[target].add(source)
    else:
        after[source].add(target)


def _through_services(after: Waiting, graph: Graph, uid: str, phases: Mapping[str, Phase]) -> None:
    """Who sends traffic to a Service goes before the workload behind it, not only before the Service."""
    if phases[uid] not in (Phase.DETACH, Phase.QUIESCE):
        return
    for edge in graph.out_of(uid):
        if edge.relation in (Relation.ROUTES_TO, Relation.TARGETS) and edge.target is not None:
            for behind in graph.out_of(edge.target.uid):
                selected = behind.target.uid if behind.relation is Relation.SELECTS and behind.target else ""
                if selected in phases and selected != uid:
                    after[selected].add(uid)


def _break_cycles(after: Waiting, holders: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Within a circle nobody waits for anybody of it; returns the circles."""

    def waits_for(uid: str) -> set[str]:
        holder = holders.get(uid)
        return after[uid] if holder is None else after[uid] | {holder}

    circles = [circle for circle in strongly_connected(after, waits_for) if len(circle) > 1]
    for circle in circles:
        members = set(circle)
        for uid in circle:
            after[uid] -= members
    return circles


def strongly_connected(nodes: Iterable[str], successors: Callable[[str], Iterable[str]]) -> list[tuple[str, ...]]:
    """The strongly connected components of a graph (Tarjan's algorithm, without recursion), sinks first."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[tuple[str, ...]] = []
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
                    cut = stack.index(node)
                    found.append(tuple(stack[cut:]))
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
    return found
