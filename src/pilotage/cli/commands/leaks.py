"""``pilotage leaks``: what was left behind, what that costs, and how to be rid of it safely."""

import asyncio
from pathlib import Path
from typing import Literal, NamedTuple

import click

from pilotage.catalogue.reading import FOR_LEAKS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import BadTarget, NoAnswer, plain_errors
from pilotage.cli.options import cluster_options, dump_option, namespace_options, output_option
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.text import note, paint, say
from pilotage.teardown.diagnosis.leaks import Leak, find_leaks, left_over, undumped
from pilotage.teardown.engine.receipt import Receipt, load
from pilotage.teardown.session import Session
from pilotage.teardown.session.reading import check_namespace, read_world
from pilotage.teardown.session.receipt_files import find_receipt
from pilotage.teardown.session.relation_files import related_graph
from pilotage.teardown.snapshot.dump import load_dump
from pilotage.teardown.snapshot.resolve import until_resolved
from pilotage.teardown.snapshot.world import World

SECOND_LOOK_SECONDS = 2.0
"""Pause between two reads: a leak stays, and an operation that was in progress is over by then."""
UNREAD_SHOWN_MAX = 3


class _Found(NamedTuple):
    leaks: list[Leak]
    unread: dict[str, str]
    """Kinds, groups or objects that could not be read, with the reason: there may be more."""
    unread_counts: dict[str, int]
    """Their number by sort: kinds, API groups, objects of a receipt."""
    undumped: dict[str, str]
    """Kinds of which the dump has nothing: it cannot show that there are none."""


@click.command()
@namespace_options
@dump_option
@click.option(
    "--receipt",
    "receipt_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Find the objects of this receipt that still exist, instead.",
)
@cluster_options
@output_option("each leaked object")
@plain_errors
@asynchronous
async def leaks(
    namespace: str,
    all_namespaces: bool,
    files: tuple[Path | Literal["-"], ...],
    receipt_file: Path | None,
    cluster: ClusterChoice,
    output: str,
) -> int:
    """Find leaked objects: those that nothing cleans up, and references to objects that do not exist.

    \b
    pilotage leaks -n shop
    pilotage leaks -A
    pilotage leaks --receipt web-20261115-213012.json
    pilotage leaks --dump dump.yaml -o json

    Changes nothing. An object that is younger than a minute, or being deleted, is in progress and not a leak; one that
    could not be read is unknown, and not gone. A cluster is read twice: what has gone by then was no leak.

    Exit codes: 0 there are none, 1 there are some, 2 bad usage, 3 none were found, but not everything could be read, or
    is in the dump.
    """
    receipt = load(find_receipt(receipt_file)) if receipt_file else None
    if files:
        found = _from_dump(files, namespace, receipt)
    else:
        async with cluster.session() as session:
            found = await _live(session, "" if all_namespaces else namespace or session.client.namespace, receipt)
    unread = found.unread | found.undumped
    told = [leak.to_json(cluster.complete) for leak in found.leaks]
    if output != "text":
        print_report(output, {"leaks": told, "unread": unread}, (leak.subject.name for leak in found.leaks))
    else:
        say(*_lines(found, cluster))
    return 1 if found.leaks else 3 if unread else 0


def _from_dump(files: tuple[Path | Literal["-"], ...], namespace: str, receipt: Receipt | None) -> _Found:
    world = load_dump(files)
    if namespace and not any(namespace in (item.meta.namespace, item.home) for item in world):
        raise BadTarget(f"The dump has nothing in namespace {namespace}. Leave out -n to read all of it.")
    return _of_receipt(world, receipt) if receipt else _of_world(world, namespace)


async def _live(session: Session, namespace: str, receipt: Receipt | None) -> _Found:
    if receipt is not None:
        return await _receipt_live(session, receipt)
    found = await _look(session, namespace)
    if not found.leaks:
        return found
    note(f"{_count(found.leaks)} at first sight; looking again in {SECOND_LOOK_SECONDS:.0f} s.")
    await asyncio.sleep(SECOND_LOOK_SECONDS)
    again = await _look(session, namespace)
    known = {leak.key for leak in found.leaks}
    return again._replace(leaks=[leak for leak in again.leaks if leak.key in known])


async def _look(session: Session, namespace: str) -> _Found:
    places = [namespace] if namespace else []
    world = await read_world(session, places, FOR_LEAKS, everywhere=not namespace)
    if namespace:
        check_namespace(world, namespace)
    return await until_resolved(session.client, world, lambda world: _of_world(world, namespace))


def _of_world(world: World, namespace: str) -> _Found:
    found = find_leaks(world, related_graph(world))
    unread = {str(kind): reading.problem for kind, reading in world.kinds.items() if reading.problem}
    return _Found(
        [leak for leak in found if not namespace or leak.concerns(namespace)],
        unread | world.unreadable_groups,
        {"kind": len(unread), "API group": len(world.unreadable_groups)},
        undumped(world),
    )


async def _receipt_live(session: Session, receipt: Receipt) -> _Found:
    namespaces = {entry.namespace for entry in receipt.ledger.entries} - {""}
    world = await read_world(session, sorted(namespaces), everywhere=not namespaces)
    found = _of_receipt(world, receipt)
    elsewhere = receipt.server and receipt.server != session.server
    if elsewhere and not any(world.get(entry.uid) for entry in receipt.ledger.entries):
        raise NoAnswer(
            f"The receipt was made at {receipt.server}, and this is {session.server}: nothing of it is here to tell "
            "whether that is the same cluster. Choose its cluster with --context."
        )
    return found


def _of_receipt(world: World, receipt: Receipt) -> _Found:
    found = left_over(world, receipt.ledger)
    return _Found(found.leaks, found.unread, {"object": len(found.unread)}, {})


_COLOURS = {"high": "red", "medium": "yellow", "low": "cyan"}


def _lines(found: _Found, cluster: ClusterChoice) -> list[str]:
    lines: list[str] = []
    for leak in found.leaks:
        severity = str(leak.severity)
        lines += [
            f"{paint(severity, fg=_COLOURS[severity])}  {paint(str(leak.subject), bold=True)}  {leak.text}",
            f"      costs: {leak.costs}",
            f"      remove: {cluster.complete(leak.command)}",
            f"              {leak.effect}",
        ]
    unclear = [*([_unread(found)] if found.unread else []), *([_undumped(found)] if found.undumped else [])]
    if unclear:
        start = f"{_count(found.leaks)}, and" if found.leaks else "No leaks found, but"
        lines.append(f"{start} {', and '.join(unclear)}; -o json says {'why' if found.unread else 'which'}.")
    else:
        lines.append(f"{_count(found.leaks)}." if found.leaks else "No leaks.")
    return lines


def _unread(found: _Found) -> str:
    """One sentence: who lacks a right lacks many, and the server's words for each would bury the answer."""
    counts = " and ".join(_plural(number, noun) for noun, number in found.unread_counts.items() if number)
    return f"{counts} could not be read ({_names(found.unread)})"


def _undumped(found: _Found) -> str:
    number = len(found.undumped)
    return (
        f"the dump has nothing of {_plural(number, 'kind')} ({_names(found.undumped)}): that there is none is not known"
    )


def _names(unread: dict[str, str]) -> str:
    names = sorted(unread, key=lambda name: ("/" in name, name))  # groups after kinds, as they are counted
    more = f" and {len(names) - UNREAD_SHOWN_MAX} more" if len(names) > UNREAD_SHOWN_MAX else ""
    return f"{', '.join(names[:UNREAD_SHOWN_MAX])}{more}"


def _count(leaks: list[Leak]) -> str:
    return _plural(len(leaks), "leak")


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
