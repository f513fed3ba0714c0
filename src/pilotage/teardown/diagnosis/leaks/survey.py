"""Questions that all families of leaks ask first: is it in progress, and is its target certainly gone."""

from collections.abc import Iterator

from pilotage.catalogue.relation import Relation
from pilotage.kube import GroupKind
from pilotage.teardown.snapshot.fields import seconds_since
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.world import Item, Name, World

YOUNG_SECONDS = 60
"""Things younger than this are being made: their owners, Services and endpoints may be yet to come."""


class LeakSurvey:
    """A world and its graph, looked at for leaks."""

    def __init__(self, world: World, graph: Graph) -> None:
        self.world = world
        self.graph = graph
        self._leaving = {item.meta.name for item in world.of("", "Namespace") if item.terminating}

    def settled(self, item: Item) -> bool:
        """Whether it is neither being made nor being deleted. Of unknown age is not settled."""
        if item.terminating or item.meta.namespace in self._leaving:
            return False
        age = seconds_since(self.world.now, item.meta.creation_timestamp)
        return age is not None and age >= YOUNG_SECONDS

    def of(self, group: str, kind: str) -> Iterator[Item]:
        """All settled objects of a kind."""
        return (item for item in self.world.of(group, kind) if self.settled(item))

    def read(self, kind: GroupKind | tuple[str, str], namespace: str = "") -> bool:
        """Whether the objects of a kind are known there."""
        return not self.world.problem(kind[0], kind[1], namespace)

    def gone(self, name: Name) -> bool:
        """Whether nothing of this name is there: its kind was read, and it was not among them."""
        return self.world.find(*name) is None and self.read(name.group_kind, name.namespace)

    def pointing_at_nothing(self, relation: Relation) -> Iterator[Edge]:
        """The edges of settled objects to what is gone, each source and name once."""
        seen = set()
        for edge in self.graph.dangling:
            key = edge.source.uid, edge.name
            if edge.relation is relation and key not in seen and self.settled(edge.source) and self.gone(edge.name):
                seen.add(key)
                yield edge

    def owned(self, item: Item) -> bool:
        """Whether an owner of it is there, who is then the one to ask."""
        return any(self.world.get(owner.uid) is not None for owner in item.meta.owner_references)
