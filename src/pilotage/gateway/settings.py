"""Settings of the gateway, and the paths of its files. All have defaults."""

import os
from pathlib import Path

import msgspec

SOCKET_PATH_MAX = 100
"""Length limit of the path of a unix socket, in bytes; systems end at 104 or 108."""


class GatewaySettings(msgspec.Struct, frozen=True):
    """All settings; `Folder` has the paths."""

    run: str
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = 8083
    """None: no metrics are served."""
    envoy: str = ""
    """Path of Envoy; empty: that on PATH, or of the wheel."""
    access_log: str = ""
    """Path; empty: none is written."""
    names: tuple[str, ...] = ()
    """Names of the gateway itself, which no route gets as its host."""
    hosts: tuple[tuple[str, str], ...] = ()
    """Pairs of a namespace and a host that it may have; empty: no limits."""
    memory_bytes: int = 0
    """Memory limit of Envoy; 0: a share of the machine's memory."""
    drain_seconds: float = 30.0
    log_level: str = "info"
    kubeconfig: str | None = None
    context: str | None = None
    user: int | None = None
    """The uid that Envoy runs as; None: ours."""


class Folder:
    """The files of a running gateway. Only its user gets in."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.ads = self.path / "ads.sock"
        self.admin = self.path / "admin.sock"
        self.lock = self.path / "lock"
        self.access_log = self.path / "access.log"
        self.measured_log = self.path / "measured.log"

    def log_of_envoy(self, access_log: str) -> str:
        """The path of the access log for Envoy, whose working directory is this folder."""
        path = Path(access_log)
        return path.name if path.parent == self.path else access_log

    def too_long(self) -> bool:
        """Whether a socket cannot be made in it."""
        return len(os.fsencode(self.admin)) > SOCKET_PATH_MAX


def default_folder() -> Path:
    """The default run folder: in XDG_RUNTIME_DIR, or in the cache."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pilotage" / "gateway"
