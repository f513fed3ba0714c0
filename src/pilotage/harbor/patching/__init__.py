"""Patches and field ownership: pure functions from objects to objects. No storage, no HTTP, no clock."""

from __future__ import annotations

from pilotage.harbor.patching.apply import ApplyConflict, apply
from pilotage.harbor.patching.errors import PatchError
from pilotage.harbor.patching.json_patch import json_patch
from pilotage.harbor.patching.managed import keep_times, manager_name, track_update
from pilotage.harbor.patching.merge_patch import merge_patch
from pilotage.harbor.patching.strategic import strategic_merge

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
