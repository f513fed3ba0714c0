"""Who points at whom: a table of rows, and the graph that it gives for a world.

A row says which field of which kind points where (`rows`). The built-in ones stand in `families`; a user's own come
from a file (`load_rows`) and are added to them: ``relate(world, BUILT_IN + load_rows(path))``. Nothing here does I/O,
but for reading that file.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pilotage.teardown.relations import plans
from pilotage.teardown.relations.edges import defined_by, relate
from pilotage.teardown.relations.families import BUILT_IN, FAMILIES
from pilotage.teardown.relations.nearby import Nearby
from pilotage.teardown.relations.rows import Form, Kind, Named, Reference, Row, Selected, When
from pilotage.teardown.relations.user_rows import RelationsError, load_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.kube import ApiResource, GroupKind


def full_kinds(rows: tuple[Row, ...] = BUILT_IN, served: Iterable[ApiResource] = ()) -> frozenset[GroupKind]:
    """The kinds that have to be read in full, so that `relate` sees all there is.

    Rows with a pattern, such as those for all managed resources of Crossplane, ask for no kind by themselves: of the
    `served` kinds, as discovery lists them, those count that match the pattern and carry the row's category. Without
    `served` there are none.
    """
    if rows is BUILT_IN and not served:
        return _of_the_built_in()
    return plans.full_kinds(rows, served)


@functools.cache
def _of_the_built_in() -> frozenset[GroupKind]:
    """Worked out once: it is asked for at every look at a cluster."""
    return plans.full_kinds(BUILT_IN, ())


__all__ = [
    "BUILT_IN",
    "FAMILIES",
    "Form",
    "Kind",
    "Named",
    "Nearby",
    "Reference",
    "RelationsError",
    "Row",
    "Selected",
    "When",
    "defined_by",
    "full_kinds",
    "load_rows",
    "relate",
]
