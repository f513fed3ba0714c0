"""``pilotage terminate``: the end of an Experiment, before its time."""

import asyncio
import contextlib

import click

from pilotage.api.experiment import StoredExperiment
from pilotage.api.names import EXPERIMENTS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, names_of, namespace_option, output_option, seconds_option
from pilotage.cli.output.objects import print_object
from pilotage.cli.output.text import note, say
from pilotage.kube import Object, ObjectKey, merge_patch
from pilotage.rollout.requests import get
from pilotage.runtime.live_objects import LiveObjects
from pilotage.teardown.session import Session

WATCH_SECONDS = 60.0


@click.command()
@click.argument("name", shell_complete=names_of("experiment"))
@namespace_option
@click.option("--wait", is_flag=True, help="Wait until every part of its variants is proven gone.")
@seconds_option("--timeout", 600.0)
@output_option("the Experiment")
@cluster_options
@plain_errors
@asynchronous
async def terminate(name: str, namespace: str, wait: bool, timeout: float, output: str, cluster: ClusterChoice) -> int:
    """End an Experiment now: its variants leave the route, and are removed.

    \b
    pilotage terminate q8 -n chat --wait

    The serving revision gets all requests again. The Experiment stays, with its verdict; `kubectl delete` ends it, too,
    and removes it.

    Exit codes: 0 asked for (with --wait: ended), 1 with --wait: not ended in time, 2 bad usage or no such Experiment,
    3 the API could not be reached.
    """
    async with cluster.session(changes=True) as session:
        key = ObjectKey(namespace or session.client.namespace, name.removeprefix("experiment/"))
        obj = await get(session.client, EXPERIMENTS, key)
        over = StoredExperiment.of(obj).status.reason
        if not over:
            patch = merge_patch({"metadata": {"uid": obj.meta.uid}, "spec": {"terminate": True}})
            obj = await session.client.patch(EXPERIMENTS, key, patch)
        if output == "text":
            say(f"{obj.ref} {f'has ended already ({over})' if over else 'ends: its variants leave the route'}")
        ended, last = await _ended(session, obj, timeout) if wait else (True, obj)
    if output != "text":
        print_object(output, last)
    return 0 if ended else 1


async def _ended(session: Session, obj: Object, timeout: float) -> tuple[bool, Object]:
    """Whether nothing of an Experiment is left in time, and how it was seen last. What it waits for is told."""
    last, told = obj, ""
    with contextlib.suppress(TimeoutError):
        async with (
            asyncio.timeout(timeout),
            LiveObjects(session.client, EXPERIMENTS, obj.meta.namespace, name=obj.meta.name) as live,
        ):
            while True:
                found = live.objects.get(obj.meta.name)
                if found is None or found.meta.uid != obj.meta.uid:
                    note(f"{obj.ref} is gone")
                    return True, last
                last, status = found, StoredExperiment.of(found).status
                if status.phase == "Ended":
                    note(f"{obj.ref} has ended ({status.reason})")
                    return True, last
                if status.waiting_for and status.waiting_for != told:
                    note(status.waiting_for)
                told = status.waiting_for or ""
                await live.changed(WATCH_SECONDS)
    note(f"After {timeout:g} s, {obj.ref} has not ended; the operator continues")
    return False, last
