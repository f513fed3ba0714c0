"""The parts of the system on one machine, and how each is started: plain command lines of `pilotage`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pilotage.up.layout import Layout

HARBOR, OPERATOR, AGENT, GATEWAY = "harbor", "operator", "agent", "gateway"
WORKERS = (OPERATOR, GATEWAY, AGENT)
"""Those that come up together when the API server is there."""
DOWN = (AGENT, GATEWAY, OPERATOR, HARBOR)
"""The order of going: servers are withdrawn and drained while requests still get through and the API still answers."""


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


def command(part: str, wishes: Wishes, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    """The command line of a part."""
    return [sys.executable, "-m", "pilotage", part, *_arguments(part, wishes, layout, ports)]


def _arguments(part: str, wishes: Wishes, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    if part == HARBOR:
        return ["--data", str(layout.harbor), "--port", str(wishes.api_port)]
    shared = ["--kubeconfig", str(layout.access(part)), "--metrics-address", f"127.0.0.1:{ports[part]}"]
    roots = [word for root in wishes.file_roots for word in ("--file-roots", str(root))]
    gateway = f"http://127.0.0.1:{wishes.port}"
    if part == OPERATOR:
        return [*shared, "--cache-root", str(layout.models), *roots, "--gateway-url", gateway]
    if part == GATEWAY:
        envoy = ["--envoy", str(wishes.envoy)] if wishes.envoy else []
        where = ["--run", str(layout.gateway), "--access-log", str(layout.gateway / "access.log")]
        return [*shared, "--listen", f"127.0.0.1:{wishes.port}", *where, *envoy]
    llama = ["--llama-server", str(wishes.llama_server)] if wishes.llama_server else []
    return [
        *shared,
        *("--name", wishes.host),
        *("--address", "127.0.0.1"),
        *("--data", str(layout.of(part))),
        *("--cache-root", str(layout.of(part) / "models")),  # each sweeps its own at its start
        *roots,
        *llama,
    ]
