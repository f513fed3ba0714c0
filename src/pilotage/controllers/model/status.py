"""The status of a Model, as a pure function of the outcome of its last fetch attempt.

The same state always has the same messages, without times and counts in them, so that a state that lasts is written
once. The number of fetched bytes changes no faster than `models.attempts` reports it.
"""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from pilotage.kube import Json
from pilotage.models import Kept, Problem, Removed, TransientError
from pilotage.models.attempts import RECHECK_SECONDS, Fetching
from pilotage.runtime.conditions import set_condition

_RECHECK_MINUTES = f"{RECHECK_SECONDS / 60:g} minutes"
_RECHECK_WORDS = f"it is checked again every {_RECHECK_MINUTES}, and at once when the spec changes"
_SHOWN_MAX = 5

PENDING, FETCHING, READY, FAILED, DELETING = "Pending", "Fetching", "Ready", "Failed", "Deleting"
AVAILABLE, DEGRADED, GOING = "Available", "Degraded", "Deleting"


class ByPods(NamedTuple):
    """The operator does not fetch it: pods do. `why` is the message."""

    reason: str
    why: str


class Asking(NamedTuple):
    """The source was contacted for the first time and has not answered yet."""


FetchState: TypeAlias = Kept | Problem | Fetching | ByPods | Asking


class ModelCondition(NamedTuple):
    """A condition without type and times."""

    status: bool
    reason: str
    message: str


class DesiredModelStatus(NamedTuple):
    """The status as it should be, without times."""

    phase: str
    available: ModelCondition
    degraded: ModelCondition
    format: Json | None = None
    bytes: Json | None = None
    path: str | None = None


def status_of(state: FetchState, progress: Fetching | None = None) -> DesiredModelStatus:
    """The status for a state; `progress` is that of an interrupted fetch."""
    fine = ModelCondition(False, "AsExpected", "")
    match state:
        case Kept():
            where = "Used in place." if state.in_place else "Fetched and verified."
            words = " ".join(filter(None, (where, state.format.remark)))
            said = ModelCondition(True, "InPlace" if state.in_place else "Fetched", words)
            done: Json = {"done": state.size, "total": state.size}
            return DesiredModelStatus(READY, said, fine, _format(state), done, state.path)
        case ByPods(reason, why):
            return DesiredModelStatus(READY, ModelCondition(True, reason, why), fine)
        case Asking():
            return DesiredModelStatus(
                PENDING, ModelCondition(False, "Asking", "The source was contacted and has not answered yet."), fine
            )
        case Fetching():
            return DesiredModelStatus(
                FETCHING, ModelCondition(False, "Fetching", "The fetch is in progress."), fine, bytes=_bytes(state)
            )
        case TransientError():
            words = f"{state.what}. It is retried with exponential backoff."
            retrying = ModelCondition(False, "Retrying", "")
            return DesiredModelStatus(
                FETCHING, ModelCondition(False, state.reason, words), retrying, bytes=_bytes(progress)
            )
        case Problem():
            words = f"{state.what}. {state.to_do}; {_RECHECK_WORDS}."
            return DesiredModelStatus(
                FAILED, ModelCondition(False, state.reason, words), ModelCondition(True, state.reason, words)
            )


def in_use(users: Sequence[str]) -> ModelCondition:
    """The condition of a Model that is being deleted and still in use. `users`: KIND/NAME."""
    shown = ", ".join(users[:_SHOWN_MAX]) + (f" and {len(users) - _SHOWN_MAX} more" if len(users) > _SHOWN_MAX else "")
    return ModelCondition(
        True,
        "InUse",
        f"It is used by {shown}. Delete them or switch them to another model; then this Model is deleted.",
    )


def not_removed(why: str) -> ModelCondition:
    """The condition of a Model that is being deleted and whose files cannot be removed."""
    return ModelCondition(
        True, "CacheNotRemoved", f"{why}. Allow Pilotage to remove it; the removal is retried every {_RECHECK_MINUTES}."
    )


def changes(old: Json, status: DesiredModelStatus, generation: int, now: dt.datetime) -> Json | None:
    """The patch that brings a status to the desired one; None where nothing differs."""
    conditions = _conditions(old)
    for type_, said in ((AVAILABLE, status.available), (DEGRADED, status.degraded)):
        conditions = _set(conditions, type_, said, generation, now)
    wanted: Json = {
        "phase": status.phase,
        "observedGeneration": generation,
        "conditions": conditions,
        "format": status.format,
        "bytes": status.bytes,
        "path": status.path,
    }
    return _differing(old, wanted)


def deletion_changes(old: Json, said: ModelCondition, generation: int, now: dt.datetime) -> Json | None:
    """The patch with the condition of a deletion; None where nothing differs."""
    conditions = _set(_conditions(old), GOING, said, generation, now)
    return _differing(old, {"phase": DELETING, "observedGeneration": generation, "conditions": conditions})


def is_news(old: Json, status: DesiredModelStatus) -> bool:
    """Whether the phase or its reason has changed: then an Event is due."""
    said = next((each for each in _conditions(old) if each.get("type") == AVAILABLE), {})
    return (old.get("phase"), said.get("reason"), said.get("message")) != (
        status.phase,
        status.available.reason,
        status.available.message,
    )


def named_file(file: Removed) -> str:
    """A file, with its size."""
    return f"{file.path} ({file.size} bytes)"


def files_message(files: list[Removed]) -> str:
    """The message of an Event about cached files that were removed or kept."""
    removed = [named_file(file) for file in files if not file.kept_for]
    kept = [f"{file.path} stays for {file.kept_for}" for file in files if file.kept_for]
    shown = removed[:_SHOWN_MAX] + kept[:_SHOWN_MAX]
    more = len(files) - len(shown)
    head = "Removed " if removed else ""
    return head + ", ".join(shown) + (f" and {more} more" if more > 0 else "") + "."


def _conditions(status: Json) -> list[Json]:
    return list(status.get("conditions") or ())


def _set(conditions: list[Json], type_: str, said: ModelCondition, generation: int, now: dt.datetime) -> list[Json]:
    found = set_condition(
        conditions,
        type_,
        status=said.status,
        reason=said.reason,
        message=said.message,
        generation=generation,
        now=now,
    )
    return conditions if found is None else found


def _differing(old: Json, wanted: Json) -> Json | None:
    patch = {name: value for name, value in wanted.items() if old.get(name) != value}
    if isinstance(patch.get("bytes"), dict) and patch["bytes"].get("total") is None and old.get("bytes"):
        patch["bytes"] = {**patch["bytes"], "total": None}  # a merge would keep the old one
    return patch or None


def _bytes(progress: Fetching | None) -> Json | None:
    if progress is None:
        return None
    return {"done": progress.done} | ({} if progress.total is None else {"total": progress.total})


def _format(kept: Kept) -> Json:
    seen = kept.format
    found = {
        "kind": seen.kind,
        "architecture": seen.architecture,
        "quantization": seen.quantization,
        "contextLength": seen.context_length,
    }
    return {name: value for name, value in found.items() if value}
