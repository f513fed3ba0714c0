"""Leftovers of a folder: processes and ports that should have gone, as the system itself reports them."""

from typing import NamedTuple

from pilotage.processes import census
from pilotage.processes.census import UP_FOLDER
from pilotage.processes.identity import ProcessInfo
from pilotage.processes.ports import is_listening
from pilotage.up.components import GATEWAY
from pilotage.up.layout import Layout, UpState


class UpError(Exception):
    """`up` or `down` failed: one sentence, and what to do."""


class Leftovers(NamedTuple):
    """False if there are none."""

    layout: Layout
    processes: list[ProcessInfo]
    ports: list[int]

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return bool(self.processes or self.ports)

    def __str__(self) -> str:
        """All that is left, and the next step."""
        processes = ", ".join(str(each.pid) for each in self.processes)
        ports = ", ".join(str(each) for each in self.ports)
        what = [f"processes {processes}"] * bool(processes) + [f"ports {ports}"] * bool(ports)
        again = f"pilotage down{self.layout.option}"
        return f"not all has ended: {' and '.join(what)}. Run `{again}` again; it kills what does not end."


def mark(layout: Layout) -> dict[str, str]:
    """The variable in the environment of every process of a folder."""
    return {UP_FOLDER: str(layout.folder)}


def find(layout: Layout, state: UpState | None) -> Leftovers:
    """Processes that carry the folder's mark, and ports of components that were started."""
    ports = _ports(state) if state is not None else []
    return Leftovers(layout, census.marked(mark(layout)), [port for port in ports if is_listening(port)])


def _ports(state: UpState) -> list[int]:
    """Ports of components that were started: the port of another may be taken by a program that is not ours."""
    ports = [port for component, port in state.ports.items() if component in state.components]
    if GATEWAY in state.components:
        ports.append(int(state.gateway.rpartition(":")[2]))
    return ports
