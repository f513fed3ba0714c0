"""A change of an endpoint, shown until it serves, or does not: how `deploy`, `redeploy` and `rollback` wait."""

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from shlex import quote
from typing import Any

from pilotage.cli.connection import ClusterChoice
from pilotage.cli.options import Patience
from pilotage.cli.output.progress import Row, RowState, print_event, renderer
from pilotage.cli.output.text import note, say
from pilotage.cli.signals import INTERRUPTED, Interrupted, interruptible
from pilotage.kube import Json, Object, ObjectKey
from pilotage.rollout.follow import follow
from pilotage.rollout.requests import EndpointChange, change
from pilotage.rollout.status import RolloutStatus, RolloutVerdict
from pilotage.runtime.lazy_logger import silenced
from pilotage.teardown.session import Session


async def carry_out(
    session: Session, key: ObjectKey, alter: Callable[[Object], Json], patience: Patience, cluster: ClusterChoice
) -> int:
    """Change an endpoint and follow it; returns the exit code."""
    changed = await change(session.client, key, alter)
    if not changed.anything:
        say(f"{changed.after.ref} is unchanged: the spec is the same", err=patience.json)
        return 0
    say(f"{changed.after.ref} changed", err=patience.json)
    return await follow_rollout(session, changed, patience, cluster)


async def follow_rollout(session: Session, changed: EndpointChange, patience: Patience, cluster: ClusterChoice) -> int:
    """Show how a change goes on until it is done; returns the exit code."""
    if not patience.wait:
        return 0
    obj = changed.after
    look, start = cluster.complete(f"pilotage status {_words(obj)}"), cluster.complete("pilotage operator")
    shown = renderer(sys.stdout, as_json=patience.json, hint="Ctrl-C leaves it to the operator")

    def show(status: RolloutStatus, now: dt.datetime) -> None:
        shown.show(RolloutView(status), now)

    def no_operator(why: str) -> None:
        note(f"{obj.ref} waits for an operator, and none runs: {why}. Start one: {start}")

    try:
        with interruptible(), silenced():
            status = await follow(session.client, changed, patience.timeout, show, no_operator)
    except Interrupted:
        say(f"Stopped waiting; the operator continues. Look with: {look}", err=True)
        return INTERRUPTED
    return _end(obj, status, patience, look)


class RolloutView:
    """One state of a rollout; see `ProgressView`."""

    def __init__(self, status: RolloutStatus) -> None:
        self._rows = tuple(Row(step.name, RowState(step.state), step.text) for step in status.steps)
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


def _end(obj: Object, status: RolloutStatus, patience: Patience, look: str) -> int:
    """Say how it ended, and what to do next: `look` is the command that shows it."""
    if patience.json:
        end = {"event": "end", "result": str(status.verdict), "text": status.text, "url": status.url}
        print_event(sys.stdout, end)
    if status.verdict is RolloutVerdict.SERVING:
        if not patience.json:
            say(f"{obj.ref} {status.text}")
        return 0
    late = status.verdict is RolloutVerdict.TIMEOUT
    lines = [f"{obj.ref} does not serve as asked. {f'After {patience.timeout:g} s: ' if late else ''}{status.text}"]
    if status.verdict is not RolloutVerdict.DELETED:
        lines.append(f"Look with: {look}{'; the operator continues' if late else ''}")
    say(*lines, err=True)
    return 1


def _words(obj: Object) -> str:
    return f"{quote(obj.meta.name)} -n {quote(obj.meta.namespace)}"
