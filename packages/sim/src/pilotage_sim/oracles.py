"""Invariants that hold after every run, whatever has gone wrong in it. Each returns sentences about violations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilotage.kube import Json
    from pilotage_sim.trace import Trace, Write

_UID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_ANY_UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHANCE = frozenset({"uid", "resourceVersion", "managedFields", "generation", "observedGeneration"})
"""Fields that may differ between two runs that end alike: random ones, and those that count writes."""


def normal(value: Any, names: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """The same without versions and times; uids elsewhere become what `names` has for them, or ``?``."""
    if isinstance(value, dict):
        return {
            name: normal(each, names)
            for name, each in sorted(value.items())
            if name not in _CHANCE and not name.endswith(("Timestamp", "Time"))
        }
    if isinstance(value, str):
        return _UID.sub(lambda found: (names or {}).get(found[0], "?"), value)
    return [normal(each, names) for each in value] if isinstance(value, list) else value


def same_state(expected: Mapping[str, Json], found: Mapping[str, Json]) -> list[str]:
    """Two snapshots of a world hold the same objects, chance aside."""
    problems = [f"{key} is missing" for key in expected if key not in found]
    problems += [f"{key} is left over" for key in found if key not in expected]
    known, names = _names(expected), _names(found)
    for key in expected:
        if key not in found or _identical(expected[key], found[key], known, names):
            continue
        if (one := normal(expected[key], known)) != (other := normal(found[key], names)):
            problems += [f"{key}: {difference}" for difference in differences(one, other)]
    return problems


def _identical(one: Json, other: Json, known: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Whether nothing differs, not even by chance, and uids in it mean the same: most objects, and cheaply seen."""
    if one != other:
        return False
    uids = {found.decode() for found in _ANY_UID.findall(msgspec.json.encode(one))}
    return all(known.get(uid) == names.get(uid) for uid in uids)


def _names(state: Mapping[str, Json]) -> dict[str, str]:
    return {obj["metadata"]["uid"]: f"<uid of {key}>" for key, obj in state.items()}


def differences(one: Any, other: Any, path: str = "") -> list[str]:  # noqa: ANN401 - any JSON
    """Differences between two values, as paths with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = []
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                found += differences(one.get(name), other.get(name), f"{path}.{name}")
        return found
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        found = []
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            found += differences(left, right, f"{path}[{index}]")
        return found
    return [] if one == other else [f"{path or '.'} is {other!r}, not {one!r}"]


def foreign_writes(trace: Trace, who: str, is_theirs: Callable[[Write], bool]) -> list[str]:
    """Writes to foreign objects: `is_theirs` judges every write of `who` that was applied."""
    return [
        f"a write to an object of somebody else: {write}"
        for write in trace.writes
        if write.who == who and write.applied and not is_theirs(write)
    ]
