"""Commands, run as a person runs them: in this process, or on a terminal of their own."""

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from click.testing import CliRunner

from pilotage.cli import pilotage
from pilotage.kube import Client, load_config

T = TypeVar("T")

SECONDS_MAX = 60.0
NO_SERVER = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
"""


class Ran(NamedTuple):
    """Result of a command."""

    code: int
    out: str
    err: str


def run(*args: str | Path, kubeconfig: Path | None = None, stdin: str | None = None) -> Ran:
    """Run a command without a terminal. Standard output and standard error are kept apart."""
    words = [str(arg) for arg in args]
    words += ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    result = CliRunner().invoke(pilotage, words, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception  # a user must never see a traceback
    return Ran(result.exit_code, result.stdout, result.stderr)


def ask(kubeconfig: Path, what: Callable[[Client], Awaitable[T]]) -> T:
    """One thing that a client does, for as long as it takes."""

    async def connected() -> T:
        async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
            return await what(client)

    return asyncio.run(connected())


def run_on_terminal(*args: str | Path, typed: str = "", **environment: str) -> Ran:
    """Run the program on a terminal; all it prints is in `out`."""
    primary, secondary = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | environment
    program = [sys.executable, "-c", "from pilotage.cli import main; main()", *map(str, args)]
    with subprocess.Popen(program, stdin=secondary, stdout=secondary, stderr=secondary, env=env) as process:
        os.close(secondary)
        os.write(primary, typed.encode())
        printed = _all_of(primary, time.monotonic() + SECONDS_MAX)
        code = process.wait(SECONDS_MAX)
    os.close(primary)
    return Ran(code, printed, "")


def _all_of(terminal: int, deadline: float) -> str:
    """Output of the program until it closes its side."""
    printed = b""
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # Linux's error when the other side is closed
                break
            if not piece:
                break
            printed += piece
    return printed.decode().replace("\r\n", "\n")
