"""The catalogue of kinds: what is known about each kind of the field, one row per kind, one file per ecosystem.

Data only: nothing here reads a cluster or decides about an object.
"""

from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import is_built_in, phase_of, workloads
from pilotage.catalogue.relation import Relation

__all__ = ["Phase", "Relation", "is_built_in", "phase_of", "workloads"]
