"""The cases, as data: the fault, the component, and the activity meanwhile. Those of one journey share a machine."""

from __future__ import annotations

import enum
from typing import NamedTuple

DAYS = 2
"""Days by which the clock is set, in each direction."""


class State(enum.Enum):
    """The state of an endpoint when the fault comes."""

    SERVING = "serving"
    DEPLOYING = "deploying"
    DELETING = "deleting"


class Fault(enum.Enum):
    """A fault of one part, or of the whole machine."""

    KILL = "kill"
    FREEZE = "freeze"
    DESCRIPTORS = "no descriptors for"
    DISK = "disk full"
    FORWARD = "clock forward"
    BACK = "clock back"


class Case(NamedTuple):
    """One fault in one state. `part` is empty where it is the machine's."""

    fault: Fault
    part: str
    state: State

    def __str__(self) -> str:
        return f"{self.fault.value}{' ' * bool(self.part)}{self.part} while {self.state.value}"


PARTS = ("harbor", "operator", "agent", "gateway", "control plane", "Envoy", "llama-server", "supervisor")
OF_PARTS = (Fault.FREEZE, Fault.KILL, Fault.DESCRIPTORS)
OF_MACHINES = (Fault.DISK, Fault.FORWARD, Fault.BACK)


def journeys() -> list[list[Case]]:
    """All cases; those that take longest first, so that they do not come alone at the end."""
    wholes = [(fault, part) for fault in OF_PARTS for part in PARTS] + [(fault, "") for fault in OF_MACHINES]
    return [[Case(fault, part, state) for state in State] for fault, part in wholes]
