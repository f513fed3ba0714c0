"""The catalogue: everything that Pilotage knows about a kind, one row per kind, one file per ecosystem.

`kind.KnownKind` lists the columns, `ecosystems` has the rows, `registry` looks them up. What a column means is decided
where it is read: planning, relations, diagnosis. Data only: nothing here reads a cluster or decides about an object.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilotage.catalogue.groups import is_built_in, is_custom
    from pilotage.catalogue.kind import Keep, KnownFinalizer, KnownKind
    from pilotage.catalogue.phase import Phase
    from pilotage.catalogue.registry import find_finalizer, guards, kinds, known, phase_of, workloads
    from pilotage.catalogue.relation import Relation

# Imported when first used: reading a cluster begins with `reading`, before any of these is needed.
_LATER = {
    "Keep": "kind",
    "KnownFinalizer": "kind",
    "KnownKind": "kind",
    "Phase": "phase",
    "Relation": "relation",
    "find_finalizer": "registry",
    "guards": "registry",
    "is_built_in": "groups",
    "is_custom": "groups",
    "kinds": "registry",
    "known": "registry",
    "phase_of": "registry",
    "workloads": "registry",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = [
    "Keep",
    "KnownFinalizer",
    "KnownKind",
    "Phase",
    "Relation",
    "find_finalizer",
    "guards",
    "is_built_in",
    "is_custom",
    "kinds",
    "known",
    "phase_of",
    "workloads",
]
