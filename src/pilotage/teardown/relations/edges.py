"""The graph of a world: what every object points at, by the table of rows and by ownerReferences."""

import functools
from collections.abc import Iterator

from pilotage.catalogue.registry import pod_labels
from pilotage.catalogue.relation import Relation, RelationRow, When
from pilotage.kube import GroupKind
from pilotage.teardown.relations.compiled import BUILT_IN, CompiledKind, Found, below, compiled, spell
from pilotage.teardown.relations.finder import Finder
from pilotage.teardown.relations.labels import Labels
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.world import Item, World

# Pods and ReplicaSets are not read in full: what they mount stands in the template of what made them. Those that
# nobody made are few as a rule, and are asked for one by one, up to this many.
_ASKED_MAX = 50
_FROM_TEMPLATES = frozenset([GroupKind("", "Pod"), GroupKind("apps", "ReplicaSet")])


def relate(world: World, rows: tuple[RelationRow, ...] = BUILT_IN, *, asked_max: int = _ASKED_MAX) -> Graph:
    """All edges between the objects of a world.

    OWNS comes from the metadata of every object. The other relations come from the objects that were read in full, and
    from those rows that need no more than metadata. A reference that says ``optional: true`` is no edge where its
    target is not there. Pods and ReplicaSets that no known workload made are asked for in full, `asked_max` at most.

    DEFINES is not among them: a namespace would point at everything in it. `defined_by` tells that for one object.
    """
    table = compiled(rows)
    found: list[tuple[Item, CompiledKind, list[Found]]] = []
    templates: list[tuple[Item, Labels]] = []
    for item in world:
        plan = table.of(item.resource.group, item.resource.kind)
        if plan is None:
            continue
        if values := plan.find(item):
            found.append((item, plan, values))
            templates += template_labels(item, values)
    ask_for_the_unmade(world, asked_max)
    finder = Finder(world, templates)
    edges = [edge for item in world for edge in owned_by(world, item)]
    backward: list[Edge] = []
    for entry in found:
        for row, edge in edges_of(finder, *entry):
            (backward if row.back else edges).append(edge)
    return Graph([*edges, *turned(backward, edges)])


def defined_by(world: World, item: Item) -> list[Item]:
    """Objects that an object DEFINES: the contents of a Namespace, the instances of a CustomResourceDefinition."""
    match item.group_kind:
        case ("", "Namespace"):
            return [other for other in world if other.meta.namespace == item.meta.name]
        case ("apiextensions.k8s.io", "CustomResourceDefinition"):
            plural, _, group = item.meta.name.partition(".")
            return [other for other in world if (other.resource.plural, other.resource.group) == (plural, group)]
        case _:
            return []


def owned_by(world: World, item: Item) -> Iterator[Edge]:
    """Edges from the owners of an object, as far as they count, to it."""
    for i, reference in enumerate(item.meta.owner_references):
        owner = world.get(reference.uid)
        # The garbage collector looks an owner up by kind and name, and then compares the uid. A namespaced owner owns
        # in its own namespace alone: elsewhere, and for cluster-scoped objects, it counts as absent.
        if (
            owner is not None
            and (owner.resource.kind, owner.meta.name) == (reference.kind, reference.name)
            and owner.meta.namespace in ("", item.meta.namespace)
        ):
            yield Edge(owner, Relation.OWNS, item.name, item, f"metadata.ownerReferences[{i}]")


def turned(backward: list[Edge], edges: list[Edge]) -> Iterator[Edge]:
    """Edges that run from what is named to what names it, unless they are there already."""
    there = {(edge.source.uid, edge.relation, edge.name) for edge in edges} if backward else set()
    for edge in backward:
        if edge.target is None:
            yield edge
        elif (edge.target.uid, edge.relation, edge.source.name) not in there:
            yield Edge(edge.target, edge.relation, edge.source.name, edge.source, f"{edge.field} of {edge.source}")


def edges_of(
    finder: Finder, source: Item, plan: CompiledKind, values: list[Found]
) -> Iterator[tuple[RelationRow, Edge]]:
    """The edges that an object's values give, by row: those of rows that run back have to be `turned`."""
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


def _note(row: RelationRow, value: object) -> str:
    said = below(value, row.note) if row.note else None
    return f" ({row.note} {said})" if isinstance(said, int | str) else ""


def template_labels(item: Item, values: list[Found]) -> list[tuple[Item, Labels]]:
    """The labels of the pods that it makes."""
    return [(item, _labels(value)) for row, value, _ in values if row is None]


def _labels(value: object) -> Labels:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def ask_for_the_unmade(world: World, asked_max: int = _ASKED_MAX) -> None:
    """Want all of those Pods and ReplicaSets whose template nobody shows."""
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
    return maker is not None and GroupKind(maker.api_version.rpartition("/")[0], maker.kind) in pod_labels()
