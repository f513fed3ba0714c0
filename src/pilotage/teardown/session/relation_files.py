"""The relations in force: the built-in rows, and those of the files that `PILOTAGE_RELATIONS` names.

A variable and not an option: such a file is meant for every command. A file that cannot be understood raises
TargetError.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.catalogue.relation import RelationRow
    from pilotage.kube import ApiResource, GroupKind
    from pilotage.teardown.relations import Nearby
    from pilotage.teardown.snapshot.graph import Graph
    from pilotage.teardown.snapshot.world import World

VARIABLE = "PILOTAGE_RELATIONS"
"""Files with rows (docs/relations.md), separated as in PATH."""


def related_graph(world: World) -> Graph:
    """All edges of a world."""
    from pilotage.teardown.relations import relate

    return relate(world, _rows())


def edges_nearby(world: World) -> Nearby:
    """The edges of a world, as far as they are asked for."""
    from pilotage.teardown.relations import Nearby

    return Nearby(world, _rows())


def kinds_in_full(served: Iterable[ApiResource]) -> frozenset[GroupKind]:
    """The kinds that have to be read in full."""
    from pilotage.catalogue.reading import in_full

    return in_full(served) | _kinds_of(_own_rows(), served)


def kinds_that_reach(served: Iterable[ApiResource]) -> frozenset[GroupKind]:
    """Those of them that can point into another namespace than their own."""
    from pilotage.catalogue.reading import reaching

    return reaching(served) | _kinds_of(tuple(row for row in _own_rows() if row.reaches), served)


def _kinds_of(rows: tuple[RelationRow, ...], served: Iterable[ApiResource]) -> frozenset[GroupKind]:
    if not rows:  # as nearly always: the table is not imported yet
        return frozenset()
    from pilotage.teardown.relations import full_kinds

    return full_kinds(rows, served)


def _rows() -> tuple[RelationRow, ...]:
    from pilotage.teardown.relations import BUILT_IN

    own = _own_rows()
    return BUILT_IN + own if own else BUILT_IN


def _own_rows() -> tuple[RelationRow, ...]:
    files = [file for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file]
    if not files:
        return ()
    from pathlib import Path

    from pilotage.teardown.planning.arguments import TargetError
    from pilotage.teardown.relations import RelationsError, load_rows

    try:
        return tuple(row for file in files for row in load_rows(Path(file)))
    except RelationsError as error:
        raise TargetError(f"{VARIABLE}: {error}") from error
