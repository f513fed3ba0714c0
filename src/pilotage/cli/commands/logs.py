"""``pilotage logs``: what the pods of an endpoint print, or its processes on Hosts."""

import asyncio
import collections
import os
from pathlib import Path
from shlex import quote
from typing import BinaryIO, NamedTuple

import click

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID, LABEL_REVISION, PROCESSES
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import BadTarget, plain_errors
from pilotage.cli.options import cluster_options, name_argument, namespace_option, revision_option
from pilotage.cli.output.text import note, say
from pilotage.kube import PODS, Absent, ApiError, Client, Object, ObjectKey
from pilotage.rollout.requests import get
from pilotage.rollout.revisions import serving_revision
from pilotage.terminal import printable

LOOK_SECONDS = 0.2
"""Interval between two reads of the log."""
NEXT_LOOKS_MAX = 300
"""Reads in which the next revision has to have a pod or a process."""


class _Asked(NamedTuple):
    follow: bool
    tail: int | None
    previous: bool
    revision: int | None
    container: str


@click.command()
@name_argument
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@click.option("--tail", metavar="LINES", type=click.IntRange(min=-1), default=-1, help="The last lines of each only.")
@click.option("--previous", "-p", is_flag=True, help="Of the container before, where one has crashed.")
@revision_option("--revision", "Of this revision.  [default: what serves]")
@click.option("-c", "--container", metavar="NAME", default="", help="Of this container.  [default: the server]")
@namespace_option
@cluster_options
@plain_errors
@asynchronous
async def logs(
    name: str,
    follow: bool,
    tail: int,
    previous: bool,
    revision: int | None,
    container: str,
    namespace: str,
    cluster: ClusterChoice,
) -> int:
    """Print the logs of the pods of an endpoint, or of its processes on Hosts.

    \b
    pilotage logs assistant -n chat --tail 100
    pilotage logs assistant -f
    pilotage logs assistant --revision 8 --previous

    The logs are those of the revision that serves, or of the newest if none does yet. With several pods, each line
    starts with the name of its pod. A pod without logs is named on stderr. With -f, the logs of the next revision
    follow after a redeploy; where they end, stderr says why.

    On a Host, the log of a server is a file on that machine: its path is printed, and its lines if it is readable here.

    Exit codes: 0 printed, 1 there was nothing to print, 2 bad usage or no such endpoint, 3 the API could not be read.
    """
    if follow and previous:
        raise click.UsageError("--previous has ended: there is nothing to follow. Leave out -f.")
    asked = _Asked(follow, None if tail < 0 else tail, previous, revision, container)
    async with cluster.session() as session:
        client = session.client
        endpoint = await get(client, ENDPOINTS, ObjectKey(namespace or client.namespace, name))
        number = asked.revision if asked.revision is not None else serving_revision(StoredEndpoint.of(endpoint))
        look = cluster.complete(f"pilotage status {quote(name)} -n {quote(endpoint.meta.namespace)}")
        if number is None:
            raise BadTarget(f"{endpoint.ref} has no revision yet. Look with: {look}")
        parts = await _parts(client, endpoint, number)
        if not parts:
            say(f"There are no pods of {name}-{number}. Look with: {look}", err=True)
            return 1
        printed = await _print_all(client, parts, asked)
        while follow and printed and parts:
            number, parts = await _next(client, endpoint, number, asked)
            if parts:
                await _print_all(client, parts, asked._replace(tail=None))
    return 0 if printed else 1


async def _parts(client: Client, endpoint: Object, number: int) -> list[Object]:
    """The pods of a revision, or its processes on Hosts."""
    labels = f"{LABEL_ENDPOINT_UID}={endpoint.meta.uid},{LABEL_REVISION}={number}"
    pods = (await client.list(PODS, endpoint.meta.namespace, labels=labels)).items
    found = pods or (await client.list(PROCESSES, endpoint.meta.namespace, labels=labels)).items
    return sorted(found, key=lambda each: each.meta.name)


async def _print_all(client: Client, parts: list[Object], asked: _Asked) -> bool:
    """Print the logs of pods or processes, side by side; returns whether there was anything."""
    if parts[0].kind == PROCESSES.kind:
        return await _of_hosts(parts, asked)
    printed = await asyncio.gather(*(_print(client, pod, asked, prefix=len(parts) > 1) for pod in parts))
    return any(printed)


async def _next(client: Client, endpoint: Object, ended: int, asked: _Asked) -> tuple[int, list[Object]]:
    """The revision that serves after one whose logs have ended, and its parts; says why where there are none."""
    name = f"{endpoint.meta.name}-{ended}"
    if asked.revision is not None:
        note(f"The logs of {name} have ended.")
        return ended, []
    for _ in range(NEXT_LOOKS_MAX):
        try:
            current = await client.get(ENDPOINTS, endpoint.key)
        except Absent:
            note(f"The logs of {name} have ended: {endpoint.ref} was deleted.")
            return ended, []
        number = serving_revision(StoredEndpoint.of(current))
        if number is None or number == ended:
            break
        if parts := await _parts(client, endpoint, number):
            note(f"The logs of {name} have ended: {endpoint.meta.name}-{number} serves now.")
            return number, parts
        await asyncio.sleep(LOOK_SECONDS)
    note(f"The logs of {name} have ended: it was stopped or restarted. Repeat the command to follow what comes.")
    return ended, []


async def _of_hosts(processes: list[Object], asked: _Asked) -> bool:
    if asked.previous or asked.container:
        raise BadTarget("On a Host all starts of a server are in one log: leave out --previous and -c.")
    return await print_host_logs(processes, tail=asked.tail, follow=asked.follow)


async def _print(client: Client, pod: Object, asked: _Asked, *, prefix: bool) -> bool:
    """Print the log of one pod; returns whether there was one. What goes wrong with one does not hide the others."""
    container = asked.container or _server(pod)
    start = f"[{pod.meta.name}] " if prefix else ""
    printed = False
    try:
        async for line in client.log_lines(
            pod.key, container=container, tail_lines=asked.tail, previous=asked.previous, follow=asked.follow
        ):
            click.echo(start + printable(line.decode(errors="replace"), but="\t"))
            printed = True
    except ApiError as error:
        say(f"{pod.ref}: {error.message}", err=True)
    return printed


def _server(pod: Object) -> str:
    """The container that serves: the first one."""
    containers = pod.get("spec", "containers", default=[])
    return containers[0].get("name", "") if containers else ""


async def print_host_logs(processes: list[Object], *, tail: int | None, follow: bool) -> bool:
    """Print what can be read here, and say where all of it lies; returns whether anything was printed.

    Nobody but its machine can read the log of a server on a Host. It is named on stderr, and printed where this is that
    machine: its name has the uid of its process in it, so one that is here is the right one.
    """
    ordered = sorted(processes, key=lambda process: process.meta.name)
    printed = await asyncio.gather(
        *(_print_file(each, tail, follow=follow, prefix=len(ordered) > 1) for each in ordered)
    )
    return any(printed)


async def _print_file(process: Object, tail: int | None, *, follow: bool, prefix: bool) -> bool:
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
