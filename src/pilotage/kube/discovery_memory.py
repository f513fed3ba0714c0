"""Last discovery of a server, kept on disk: a command can start to read before the server has been asked again.

It is no more than a first guess. Whoever begins with it asks the server as well, by the ETags that are kept here, and
does not conclude anything before it has said that nothing has changed. A file that is damaged or cannot be written is
as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pilotage.kube.discovery import Surface

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube.config import ClusterConfig

FORMAT = 1
"""Another number for every change of what is written: what another version wrote is not read."""

FORGET_SECONDS = 30 * 24 * 3600.0


class Remembered(msgspec.Struct, array_like=True):
    """One discovery: the ETags of the two answers, in the order in which they are asked for, and what they said."""

    format: int
    etags: tuple[str, str]
    surface: Surface


class DiscoveryMemory:
    """The file for one cluster, which only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of(cls, config: ClusterConfig, env: Mapping[str, str] = os.environ) -> DiscoveryMemory | None:
        """Memory by the server's address and the CA that vouches for it; None where there is no home to keep it in."""
        home, root = env.get("HOME"), env.get("XDG_CACHE_HOME")
        folder = Path(root) if root else Path(home, ".cache") if home else Path()
        if not folder.is_absolute():
            return None
        tls = config.tls
        who = "\0".join((config.server, config.proxy_url or "", tls.server_name or "")).encode()
        name = hashlib.sha256(who + b"\0" + (tls.ca_data or b"")).hexdigest()[:32]
        return cls(folder / "pilotage" / "discovery" / name)

    def recall(self) -> Remembered | None:
        """The discovery that was kept last."""
        try:
            found = msgspec.msgpack.decode(self._path.read_bytes(), type=Remembered)
        except (OSError, ValueError):  # of other bytes than ours, DecodeError is a ValueError
            return None
        return found if found.format == FORMAT else None

    def keep(self, etags: tuple[str, str], surface: Surface) -> None:
        """Keep this instead, whole or not at all."""
        written = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.msgpack.encode(Remembered(FORMAT, etags, surface)))
            written.replace(self._path)
            self._forget_the_others()
        except OSError:
            with contextlib.suppress(OSError):
                written.unlink()

    def _forget_the_others(self) -> None:
        """Those of clusters that nobody has asked for long: of test clusters, each is another."""
        oldest = time.time() - FORGET_SECONDS
        for each in self._path.parent.iterdir():
            if each.stat().st_mtime < oldest:
                each.unlink()
