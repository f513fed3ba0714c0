"""Hazards: what will probably block a teardown, predicted before anything is done.

`predict` decides from a world, without I/O: what it has to know it asks through the world. A family of hazards is one
file. A hazard that blocks is a reason not to begin (``plan`` ends with exit code 1); the others are worth knowing.
"""

from collections.abc import Callable, Iterator

from pilotage.catalogue.reading import FOR_HAZARDS
from pilotage.teardown.diagnosis.hazards import (
    admission,
    appliers,
    permissions,
    protection,
    references,
    remainders,
    unseen,
)
from pilotage.teardown.diagnosis.hazards import finalizers as keepers
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.planning.ledger import Ledger
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.world import World

__all__ = ["FULL", "Hazard", "HazardCode", "predict"]

FULL = FOR_HAZARDS
"""Kinds that are read in full besides those of the relations."""

_FAMILIES: tuple[Callable[[Outlook], Iterator[Hazard]], ...] = (
    appliers.hazards,
    keepers.hazards,
    permissions.hazards,
    admission.hazards,
    protection.hazards,
    references.hazards,
    remainders.hazards,
    unseen.hazards,
    remainders.notes,
)


def predict(world: World, graph: Graph, ledger: Ledger) -> list[Hazard]:
    """All hazards of a teardown, blocking ones first. Call it with `until_resolved`: it asks, in up to three rounds."""
    outlook = Outlook(world, graph, ledger)
    found = [hazard for family in _FAMILIES for hazard in family(outlook)]
    return sorted(dict.fromkeys(found), key=lambda hazard: not hazard.blocks)
