"""Schemas of objects, and what follows from them: pruning, defaults, validation. No I/O, no clock, no storage.

Nothing here knows a kind: what is particular to one is elsewhere. `builtin` and `from_openapi` make schemas, the other
functions read them.
"""

from __future__ import annotations

from pilotage_harbor.schema.builtin import builtin, definition, kubernetes_version
from pilotage_harbor.schema.check import validate
from pilotage_harbor.schema.decode import decode_problem
from pilotage_harbor.schema.defaults import apply_defaults
from pilotage_harbor.schema.node import UNSET, Rule, SchemaNode
from pilotage_harbor.schema.openapi import from_openapi
from pilotage_harbor.schema.prune import prune, unknown_fields
from pilotage_harbor.schema.structural import structural_problems

__all__ = [
    "UNSET",
    "Rule",
    "SchemaNode",
    "apply_defaults",
    "builtin",
    "decode_problem",
    "definition",
    "from_openapi",
    "kubernetes_version",
    "prune",
    "structural_problems",
    "unknown_fields",
    "validate",
]
