"""Agents as processes of their own that can be made to die at a given point. One process forks them: that is quick.

``python -m tests.agent.forked_agents KUBECONFIG`` reads a JSON line for each agent and answers with its pid.
At every point between two acts an agent writes its name to a file; at the one that was asked for it gets SIGKILL.
It takes its host to be short of memory while there is a file `pressed` in its folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pilotage.agent.pressure import MemoryPressure, MemoryStrain
from pilotage.agent.run import AgentProcess
from pilotage.agent.settings import AgentSettings, load_settings
from pilotage.kube import Client, load_config
from pilotage.processes import identity
from pilotage.runtime.logs import configure_logging
from pilotage.runtime.process import on_signals
from tests.agent.agent_host import SHORT_INTERVALS

INTERVALS = dataclasses.replace(SHORT_INTERVALS, probe=1.0, pressure=0.2, host=5.0)
"""There are many of them."""


class Nursery:
    """The process that forks agents, as a test sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def agent(self, settings: AgentSettings, *, die_at: str = "", intervals: Mapping[str, float] = {}) -> Agent:
        """One that runs; `die_at` is the point where it dies, `intervals` what is different from `INTERVALS`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wish = {"settings": msgspec.to_builtins(settings, enc_hook=str), "die_at": die_at, "intervals": dict(intervals)}
        print(json.dumps(wish), file=self._process.stdin, flush=True)
        return Agent(int(self._process.stdout.readline()), settings.data)


class Agent:
    """One agent."""

    def __init__(self, pid: int, data: Path) -> None:
        self.pid = pid
        self._data = data

    @property
    def lives(self) -> bool:
        return identity.find(self.pid) is not None

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    @property
    def steps(self) -> list[str]:
        """The points that it has passed."""
        path = self._data / "steps"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def log(self) -> str:
        path = self._data / "agent.log"
        return path.read_text() if path.exists() else ""


class Flag:
    """Memory pressure of a host: high while a file exists."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> MemoryStrain:
        return MemoryStrain(0.01 if self._path.exists() else 1.0)


@contextlib.contextmanager
def nursery(kubeconfig: Path) -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.agent.forked_agents", str(kubeconfig)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Nursery(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)


def main(kubeconfig: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no test has to wait for them
    gc.disable()  # each of them would scan all imported objects, and copy them
    children = []
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(_child(kubeconfig, json.loads(line)))
        children.append(child)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _child(kubeconfig: str, wish: dict[str, Any]) -> int:
    settings = load_settings(wish["settings"], {})
    settings.data.mkdir(parents=True, exist_ok=True)
    log = os.open(settings.data / "agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    configure_logging(level="debug")
    steps = os.open(settings.data / "steps", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def at(name: str) -> None:
        os.write(steps, f"{name}\n".encode())
        if name == wish["die_at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    async def run() -> int:
        async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
            intervals = dataclasses.replace(INTERVALS, **wish["intervals"])
            pressure = MemoryPressure(Flag(settings.data / "pressed"), calm_seconds=0.1, next_seconds=60.0)
            running = AgentProcess(settings, client, intervals=intervals, pressure=pressure, at=at)
            with on_signals(running.stop):
                return int(await running.run())

    return asyncio.run(run())


if __name__ == "__main__":
    main(sys.argv[1])
