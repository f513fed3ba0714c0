"""Where endpoints run: one file each, found here by the kind of placement."""

from pilotage.serving.placements import deployment, host, kserve
from pilotage.serving.placements.contract import Backend, Find, Placement

PLACEMENTS: dict[str, Placement] = {each.PLACEMENT.kind: each.PLACEMENT for each in (deployment, kserve, host)}

__all__ = ["PLACEMENTS", "Backend", "Find", "Placement"]
