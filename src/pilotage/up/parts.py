"""The parts of the system on one machine, and how each is started: plain command lines of `pilotage`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pilotage.agent.launch import programs
from pilotage.system.unprivileged import SERVER_USER, closed_to, find_user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pilotage.up.layout import Layout

HARBOR, OPERATOR, AGENT, GATEWAY = "harbor", "operator", "agent", "gateway"
WORKERS = (OPERATOR, GATEWAY, AGENT)
"""Those that come up together when the API server is there."""
DOWN = (AGENT, GATEWAY, OPERATOR, HARBOR)
"""The order of going: servers are withdrawn and drained while requests still get through and the API still answers."""
PRIORITY_MAX = 2**31 - 1
"""Whatever an endpoint says of its own priority counts, where one person deploys."""


class Wishes(NamedTuple):
    """What a person can choose."""

    folder: Path
    port: int = 8080
    """Of the gateway."""
    api_port: int = 0
    host: str = "local"
    """The name of the Host that this machine is."""
    file_roots: Sequence[Path] = ()
    llama_server: Path | None = None
    envoy: Path | None = None
    patience: float = 120
    """How long a part may take to end, in seconds; an agent drains its servers meanwhile."""
    allow_commands: bool = False
    """Whether endpoints may name any command and argument; else this machine runs presets with safe ones."""


def command(part: str, wishes: Wishes, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    """The command line of a part."""
    return [sys.executable, "-m", "pilotage", part, *_arguments(part, wishes, layout, ports)]


def _arguments(part: str, wishes: Wishes, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    if part == HARBOR:
        port = ports.get(HARBOR, wishes.api_port)  # once others know it, no other one will do
        return ["--data", str(layout.harbor), "--port", str(port)]
    shared = ["--kubeconfig", str(layout.access(part)), "--metrics-address", f"127.0.0.1:{ports[part]}"]
    gateway = f"http://127.0.0.1:{wishes.port}"
    if part == OPERATOR:
        # The supervisor has one at a time, and waits for its end: the next need not wait for a Lease of 15 s.
        alone = "--no-leader-election"
        return [*shared, alone, "--cache-root", str(layout.models), *_roots(wishes), "--gateway-url", gateway]
    if part == GATEWAY:
        envoy = ["--envoy", str(wishes.envoy)] if wishes.envoy else []
        where = ["--run", str(layout.gateway), "--access-log", str(layout.gateway / "access.log")]
        return [*shared, "--listen", f"127.0.0.1:{wishes.port}", *where, *envoy]
    return [*shared, *_of_agent(wishes, layout, ports)]


def _of_agent(wishes: Wishes, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    """The agent's own. The ports of the other parts are theirs also while they start anew."""
    reserved = sorted({wishes.port, *ports.values()} - {0})
    return [
        *("--name", wishes.host),
        *("--address", "127.0.0.1"),
        *("--data", str(layout.of(AGENT))),
        *("--cache-root", str(layout.of(AGENT) / "models")),  # each sweeps its own at its start
        *_roots(wishes),
        *(["--llama-server", str(wishes.llama_server)] if wishes.llama_server else []),
        *(["--allow-commands"] if wishes.allow_commands else []),
        *(word for port in reserved for word in ("--reserved-ports", str(port))),
        *(["--run-as", "root"] if unreachable(wishes) else []),
        *("--priority-max", str(PRIORITY_MAX), "--allow-protected"),
    ]


def unreachable(wishes: Wishes) -> Path | None:
    """The folder that keeps all users but root from llama-server, where we are root: servers run as root then.

    None where specs may name any command: those are never run as root, and llama-server is not reached.
    """
    if wishes.allow_commands or os.geteuid() != 0:
        return None
    found = programs.find("llama.cpp", wishes.llama_server)
    return closed_to(find_user(SERVER_USER), Path(found.path), os.X_OK) if found is not None else None


def _roots(wishes: Wishes) -> list[str]:
    return [word for root in wishes.file_roots for word in ("--file-roots", str(root))]
