"""The phases of a teardown.

The order of the phases is the order of the teardown of anything that serves: first routes go, then writers that would
fight back, then workloads, then what they needed, then owners. Related objects go in the order of their phases;
`teardown.planning.order` says what else waits for what.
"""

import enum
from typing import Self


class Phase(enum.Enum):
    """Phases in order. An object has one of detach, quiesce, stop, remove, release; the others are steps of the whole.

    It is saved by name (ledgers, receipts), and compared by its place here: a phase can be added between two others.
    """

    CORDON = "cordon"
    """The intent is on record: owners whose parts go one by one are held and marked for deletion."""
    DETACH = "detach"
    """Routes go: nobody new is sent here."""
    DRAIN = "drain"
    """Requests in flight end, for as long as the policy gives them."""
    QUIESCE = "quiesce"
    """Writers that would fight go: autoscalers, schedules, admission webhooks."""
    STOP = "stop"
    """Workloads go, with their pods."""
    REMOVE = "remove"
    """Services, configuration, budgets, volumes: what the workload needed."""
    RELEASE = "release"
    """Owners, definitions, namespaces: what held the rest together."""
    PROVE = "prove"
    """Everything is read afresh."""

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)
        """Its place in the order."""

    def __lt__(self, other: Self) -> bool:
        return self.rank < other.rank

    def __le__(self, other: Self) -> bool:
        return self.rank <= other.rank

    def __gt__(self, other: Self) -> bool:
        return self.rank > other.rank

    def __ge__(self, other: Self) -> bool:
        return self.rank >= other.rank

    def __str__(self) -> str:
        return str(self.value)
