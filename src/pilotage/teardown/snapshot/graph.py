"""The graph of a world: edges from the object that points to the object it points at."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from pilotage.catalogue.relation import Relation
from pilotage.teardown.snapshot.world import Item, Name


class Edge(msgspec.Struct, frozen=True):
    """One pointer. `target` is None where nothing of that name was seen."""

    source: Item
    relation: Relation
    name: Name
    target: Item | None
    field: str
    """The field, such as ``spec.scaleTargetRef``."""

    def __str__(self) -> str:
        return f"{self.source} {self.relation} {self.name} ({self.field})"


class Edges(Protocol):
    """Edges, found from both ends."""

    def out_of(self, uid: str) -> list[Edge]:
        """Edges from this object."""

    def into(self, uid: str) -> list[Edge]:
        """Edges to this object."""


class Graph:
    """All edges of one world, found from both ends."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._out: dict[str, list[Edge]] = {}
        self._into: dict[str, list[Edge]] = {}
        self.dangling: list[Edge] = []
        """Those that point at nothing that was seen."""
        for edge in edges:
            self._out.setdefault(edge.source.uid, []).append(edge)
            if edge.target is None:
                self.dangling.append(edge)
            else:
                self._into.setdefault(edge.target.uid, []).append(edge)

    def out_of(self, uid: str) -> list[Edge]:
        """Edges from this object."""
        return self._out.get(uid, [])

    def into(self, uid: str) -> list[Edge]:
        """Edges to this object."""
        return self._into.get(uid, [])
