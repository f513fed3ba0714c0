"""What the gateway can be told, and where its files are. Nothing has to be set."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

SOCKET_PATH_MAX = 100
"""Of the path of a unix socket, in bytes; systems end at 104 or 108."""


class Settings(msgspec.Struct, frozen=True):
    """All settings; `Folder` has the paths."""

    run: str
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = 8083
    """None: nowhere."""
    envoy: str = ""
    """The program; empty: found."""
    access_log: str = ""
    """Empty: none is written."""
    names: tuple[str, ...] = ()
    """The gateway's own, which no route gets as its host."""
    hosts: tuple[tuple[str, str], ...] = ()
    """A namespace and a host that it may have; empty: any may have any."""
    memory_bytes: int = 0
    """That Envoy may take; 0: by the memory of the machine."""
    drain_seconds: float = 30.0
    log_level: str = "info"
    kubeconfig: str | None = None
    context: str | None = None
    user: int | None = None
    """Whom Envoy runs as, where that is not who we are."""


class Folder:
    """The files of a running gateway. Only its user gets in."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.ads = self.path / "ads.sock"
        self.admin = self.path / "admin.sock"
        self.lock = self.path / "lock"
        self.access_log = self.path / "access.log"

    def log_of_envoy(self, access_log: str) -> str:
        """How Envoy, which works in this folder, calls the access log."""
        path = Path(access_log)
        return path.name if path.parent == self.path else access_log

    def too_long(self) -> bool:
        """Whether a socket cannot be made in it."""
        return len(os.fsencode(self.admin)) > SOCKET_PATH_MAX


def default_folder() -> Path:
    """Where it runs unless it is told: in the user's folder for such things, or in the cache."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pilotage" / "gateway"
