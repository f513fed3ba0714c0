"""The graph of a world: which objects point at which, by the rows of the catalogue and a user's own.

A row says which field of which kind points where (`catalogue.relation`). The built-in ones come from the catalogue; a
user's own come from a file (`load_rows`) and are added to them: ``relate(world, BUILT_IN + load_rows(path))``. Nothing
here does I/O, but for reading that file.
"""

from pilotage.teardown.relations.compiled import BUILT_IN, full_kinds
from pilotage.teardown.relations.edges import defined_by, relate
from pilotage.teardown.relations.nearby import Nearby
from pilotage.teardown.relations.user_rows import RelationsError, load_rows

__all__ = [
    "BUILT_IN",
    "Nearby",
    "RelationsError",
    "defined_by",
    "full_kinds",
    "load_rows",
    "relate",
]
