"""The graph of a world: what every object points at, by the table of rows and by ownerReferences."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pilotage.teardown.graph import Edge, Graph, Relation
from pilotage.teardown.relations.families import BUILT_IN, TEMPLATES
from pilotage.teardown.relations.naming import Finder
from pilotage.teardown.relations.plans import Plan, below, plans, spell
from pilotage.teardown.world import GroupKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.teardown.relations.labels import Labels
    from pilotage.teardown.relations.plans import Found
    from pilotage.teardown.relations.rows import Row, When
    from pilotage.teardown.world import Item, World

# Pods and ReplicaSets are not read in full: what they mount stands in the template of what made them. Those that
# nobody made are few as a rule, and are asked for one by one, up to this many.
_ASKED_MAX = 50
_FROM_TEMPLATES = frozenset([GroupKind("", "Pod"), GroupKind("apps", "ReplicaSet")])


def relate(world: World, rows: tuple[Row, ...] = BUILT_IN, *, asked_max: int = _ASKED_MAX) -> Graph:
    """All edges between the objects of a world.

    OWNS comes from the metadata of every object. The other relations come from the objects that were read in full, and
    from those rows that need no more than metadata. A reference that says ``optional: true`` is no edge where its
    target is not there. Pods and ReplicaSets that no known workload made are asked for in full, `asked_max` at most.

    DEFINES is not among them: a namespace would point at everything in it. `defined_by` tells that for one object.
    """
    compiled = plans(rows)
    found: list[tuple[Item, Plan, list[Found]]] = []
    templates: list[tuple[Item, Labels]] = []
    for item in world:
        plan = compiled.of(item.resource.group, item.resource.kind)
        if plan is None:
            continue
        if values := plan.find(item):
            found.append((item, plan, values))
            templates += [(item, _labels(value)) for row, value, _ in values if row is None]
    _ask_for_the_unmade(world, asked_max)
    finder = Finder(world, templates)
    edges = list(_owned(world))
    backward: list[Edge] = []
    for entry in found:
        for row, edge in _edges(finder, *entry):
            (backward if row.back else edges).append(edge)
    return Graph([*edges, *_turned(backward, edges)])


class Relating:
    """The graph of a world that is asked for more, again and again: what was read since is all that is looked at."""

    def __init__(self, rows: tuple[Row, ...] = BUILT_IN) -> None:
        self._rows = rows
        self._graph: Graph | None = None
        self._seen: dict[str, Item] = {}

    def __call__(self, world: World) -> Graph:
        """What `relate` gives. It is the same graph each time."""
        read = [item for item in world if self._seen.get(item.uid) is not item]
        if self._graph is None or not all(map(self._says_more, read)):
            self._graph = relate(world, self._rows)
        elif read:
            finder = Finder(world, ())
            for item in read:
                before = self._pointing(finder, self._seen[item.uid])
                self._graph.put(item, before, self._pointing(finder, item))
        self._seen.update((item.uid, item) for item in read)
        return self._graph

    def _says_more(self, item: Item) -> bool:
        """Whether it is an object from before, read in full by now, which changes nothing but what it points at.

        Pods are such, and they are what is asked for most.
        """
        old = self._seen.get(item.uid)
        plan = plans(self._rows).of(item.resource.group, item.resource.kind)
        if old is None or item.group_kind not in _FROM_TEMPLATES or (plan is not None and not plan.points_only):
            return False
        return (old.meta.labels, old.meta.owner_references) == (item.meta.labels, item.meta.owner_references)

    def _pointing(self, finder: Finder, item: Item) -> list[Edge]:
        plan = plans(self._rows).of(item.resource.group, item.resource.kind)
        return [] if plan is None else [edge for _, edge in _edges(finder, item, plan, plan.find(item))]


def defined_by(world: World, item: Item) -> list[Item]:
    """What an object DEFINES: a Namespace all that is in it, a CustomResourceDefinition its instances. Else nothing."""
    match item.group_kind:
        case ("", "Namespace"):
            return [other for other in world if other.meta.namespace == item.meta.name]
        case ("apiextensions.k8s.io", "CustomResourceDefinition"):
            plural, _, group = item.meta.name.partition(".")
            return [other for other in world if (other.resource.plural, other.resource.group) == (plural, group)]
        case _:
            return []


def _owned(world: World) -> Iterator[Edge]:
    for item in world:
        for i, reference in enumerate(item.meta.owner_references):
            owner = world.get(reference.uid)
            # The garbage collector looks an owner up by kind and name, and then compares the uid. A namespaced owner
            # owns in its own namespace alone: elsewhere, and for cluster-scoped objects, it counts as absent.
            if (
                owner is not None
                and (owner.resource.kind, owner.meta.name) == (reference.kind, reference.name)
                and owner.meta.namespace in ("", item.meta.namespace)
            ):
                yield Edge(owner, Relation.OWNS, item.name, item, f"metadata.ownerReferences[{i}]")


def _turned(backward: list[Edge], edges: list[Edge]) -> Iterator[Edge]:
    """Edges that run from what is named to what names it, unless they are there already."""
    there = {(edge.source.uid, edge.relation, edge.name) for edge in edges} if backward else set()
    for edge in backward:
        if edge.target is None:
            yield edge
        elif (edge.target.uid, edge.relation, edge.source.name) not in there:
            yield Edge(edge.target, edge.relation, edge.source.name, edge.source, f"{edge.field} of {edge.source}")


def _edges(finder: Finder, source: Item, plan: Plan, values: list[Found]) -> Iterator[tuple[Row, Edge]]:
    parts = functools.partial(plan.parts, source)
    for row, value, trail in values:
        if row is None or (row.when is not None and not _holds(row.when, value)):
            continue
        field = ""
        for name, target in finder.meant(source, row.target, value, parts):
            if target is None and type(value) is dict and value.get("optional") is True:
                continue
            field = field or spell(trail) + _note(row, value)
            yield row, Edge(source, row.relation, name, target, field)


def _holds(when: When, value: object) -> bool:
    actual = below(value, when.field)
    return (actual is None or isinstance(actual, str | bool)) and actual in when.values


def _note(row: Row, value: object) -> str:
    said = below(value, row.note) if row.note else None
    return f" ({row.note} {said})" if isinstance(said, int | str) else ""


def _labels(value: object) -> Labels:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _ask_for_the_unmade(world: World, asked_max: int) -> None:
    if not world.live:
        return
    asked = 0
    for kind in _FROM_TEMPLATES:
        for item in world.of(*kind):
            if not item.full and not _made_from_a_template(item):
                if asked == asked_max:
                    return
                world.body(item)
                asked += 1


def _made_from_a_template(item: Item) -> bool:
    maker = item.meta.controller
    return maker is not None and GroupKind(maker.api_version.rpartition("/")[0], maker.kind) in TEMPLATES
