"""Makes processes that fetch one source into one place until they are killed: for `test_writers`.

A line on its standard input makes one, by a fork, and prints its pid: what takes long is imported once.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from pilotage.models import TransientError, fetch, parse_source
from pilotage.models.fetch import Terms
from pilotage.models.sources import web as _imported_once  # noqa: F401
from tests.models.web import open_access


async def write(url: str, target: Path, sha256: str) -> None:
    while True:
        with contextlib.suppress(TransientError):
            await fetch(parse_source(url), target, open_access(), terms=Terms(sha256), checkpoint_bytes=1 << 17)


def main(url: str, target: str, sha256: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not waited for
    children = []
    while sys.stdin.readline():
        child = os.fork()
        if child == 0:
            asyncio.run(write(url, Path(target), sha256))
        children.append(child)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
