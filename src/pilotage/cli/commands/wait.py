"""``pilotage wait``: until objects are proven gone."""

import asyncio
import contextlib
import gc

import click

from pilotage.catalogue.reading import FOR_FINALIZERS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, namespace_option, need_words, output_option, seconds_option
from pilotage.cli.output.objects import print_list
from pilotage.cli.output.text import note, say
from pilotage.kube import ApiError
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation
from pilotage.teardown.diagnosis.why.render import render
from pilotage.teardown.engine.waiting import ProvenGone, wait_gone
from pilotage.teardown.planning.targets import resolve
from pilotage.teardown.session import Session
from pilotage.teardown.session.reading import read_world
from pilotage.teardown.session.relation_files import related_graph
from pilotage.teardown.snapshot.resolve import until_resolved
from pilotage.teardown.snapshot.world import Item, World

TELL_FIRST_SECONDS = 2.0
TELL_AGAIN_SECONDS = 15.0
"""Delays of the messages about what is waited for: the first, and later ones if that has changed."""


@click.command()
@click.argument("words", metavar="KIND/NAME...", nargs=-1)
@namespace_option
@seconds_option("--timeout", 600.0, "How long to wait. Then it says why they are still there.")
@cluster_options
@output_option("each object that is left")
@plain_errors
@asynchronous
async def wait(words: tuple[str, ...], namespace: str, timeout: float, cluster: ClusterChoice, output: str) -> int:
    """Wait until objects are proven gone.

    \b
    pilotage wait deployment/web -n shop
    pilotage wait namespace/shop --timeout 120

    The objects are fixed at the start, by uid: one that is created under the same name later is another object. A fresh
    read proves that an object is gone. Until then, stderr says what it waits for. With -o json and its like, all of
    that goes to stderr, and stdout has a List of the objects that are left.

    Exit codes: 0 all are proven gone, 1 the time is over (and why they are still there), 2 bad usage, 3 something could
    not be read.
    """
    need_words(words)
    gc.enable()  # it may take a while
    async with cluster.session() as session:
        targets = await resolve(session.client, session.discovery, words, namespace=namespace, absent_ok=True)
        for name in targets.absent:
            say(f"{name} is not there", err=output != "text")
        pending = {item.uid: item for item in targets.found}

        def on_gone(gone: ProvenGone) -> None:
            pending.pop(gone.item.uid, None)
            other = f"; another one has its name by now (uid {gone.successor})" if gone.successor else ""
            say(f"{gone.item} is gone (uid {gone.item.uid}, {gone.request}){other}", err=output != "text")

        teller = asyncio.create_task(_tell(session, pending))
        try:
            async with asyncio.timeout(timeout):
                await wait_gone(session.client, list(pending.values()), on_gone)
        except TimeoutError:
            lines = await _why_left(session, list(pending.values()), timeout, cluster)
            say(*lines, err=output != "text")
        finally:
            teller.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await teller
    if output != "text":
        print_list(output, [item.object for item in pending.values()])
    return 1 if pending else 0


async def _tell(session: Session, pending: dict[str, Item]) -> None:
    """Say what is waited for. Whatever goes wrong here is not what was asked for, and is told at the end."""
    told = ""
    seconds = TELL_FIRST_SECONDS
    while pending:
        await asyncio.sleep(seconds)
        seconds = TELL_AGAIN_SECONDS
        item = next(iter(pending.values()), None)
        if item is None:
            return
        with contextlib.suppress(ApiError):
            (explanation,) = await _explain(session, [item])
            more = f" (and {len(pending) - 1} more)" if len(pending) > 1 else ""
            causes = "; ".join(dict.fromkeys(each.text for each in (*explanation.causes, *explanation.roots)))
            if causes != told or not told:
                note(f"waiting for {item}{more}: {explanation.headline}{'; ' + causes if causes else ''}")
            told = causes


async def _explain(session: Session, items: list[Item]) -> list[Explanation]:
    world = await read_world(session, [item.home for item in items], FOR_FINALIZERS)

    def think(world: World) -> list[Explanation]:
        graph = related_graph(world)
        return [explain(world, graph, item) for item in items]

    return await until_resolved(session.client, world, think)


async def _why_left(session: Session, left: list[Item], timeout: float, cluster: ClusterChoice) -> list[str]:
    """The time is over: what is left and why."""
    lines = [f"After {timeout:g} s, {len(left)} {'is' if len(left) == 1 else 'are'} still there:"]
    shown = left[:5]
    try:
        for explanation in await _explain(session, shown):
            lines += ["", *render(explanation, cluster.complete)]
    except ApiError as error:
        lines.append(f"{', '.join(map(str, shown))}: why could not be read: {error}")
    return lines + [str(item) for item in left[len(shown) :]]
