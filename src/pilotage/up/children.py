"""One part as a child process: started with a mark, its output in a log file.

It does not die with the supervisor: requests are answered on, and who comes next ends all parts in their order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

from pilotage.up.layout import MARK
from pilotage.up.logs import rotate
from pilotage.up.remains import seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pilotage.up.layout import Layout, Seen


class Child:
    """A process of ours. `start` gives it its life; who waits for `ended` gets its exit code."""

    def __init__(self, name: str, layout: Layout) -> None:
        self.name = name
        self.log = layout.logs / f"{name}.log"
        self._layout = layout
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, command: Sequence[str]) -> Seen:
        """Start it. Its own process group: Ctrl-C in a terminal is for the supervisor, who then asks in order."""
        with contextlib.suppress(OSError):  # a log that cannot be put aside keeps no part from starting
            rotate(self.log)
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A person reads these logs, unless somebody has said that a program does.
                env={"PILOTAGE_LOGS": "text", **os.environ, MARK: str(self._layout.folder), "PYTHONUNBUFFERED": "1"},
                process_group=0,
            )
        found = seen(self._process.pid)
        if found is None:
            raise ChildProcessError(f"{self.name} ended at once: {self.last_words()}")
        return found

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def ended(self) -> int:
        """Its exit code, when it has one."""
        assert self._process is not None
        return await self._process.wait()

    def ask_to_end(self) -> None:
        """SIGTERM, which every part knows what to do with; a second one hurries it."""
        self._send(signal.SIGTERM)

    def force(self) -> None:
        """SIGKILL, to it and to all of its group."""
        if self.running:
            assert self._process is not None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def crash(self) -> None:
        """SIGKILL, to it alone."""
        self._send(signal.SIGKILL)

    def last_words(self) -> str:
        """The last line of its log, for a person."""
        with contextlib.suppress(OSError):
            lines = self.log.read_bytes()[-4096:].decode(errors="replace").strip().splitlines()
            if lines:
                return lines[-1]
        return "it said nothing"

    def _send(self, number: signal.Signals) -> None:
        if self.running:
            assert self._process is not None
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
