"""A person at a shell: a home of their own, commands typed one after the other, and what they print."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane import assets

HOME = "/home/captain"
"""The home on the pages: as long as the path of a temporary folder, so that columns stay aligned."""
PORT = 8080
"""The gateway's port on the pages."""
PORTS = range(8081, 9999)
"""Ports that are taken instead, with as many digits."""
SECONDS_MAX = 90.0
END = "\x04"


class Person:
    """One shell, for the time of the block; whatever it exports stays."""

    def __init__(self, cwd: Path | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix=""))
        self.env = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), *_kubectl(), os.environ.get("PATH", "")]),
            "LANG": "C.UTF-8",
        }
        self._port = _free_port()
        self._cwd = cwd or self.home

    def __enter__(self) -> Self:
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=self._cwd,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._keys, self._screen = self._shell.stdin, self._shell.stdout
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._shell.pid, signal.SIGKILL)  # with what a page has left in the background
        self._shell.wait()
        self._keys.close()
        self._screen.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def type(self, command: str) -> str:
        """Run a command. Returns what it printed on both outputs, and the exit code if it is not 0, as on a page."""
        typed = self.home / ".typed"
        typed.write_text(command.replace(HOME, str(self.home)).replace(str(PORT), str(self._port)), encoding="utf-8")
        self._keys.write(f"eval \"$(<'{typed}')\" </dev/null; printf '{END}%s{END}' $?\n".encode())
        self._keys.flush()
        said, code, _ = self._read(command).split(END)
        said = said.replace(str(self.home), HOME).replace(str(self._port), str(PORT))
        lines = [line.rstrip() for line in said.splitlines()] + ([f"(exit code {code})"] if code != "0" else [])
        return "".join(f"{line}\n" for line in lines)

    def _read(self, command: str) -> str:
        """Output up to and with the exit code."""
        said, deadline = b"", time.monotonic() + SECONDS_MAX
        while said.count(END.encode()) < 2:
            assert select.select([self._screen], [], [], max(0.0, deadline - time.monotonic()))[0], (
                f"does not end: {command}\n{said.decode()}"
            )
            piece = os.read(self._screen.fileno(), 65536)
            assert piece, f"the shell has ended: {command}\n{said.decode()}"
            said += piece
        return said.decode()


def _kubectl() -> list[str]:
    """The folder of kubectl, if it is built."""
    found = assets.find(os.environ).get("kubectl")
    return [str(found.parent)] if found else []


def _free_port() -> int:
    for port in PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
