"""What an agent that starts makes of what is there. Pure.

The journal says what an earlier agent did, the API what is wanted, the system what runs. What is wanted and runs is
taken up as it is. What is in the journal and not wanted goes, through the same way down as everything else. What runs
and is in no journal (that was lost) is stopped. What is registered for nobody is unregistered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage.agent.journal import Entry, State

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pilotage.processes.identity import ProcessInfo


class Found(NamedTuple):
    """By what becomes of it."""

    adopted: list[Entry]
    stopped: list[Entry]
    """Not wanted any more."""
    stray: dict[str, list[ProcessInfo]]
    """Processes of ours that are in no journal, by the uid of their HostProcess."""


def sort(entries: Sequence[Entry], wanted: Collection[str], running: Mapping[str, Sequence[ProcessInfo]]) -> Found:
    """`wanted` are uids of HostProcesses; `running` is what carries our mark, by the same uids."""
    own = {entry.uid for entry in entries}
    adopted: list[Entry] = []
    stopped: list[Entry] = []
    for entry in entries:
        kept = entry.uid in wanted and entry.state is not State.LEAVING
        (adopted if kept else stopped).append(entry)
    stray = {uid: [*found] for uid, found in running.items() if uid not in own}
    return Found(adopted, stopped, stray)
