"""The edges of single objects, found when somebody asks for them.

A question about one object of thousands needs the edges of a few. Who points at an object is looked for among those
whose text has its name in it, which is quickly seen, and among those that select by labels: all others cannot mean it.
What is found is what `relate` would have found.
"""

import re
from collections.abc import Iterator

from pilotage.catalogue.registry import pod_labels
from pilotage.catalogue.relation import RelationRow
from pilotage.teardown.relations.compiled import BUILT_IN, CompiledKind, Found, compiled
from pilotage.teardown.relations.edges import ask_for_the_unmade, edges_of, owned_by, template_labels, turned
from pilotage.teardown.relations.finder import Finder
from pilotage.teardown.relations.labels import Labels
from pilotage.teardown.snapshot.graph import Edge
from pilotage.teardown.snapshot.world import Item, World

_PLAIN = r"[A-Za-z0-9._:-]+"
"""A name that stands in JSON as it is. Any other may be written in more than one way there."""


class Nearby:
    """The edges of `relate` for one world, found on demand. The world must not change."""

    def __init__(self, world: World, rows: tuple[RelationRow, ...] = BUILT_IN) -> None:
        self._world = world
        self._plans = compiled(rows)
        self._planned: list[tuple[CompiledKind, list[Item]]] | None = None
        self._places: dict[str, int] = {}
        self._values: dict[str, list[Found]] = {}
        self._saying: dict[bytes, list[Item]] = {}
        self._by_name = Finder(world, ())
        self._by_labels: Finder | None = None
        self._out: dict[str, list[Edge]] = {}
        self._into: dict[str, list[Edge]] = {}
        self._aimed: dict[str, list[tuple[RelationRow, Edge]]] = {}

    def out_of(self, uid: str) -> list[Edge]:
        """Edges from this object."""
        if uid not in self._out:
            item = self._world.get(uid)
            self._out[uid] = [] if item is None else self._outward(item)
        return self._out[uid]

    def into(self, uid: str) -> list[Edge]:
        """Edges to this object."""
        if uid not in self._into:
            item = self._world.get(uid)
            self._into[uid] = [] if item is None else self._inward(item)
        return self._into[uid]

    def _outward(self, item: Item) -> list[Edge]:
        forward = self._forward(item)
        in_vain = [edge for edge in self._backward(item) if edge.target is None]
        naming = [edge for row, edge in self._aimed_at(item) if row.back]
        return [*forward, *turned([*in_vain, *naming], forward)]

    def _inward(self, item: Item) -> list[Edge]:
        found = list(owned_by(self._world, item))
        found += (edge for row, edge in self._aimed_at(item) if not row.back)
        for edge in self._backward(item):
            if edge.target is not None:
                found += turned([edge], self._forward(edge.target))
        return found

    # What an object says itself

    def _forward(self, item: Item) -> list[Edge]:
        """Edges to what it owns and names."""
        children = self._world.children(item.uid)
        owned = (edge for child in children for edge in owned_by(self._world, child) if edge.source.uid == item.uid)
        return [*owned, *(edge for row, edge in self._said_by(item) if not row.back)]

    def _backward(self, item: Item) -> list[Edge]:
        """Edges of rows that run back, as its fields state them: from the namer to the named."""
        plan = self._plan(item)
        if plan is None or not plan.points_back:
            return []
        return [edge for row, edge in self._said_by(item) if row.back]

    def _said_by(self, item: Item) -> Iterator[tuple[RelationRow, Edge]]:
        plan = self._plan(item)
        if plan is None:
            return iter(())
        return edges_of(self._selecting() if plan.selects else self._by_name, item, plan, self._found(item, plan))

    def _plan(self, item: Item) -> CompiledKind | None:
        return self._plans.of(item.resource.group, item.resource.kind)

    def _found(self, item: Item, plan: CompiledKind) -> list[Found]:
        if item.uid not in self._values:
            self._values[item.uid] = plan.find(item)
        return self._values[item.uid]

    def _templates(self, item: Item) -> list[tuple[Item, Labels]]:
        plan = self._plan(item) if item.group_kind in pod_labels() else None
        return [] if plan is None else template_labels(item, self._found(item, plan))

    def _selecting(self) -> Finder:
        """Finder for selectors over all objects."""
        if self._by_labels is None:
            self._by_labels = Finder(self._world, [each for item in self._world for each in self._templates(item)])
        return self._by_labels

    # What others say about it

    def _aimed_at(self, item: Item) -> list[tuple[RelationRow, Edge]]:
        """All edges to an object by rows, in the order of the world."""
        if item.uid not in self._aimed:
            templates = self._templates(item)
            finder = Finder(self._world, templates, among=item)
            self._aimed[item.uid] = [
                (row, edge)
                for source, plan in self._who_may_mean(item, templated=bool(templates))
                for row, edge in edges_of(finder, source, plan, self._found(source, plan))
                if edge.target is not None and edge.target.uid == item.uid
            ]
        return self._aimed[item.uid]

    def _who_may_mean(self, item: Item, *, templated: bool) -> list[tuple[Item, CompiledKind]]:
        found: dict[str, tuple[Item, CompiledKind]] = {}
        for plan, items in self._all_planned():
            if plan.may_number(item.group_kind) or plan.may_select(item.group_kind, templated=templated):
                found |= {source.uid: (source, plan) for source in items}
        for source in self._naming(item.meta.name):
            if (its := self._plan(source)) is not None:
                found[source.uid] = (source, its)
        return [found[uid] for uid in sorted(found, key=self._places.__getitem__)]

    def _naming(self, name: str) -> list[Item]:
        """Those that have a name somewhere in their text: all, where it may be written in another way."""
        if not re.fullmatch(_PLAIN, name):
            return [item for _, items in self._all_planned() for item in items]
        text = name.encode()
        if text not in self._saying:
            # Parts are called after their owners: who has the longer name in its text has the shorter one as well.
            known = next((found for part, found in self._saying.items() if part in text), None)
            if known is None:
                known = [item for _, items in self._all_planned() for item in items]
            self._saying[text] = [item for item in known if text in item.object.raw]
        return self._saying[text]

    def _all_planned(self) -> list[tuple[CompiledKind, list[Item]]]:
        """Those that rows are about, kind by kind."""
        if self._planned is None:
            ask_for_the_unmade(self._world)
            self._places = {item.uid: place for place, item in enumerate(self._world)}
            kinds = ((self._plans.of(*kind), items) for kind, items in self._world.by_kind())
            self._planned = [(plan, items) for plan, items in kinds if plan is not None]
        return self._planned
