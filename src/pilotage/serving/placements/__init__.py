"""Placements: one file for each way to run an endpoint, found here by the kind of placement.

Every module of this package that has a `PLACEMENT` is registered; `contract` says what that is.
"""

import pkgutil
from importlib import import_module

from pilotage.serving.placements.contract import Find, PlacementStrategy, ServiceBackend

_MODULES = [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]

PLACEMENTS: dict[str, PlacementStrategy] = {
    each.PLACEMENT.kind: each.PLACEMENT for each in _MODULES if hasattr(each, "PLACEMENT")
}
"""Placements by kind, which is that of `spec.placement.kind`."""

__all__ = ["PLACEMENTS", "Find", "PlacementStrategy", "ServiceBackend"]
