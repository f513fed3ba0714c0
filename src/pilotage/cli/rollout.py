"""LiveObjects a change of an endpoint until it serves, or does not: how `deploy`, `redeploy` and `rollback` wait."""

import asyncio
import contextlib
import datetime as dt
import sys
from collections.abc import Iterator
from shlex import quote
from typing import Any, NamedTuple

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.cli.output.progress import Renderer, Row, RowState, print_event, renderer
from pilotage.cli.output.text import note, say
from pilotage.cli.rollout_steps import RolloutGoal, RolloutStatus, RolloutVerdict, rollout_status
from pilotage.cli.signals import INTERRUPTED, Interrupted, interruptible
from pilotage.kube import Client, Object
from pilotage.runtime.clock import SteadyClock
from pilotage.runtime.lazy_logger import silenced
from pilotage.runtime.live_objects import LiveObjects
from pilotage.teardown.session import Session
from pilotage.teardown.session.operator_lease import find_operator

TICK_SECONDS = 0.5
SETTLE_SECONDS = 3.0
"""An endpoint that is degraded for a shorter time than this may just not have been reconciled again."""
OPERATOR_SECONDS = 5.0
"""After this long without a reconcile, the command asks whether an operator runs."""


class Patience(NamedTuple):
    """The wishes of a person about waiting."""

    wait: bool
    timeout: float
    json: bool


async def follow_rollout(session: Session, obj: Object, before: str, patience: Patience) -> int:
    """Show how a change goes on until it is done; returns the exit code. `before`: the revision that served."""
    if not patience.wait:
        return 0
    goal = RolloutGoal(obj.meta.uid, obj.meta.generation, before)
    shown = renderer(sys.stdout, as_json=patience.json, hint="Ctrl-C leaves it to the operator")
    try:
        with interruptible(), silenced():
            return await _follow(session.client, obj, goal, patience, shown)
    except Interrupted:
        say(f"Stopped waiting; the operator continues. Look with: pilotage status {_words(obj)}", err=True)
        return INTERRUPTED


async def _follow(client: Client, obj: Object, goal: RolloutGoal, patience: Patience, shown: Renderer) -> int:
    clock = SteadyClock()
    deadline = clock.now() + dt.timedelta(seconds=patience.timeout)
    degraded: dt.datetime | None = None
    asking = asyncio.create_task(_mention_operator(client, obj))
    try:
        async with LiveObjects(client, ENDPOINTS, obj.meta.namespace, name=obj.meta.name) as seen:
            while True:
                now = clock.now()
                current = seen.objects.get(obj.meta.name)
                found = rollout_status(StoredEndpoint.of(current) if current else None, goal)
                shown.show(RolloutView(found), now)
                degraded = (degraded or now) if found.verdict is RolloutVerdict.FAILED else None
                settled = degraded is not None and (now - degraded).total_seconds() >= SETTLE_SECONDS
                if found.verdict in (RolloutVerdict.SERVING, RolloutVerdict.DELETED) or settled:
                    return _end(obj, found, found.verdict, current, patience)
                if now >= deadline:
                    return _end(obj, found, "timeout", current, patience)
                if not any(row.name == "operator" for row in found.rows):
                    asking.cancel()
                await seen.changed(min(TICK_SECONDS, (deadline - now).total_seconds()))
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


class RolloutView:
    """One state of a rollout; see `ProgressView`."""

    def __init__(self, status: RolloutStatus) -> None:
        self._rows = status.rows
        self.finished = status.verdict is not RolloutVerdict.GOING

    def news(self) -> Iterator[Row]:
        """The steps that have begun."""
        return (row for row in self._rows if row.state is not RowState.LATER)

    def waits(self, now: dt.datetime) -> Iterator[Row]:  # noqa: ARG002
        """The steps that are under way."""
        return (row for row in self._rows if row.state is RowState.ACTIVE)

    def block(self, now: dt.datetime) -> tuple[Row, ...]:  # noqa: ARG002
        """All steps."""
        return self._rows

    def events(self, now: dt.datetime) -> Iterator[tuple[str, object, dict[str, Any]]]:  # noqa: ARG002
        """An event for each step that has begun."""
        for row in self.news():
            yield row.name, row, {"event": row.name, "state": row.state, "text": row.text}


def _end(obj: Object, found: RolloutStatus, result: str, current: Object | None, patience: Patience) -> int:
    """Say how it ended, and what to do next."""
    if patience.json:
        url = current.get("status", "url") if current else None
        print_event(sys.stdout, {"event": "end", "result": str(result), "text": found.text, "url": url})
    if result == RolloutVerdict.SERVING:
        if not patience.json:
            say(f"{obj.ref} {found.text}")
        return 0
    after = f"After {patience.timeout:g} s: " if result == "timeout" else ""
    lines = [f"{obj.ref} does not serve as asked. {after}{found.text}"]
    if result != RolloutVerdict.DELETED:
        more = "; the operator continues" if result == "timeout" else ""
        lines.append(f"Look with: pilotage status {_words(obj)}{more}")
    say(*lines, err=True)
    return 1


def _words(obj: Object) -> str:
    return f"{quote(obj.meta.name)} -n {quote(obj.meta.namespace)}"


async def _mention_operator(client: Client, obj: Object) -> None:
    """Say why nothing happens, where no operator runs that could do it."""
    await asyncio.sleep(OPERATOR_SECONDS)
    operator = await find_operator(client)
    if operator.alive is False:
        note(f"{obj.ref} waits for an operator, and none runs: {operator.text}. Start one: pilotage operator")
