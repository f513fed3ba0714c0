"""Following a change of an endpoint until it serves, or does not: how `deploy`, `redeploy` and `rollback` wait."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import sys
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from pilotage.api.names import ENDPOINTS
from pilotage.cli.following import Following, Interrupted, interruptible
from pilotage.cli.operators import find_operator
from pilotage.cli.output.telling import Events, teller
from pilotage.cli.output.text import note, say
from pilotage.cli.rollout_steps import Goal, Verdict, look
from pilotage.cli.views import Endpoint, view
from pilotage.runtime.clock import SteadyClock

if TYPE_CHECKING:
    from pilotage.cli.connection import Connection
    from pilotage.cli.output.telling import Teller
    from pilotage.cli.rollout_steps import Look
    from pilotage.kube import Client, Object

INTERRUPTED = 130
TICK_SECONDS = 0.5
SETTLE_SECONDS = 3.0
"""What is degraded for a shorter time than this may just not have been looked at again."""
OPERATOR_SECONDS = 5.0
"""After so long without an operator's look, it is asked whether there is one."""


class Patience(NamedTuple):
    """How a person wants to wait."""

    wait: bool
    timeout: float
    json: bool


async def follow_rollout(connection: Connection, obj: Object, before: str, patience: Patience) -> int:
    """Show how a change goes on until it is done; returns the exit code. `before`: the revision that served."""
    if not patience.wait:
        return 0
    goal = Goal(obj.meta.uid, obj.meta.generation, before)
    tell = teller(sys.stdout, as_json=patience.json)
    try:
        with interruptible():
            return await _follow(connection.client, obj, goal, patience, tell)
    except Interrupted:
        say(f"Stopped looking; the operator goes on by itself. Look with: pilotage status {_words(obj)}", err=True)
        return INTERRUPTED


async def _follow(client: Client, obj: Object, goal: Goal, patience: Patience, tell: Teller) -> int:
    clock = SteadyClock()
    deadline = clock.now() + dt.timedelta(seconds=patience.timeout)
    degraded: dt.datetime | None = None
    asking = asyncio.create_task(_mention_operator(client, obj))
    try:
        async with Following(client, ENDPOINTS, obj.meta.namespace, name=obj.meta.name) as seen:
            while True:
                now = clock.now()
                current = seen.objects.get(obj.meta.name)
                found = look(view(current, Endpoint) if current else None, goal)
                tell.tell(found, now)
                degraded = (degraded or now) if found.verdict is Verdict.FAILED else None
                settled = degraded is not None and (now - degraded).total_seconds() >= SETTLE_SECONDS
                if found.verdict in (Verdict.SERVING, Verdict.DELETED) or settled:
                    return _end(obj, found, found.verdict, tell, current)
                if now >= deadline:
                    return _end(obj, found, "timeout", tell, current, f"After {patience.timeout:g} s: ")
                if not _unseen(found):
                    asking.cancel()
                await seen.changed(min(TICK_SECONDS, (deadline - now).total_seconds()))
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


def _end(obj: Object, found: Look, result: str, tell: Teller, current: Object | None, prefix: str = "") -> int:
    """Say how it ended, and what to do next."""
    url = current.get("status", "url") if current else None
    tell.end(found, str(result), url=url)
    if result == Verdict.SERVING:
        if not isinstance(tell, Events):
            say(f"{obj.ref} {found.text}")
        return 0
    lines = [f"{obj.ref} does not serve as asked. {prefix}{found.text}"]
    if result != Verdict.DELETED:
        more = "; the operator goes on by itself" if result == "timeout" else ""
        lines.append(f"Look with: pilotage status {_words(obj)}{more}")
    say(*lines, err=True)
    return 1


def _unseen(found: Look) -> bool:
    return any(step.name == "operator" for step in found.steps)


def _words(obj: Object) -> str:
    return f"{quote(obj.meta.name)} -n {quote(obj.meta.namespace)}"


async def _mention_operator(client: Client, obj: Object) -> None:
    """Say why nothing happens, where nobody runs who could do it."""
    await asyncio.sleep(OPERATOR_SECONDS)
    operator = await find_operator(client)
    if operator.alive is False:
        note(f"{obj.ref} waits for an operator, and none runs: {operator.text}. Start one: pilotage operator")
