"""Components of the system on one machine: the command line of each, and its process.

A component is a plain command of `pilotage`, started with the folder's mark and with its output in a log file. It does
not die with the supervisor: requests are still answered, and the next supervisor, or `pilotage down`, ends all
components in their order.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pilotage.agent.launch import programs
from pilotage.processes.census import UP_FOLDER
from pilotage.processes.child import Child
from pilotage.processes.run_as import SERVER_USER, closed_to, find_user
from pilotage.runtime.backoff import ExponentialBackoff
from pilotage.up.layout import Layout
from pilotage.up.logs import rotate
from pilotage.up.settings import UpOptions

HARBOR, OPERATOR, AGENT, GATEWAY = "harbor", "operator", "agent", "gateway"
WORKERS = (OPERATOR, GATEWAY, AGENT)
"""Those that are started together when the API server answers."""
STOP_ORDER = (AGENT, GATEWAY, OPERATOR, HARBOR)
"""Servers are withdrawn and drained while requests still get through and the API still answers."""
PRIORITY_MAX = 2**31 - 1
"""No limit: on this machine one person deploys."""
RESTART_SECONDS_MIN, RESTART_SECONDS_MAX = 0.25, 30.0
STEADY_SECONDS = 60.0
"""Length of a run after which the next restart waits for the shortest time again."""


def command(component: str, options: UpOptions, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    """The command line of a component."""
    return [sys.executable, "-m", "pilotage", component, *_arguments(component, options, layout, ports)]


def _arguments(component: str, options: UpOptions, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    if component == HARBOR:
        port = ports.get(HARBOR, options.api_port)  # once others know it, no other one will do
        return ["--data", str(layout.harbor), "--port", str(port)]
    shared = ["--kubeconfig", str(layout.access(component)), "--metrics-address", f"127.0.0.1:{ports[component]}"]
    gateway = f"http://127.0.0.1:{options.port}"
    if component == OPERATOR:
        # The supervisor has one at a time, and waits for its end: the next need not wait for a Lease of 15 s.
        alone = "--no-leader-election"
        return [*shared, alone, "--cache-root", str(layout.models), *_roots(options), "--gateway-url", gateway]
    if component == GATEWAY:
        envoy = ["--envoy", str(options.envoy)] if options.envoy else []
        where = ["--run", str(layout.gateway), "--access-log", str(layout.gateway / "access.log")]
        return [*shared, "--listen", f"127.0.0.1:{options.port}", *where, *envoy]
    return [*shared, *_of_agent(options, layout, ports)]


def _of_agent(options: UpOptions, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    """The agent's own arguments. The ports of other components are reserved also while those are restarted."""
    reserved = sorted({options.port, *ports.values()} - {0})
    return [
        *("--name", options.host),
        *("--address", "127.0.0.1"),
        *("--data", str(layout.of(AGENT))),
        *("--cache-root", str(layout.of(AGENT) / "models")),  # each sweeps its own at its start
        *_roots(options),
        *(["--llama-server", str(options.llama_server)] if options.llama_server else []),
        *(["--allow-commands"] if options.allow_commands else []),
        *(word for port in reserved for word in ("--reserved-ports", str(port))),
        *(["--run-as", "root"] if unreachable(options) else []),
        *("--priority-max", str(PRIORITY_MAX), "--allow-protected"),
    ]


def unreachable(options: UpOptions) -> Path | None:
    """The folder that keeps all users but root from llama-server, where we are root: servers run as root then.

    None where specs may name any command: those are never run as root, and llama-server is not reached.
    """
    if options.allow_commands or os.geteuid() != 0:
        return None
    found = programs.find("llama.cpp", Path(options.llama_server) if options.llama_server else None)
    return closed_to(find_user(SERVER_USER), Path(found.path), os.X_OK) if found is not None else None


def _roots(options: UpOptions) -> list[str]:
    return [word for root in options.file_roots for word in ("--file-roots", str(root))]


class Component(Child):
    """A component of one folder. `command` gives its command line, anew for each start."""

    def __init__(self, name: str, layout: Layout, command: Callable[[], Sequence[str]]) -> None:
        delays = ExponentialBackoff[str](RESTART_SECONDS_MIN, RESTART_SECONDS_MAX)
        super().__init__(name, self._spawn_one, delays, STEADY_SECONDS)
        self.log = layout.logs / f"{name}.log"
        self._layout = layout
        self._command = command

    def crash(self) -> None:
        """SIGKILL, to it alone."""
        if self.id is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.id.pid, signal.SIGKILL)

    def last_line(self) -> str:
        """The last line of its log, for a person."""
        with contextlib.suppress(OSError):
            lines = self.log.read_bytes()[-4096:].decode(errors="replace").strip().splitlines()
            if lines:
                return lines[-1]
        return "its log is empty"

    async def _spawn_one(self) -> asyncio.subprocess.Process:
        """Start it in a process group of its own: Ctrl-C is for the supervisor, which then stops all in order."""
        with contextlib.suppress(OSError):  # a log that cannot be rotated prevents no start
            rotate(self.log)
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self._command(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A person reads these logs, unless the caller has set another format.
                env={
                    "PILOTAGE_LOGS": "text",
                    **os.environ,
                    UP_FOLDER: str(self._layout.folder),
                    "PYTHONUNBUFFERED": "1",
                },
                process_group=0,
            )
