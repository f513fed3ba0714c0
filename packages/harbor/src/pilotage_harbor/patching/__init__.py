"""Patches and field ownership: pure functions from objects to objects. No storage, no HTTP, no clock."""

from __future__ import annotations

from pilotage_harbor.patching.apply import ApplyConflict, apply
from pilotage_harbor.patching.errors import PatchError
from pilotage_harbor.patching.json_patch import json_patch
from pilotage_harbor.patching.managed import keep_times, manager_name, track_update
from pilotage_harbor.patching.merge_patch import merge_patch
from pilotage_harbor.patching.strategic import strategic_merge

__all__ = [
    "ApplyConflict",
    "PatchError",
    "apply",
    "json_patch",
    "keep_times",
    "manager_name",
    "merge_patch",
    "strategic_merge",
    "track_update",
]
