"""Status of a HostProcess: the patch for a desired status, and whether it is worth an Event. Pure.

The same state always has the same message, without times and counts in it: a state that lasts is written once.
"""

import datetime as dt
from typing import NamedTuple

from pilotage.agent.journal import JournalEntry
from pilotage.agent.launch.failures import LaunchFailure
from pilotage.kube import Json
from pilotage.kube.wire import format_time
from pilotage.runtime.conditions import set_condition

READY = "Ready"
PENDING, FETCHING, STARTING, RUNNING = "Pending", "Fetching", "Starting", "Running"
UNHEALTHY, EVICTED, FAILED, STOPPING = "Unhealthy", "Evicted", "Failed", "Stopping"


class DesiredStatus(NamedTuple):
    """The status that a HostProcess should have."""

    phase: str
    reason: str
    message: str = ""
    ready: bool = False
    in_flight: int | None = None
    entry: JournalEntry | None = None
    """The process, where there is one to show."""
    expected: bool = False
    """Whether its message is about nothing that went wrong."""


def failed(failure: LaunchFailure, *, permanent: bool, ran: bool) -> DesiredStatus:
    """The status of a process that does not run. `permanent`: it needs a change; `ran`: it was healthy before."""
    phase = FAILED if permanent else UNHEALTHY if ran else STARTING
    return DesiredStatus(phase, failure.reason, f"{sentence(failure.message)} It is retried.")


def sentence(text: str) -> str:
    """A phrase as a sentence, in which URLs, fields and programs keep their case; empty stays empty."""
    plain = text.split(" ", 1)[0].isalpha()
    return f"{text[:1].upper() if plain else text[:1]}{text[1:].rstrip('.')}." if text else ""


def changes(
    old: Json, desired: DesiredStatus, *, restarts: int, address: str, generation: int, now: dt.datetime
) -> Json | None:
    """The changes of the status; None if there are none."""
    entry = desired.entry
    wanted: Json = {
        "phase": desired.phase,
        "observedGeneration": generation,
        "ready": desired.ready,
        "restarts": restarts,
        "message": desired.message or None,
        "inFlight": desired.in_flight,
        "address": address if entry is not None else None,
        "port": entry.port if entry is not None else None,
        "pid": entry.pid if entry is not None else None,
        "started": _time(entry.started) if entry is not None else None,
        "memoryBytes": entry.need if entry is not None else None,
        "sliceUid": (entry.slice_uid or None) if entry is not None else None,
        "logFile": (entry.log or None) if entry is not None else old.get("logFile"),  # it outlives the server
    }
    patch = {name: value for name, value in wanted.items() if old.get(name) != value}
    conditions = set_condition(
        old.get("conditions") or [],
        READY,
        status=desired.ready,
        reason=desired.reason,
        message=desired.message,
        generation=generation,
        now=now,
    )
    if conditions is not None:
        patch["conditions"] = conditions
    return patch or None


def is_news(old: Json, desired: DesiredStatus) -> bool:
    """Whether the change is worth an Event."""
    before: Json = next((each for each in old.get("conditions") or [] if each.get("type") == READY), {})
    return (old.get("phase"), before.get("reason")) != (desired.phase, desired.reason)


def _time(seconds: float) -> str:
    return format_time(dt.datetime.fromtimestamp(seconds, dt.UTC))
