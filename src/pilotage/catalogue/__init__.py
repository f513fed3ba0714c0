"""The catalogue: everything that Pilotage knows about a kind, one row per kind, one file per ecosystem.

`kind.KnownKind` lists the columns, `ecosystems` has the rows, `registry` looks them up. What a column means is decided
where it is read: planning, relations, diagnosis. Data only: nothing here reads a cluster or decides about an object.
"""

from pilotage.catalogue.kind import Keep, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import (
    find_finalizer,
    guards,
    is_built_in,
    kinds,
    known,
    phase_of,
    workloads,
)
from pilotage.catalogue.relation import Relation

__all__ = [
    "Keep",
    "KnownFinalizer",
    "KnownKind",
    "Phase",
    "Relation",
    "find_finalizer",
    "guards",
    "is_built_in",
    "kinds",
    "known",
    "phase_of",
    "workloads",
]
