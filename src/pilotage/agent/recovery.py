"""Recovery at the start of an agent, from what an earlier one has left.

The journal has what an earlier agent did, the API what is wanted, the system what runs. A process that is wanted and
runs is adopted as it is. One in the journal that is not wanted is stopped, in the same way as every other. Processes
that run and are in no journal (it was lost) are ended here.
"""

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import structlog

from pilotage.agent.journal import AgentJournal, JournalEntry, LifecycleState
from pilotage.agent.launch import process
from pilotage.processes.identity import ProcessId, ProcessInfo
from pilotage.processes.terminate import StillRunning
from pilotage.runtime.clock import monotonic

_log = structlog.get_logger(__name__)


class Recovered(NamedTuple):
    """Entries and processes by what becomes of them."""

    adopted: list[JournalEntry]
    stopped: list[JournalEntry]
    """Processes that are no longer wanted."""
    stray: dict[str, list[ProcessInfo]]
    """Processes of ours that are in no journal, by the uid of their HostProcess."""


def classify(
    entries: Sequence[JournalEntry], wanted: Collection[str], running: Mapping[str, Sequence[ProcessInfo]]
) -> Recovered:
    """`wanted` are uids of HostProcesses; `running` are processes with our mark, by the same uids. Pure."""
    own = {entry.uid for entry in entries}
    adopted: list[JournalEntry] = []
    stopped: list[JournalEntry] = []
    for entry in entries:
        kept = entry.uid in wanted and entry.state is not LifecycleState.LEAVING
        (adopted if kept else stopped).append(entry)
    stray = {uid: [*found] for uid, found in running.items() if uid not in own}
    return Recovered(adopted, stopped, stray)


def log(recovered: Recovered) -> None:
    """Report what was found, if anything was."""
    adopted, stopped, stray = map(len, recovered)
    if adopted or stopped or stray:
        _log.info("recovered from an earlier agent", adopted=adopted, to_stop=stopped, stray=stray)


async def end_stray(journal: AgentJournal, uids: Iterable[str], grace: float) -> None:
    """End processes that are in no journal, with `grace` seconds between SIGTERM and SIGKILL for all together."""
    until = monotonic() + grace
    for uid in uids:
        with contextlib.suppress(StillRunning):
            await process.end(journal.mark(uid), ProcessId(0, ""), lambda: until)
