"""Logs of servers on Hosts: files on those machines, which their agents name.

Nobody but that machine can read such a file. It is named on stderr, and printed where this is that machine: its name
has the uid of its process in it, so one that is here is the right one.
"""

from __future__ import annotations

import asyncio
import collections
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from pilotage.cli.output.text import say
from pilotage.terminal import printable

if TYPE_CHECKING:
    from pilotage.kube import Object

LOOK_SECONDS = 0.2
"""Between two looks whether there is more."""


async def print_logs(processes: list[Object], *, tail: int | None, follow: bool) -> bool:
    """Print what can be read here, and say where all of it lies; returns whether anything was printed."""
    ordered = sorted(processes, key=lambda process: process.meta.name)
    printed = await asyncio.gather(*(_print(each, tail, follow=follow, prefix=len(ordered) > 1) for each in ordered))
    return any(printed)


async def _print(process: Object, tail: int | None, *, follow: bool, prefix: bool) -> bool:
    name = f"hostprocess/{process.meta.name}"
    host, file = process.get("spec", "host"), Path(process.get("status", "logFile") or "")
    if not host or not file.name:
        why = f"has not started yet on host/{host}" if host else "is not placed on a Host yet"
        say(f"{name} {why}.", err=True)
        return False
    say(f"{name} on host/{host}: {file}", err=True)
    try:
        if not _is_here(file, process):
            say(f"That file is not on this machine: read it on {host}.", err=True)
            return False
        with file.open("rb") as log:  # noqa: ASYNC230 - nobody else waits
            return await _copy(log, tail, follow=follow, start=f"[{process.meta.name}] " if prefix else "")
    except OSError as error:
        say(f"{file} cannot be read: {error.strerror}.", err=True)
        return False


async def _copy(log: BinaryIO, tail: int | None, *, follow: bool, start: str) -> bool:
    read = log.read() if tail is None else b"".join(collections.deque(log, tail))
    printed = False
    while True:
        *lines, rest = read.split(b"\n")
        if rest and not follow:
            lines.append(rest)
        for line in lines:
            click.echo(start + printable(line.decode(errors="replace"), but="\t"))
            printed = True
        if not follow or not os.fstat(log.fileno()).st_nlink:  # it goes with its process
            return printed
        await asyncio.sleep(LOOK_SECONDS)
        if os.fstat(log.fileno()).st_size < log.tell():  # cut, as it was too long
            log.seek(0)
        read = rest + log.read()


def _is_here(file: Path, process: Object) -> bool:
    return process.meta.uid[:8] in file.name and file.is_file()
