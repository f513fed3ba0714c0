"""What the status of a HostProcess says, and whether that is news. Pure.

The same state always has the same words, without times and counts in them: what lasts is written once.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

from pilotage.kube.wire import format_time
from pilotage.runtime import set_condition

if TYPE_CHECKING:
    from pilotage.agent.journal import Entry
    from pilotage.agent.launch.failures import Failure
    from pilotage.kube import Json

READY = "Ready"
PENDING, FETCHING, STARTING, RUNNING = "Pending", "Fetching", "Starting", "Running"
UNHEALTHY, EVICTED, FAILED, STOPPING = "Unhealthy", "Evicted", "Failed", "Stopping"


class Said(NamedTuple):
    """How a process is."""

    phase: str
    reason: str
    message: str = ""
    ready: bool = False
    in_flight: int | None = None
    entry: Entry | None = None
    """The process, where there is one to show."""


def failed(failure: Failure, *, for_good: bool, ran: bool) -> Said:
    """Of a process that does not run. `for_good`: it will not by itself; `ran`: it was healthy before."""
    phase = FAILED if for_good else UNHEALTHY if ran else STARTING
    message = failure.message[:1].upper() + failure.message[1:].rstrip(".")
    return Said(phase, failure.reason, f"{message}. It is tried again.")


def changes(old: Json, said: Said, *, restarts: int, address: str, generation: int, now: dt.datetime) -> Json | None:
    """What to write into the status; None if it says so already."""
    entry = said.entry
    wanted: Json = {
        "phase": said.phase,
        "observedGeneration": generation,
        "ready": said.ready,
        "restarts": restarts,
        "message": said.message or None,
        "inFlight": said.in_flight,
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
        status=said.ready,
        reason=said.reason,
        message=said.message,
        generation=generation,
        now=now,
    )
    if conditions is not None:
        patch["conditions"] = conditions
    return patch or None


def is_news(old: Json, said: Said) -> bool:
    """Whether it is worth an Event."""
    before: Json = next((each for each in old.get("conditions") or [] if each.get("type") == READY), {})
    return (old.get("phase"), before.get("reason")) != (said.phase, said.reason)


def _time(seconds: float) -> str:
    return format_time(dt.datetime.fromtimestamp(seconds, dt.UTC))
