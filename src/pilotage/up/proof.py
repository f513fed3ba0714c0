"""Proof that nothing of a folder is left: its processes and ports, as the system itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage.up import remains
from pilotage.up.parts import GATEWAY

if TYPE_CHECKING:
    from pilotage.up.layout import Layout, Note, Seen


class UpError(Exception):
    """It cannot come up, or did not go down: in one sentence, and what to do."""


class Proof(NamedTuple):
    """Remains after all was told to end."""

    processes: list[Seen]
    ports: list[int]

    def __bool__(self) -> bool:
        """Whether nothing is left."""
        return not self.processes and not self.ports

    def __str__(self) -> str:
        """Words for what is left, and the next step."""
        processes = ", ".join(str(each.pid) for each in self.processes)
        ports = ", ".join(str(each) for each in self.ports)
        what = [f"processes {processes}"] * bool(processes) + [f"ports {ports}"] * bool(ports)
        return f"not all has ended: {' and '.join(what)}. Run `pilotage down` again; it forces what does not end."


def look(layout: Layout, note: Note | None) -> Proof:
    """Remains of the processes of a folder, and of the ports of the parts in its note."""
    return Proof(remains.marked(layout.folder), remains.listening(_ports(note) if note is not None else []))


def _ports(note: Note) -> list[int]:
    """Where the parts that were started listen: one that was not may have its port taken by somebody else."""
    ports = [port for part, port in note.ports.items() if part in note.parts]
    if GATEWAY in note.parts:
        ports.append(int(note.gateway.rpartition(":")[2]))
    return ports
