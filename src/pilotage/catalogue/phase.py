"""The phases of a teardown.

The order of the phases is the order of the teardown of anything that serves: first nobody is sent to it any more, then
what would fight back goes, then what runs, then what it needed, then what owned it all.
"""

from __future__ import annotations

import enum


class Phase(enum.IntEnum):
    """In order. An object has one of detach, quiesce, stop, remove, release; the others are steps of the whole."""

    CORDON = 0
    """The intent is on record: owners whose parts go one by one are held and marked for deletion."""
    DETACH = 1
    """Routes go: nobody new is sent here."""
    DRAIN = 2
    """What is under way ends, for as long as the policy gives it."""
    QUIESCE = 3
    """Writers that would fight go: autoscalers, schedules, admission webhooks."""
    STOP = 4
    """What runs goes, with its pods."""
    REMOVE = 5
    """Services, configuration, budgets, volumes: what the workload needed."""
    RELEASE = 6
    """Owners, definitions, namespaces: what held the rest together."""
    PROVE = 7
    """Everything is read afresh."""

    def __str__(self) -> str:
        return self.name.lower()
