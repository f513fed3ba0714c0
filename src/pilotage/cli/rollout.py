"""A change of an endpoint, shown until it serves, or does not: how `deploy`, `redeploy` and `rollback` wait."""

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from shlex import quote
from typing import Any

from pilotage.api.endpoint_status import EndpointStatus, StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.cli.connection import ClusterChoice
from pilotage.cli.options import Patience
from pilotage.cli.output.objects import print_object
from pilotage.cli.output.progress import Row, RowState, print_event, renderer
from pilotage.cli.output.text import columns, note, say, wrapped
from pilotage.cli.signals import INTERRUPTED, Interrupted, interruptible
from pilotage.kube import Json, Object, ObjectKey
from pilotage.rollout.follow import RolloutEnd, follow
from pilotage.rollout.requests import EndpointChange, change
from pilotage.rollout.status import RolloutStatus, RolloutStep, RolloutVerdict
from pilotage.runtime.lazy_logger import silenced
from pilotage.teardown.session import Session


async def carry_out(
    session: Session,
    key: ObjectKey,
    alter: Callable[[Object], Json],
    patience: Patience,
    cluster: ClusterChoice,
    done: Callable[[Object], str] = lambda _: "",
) -> int:
    """Change an endpoint and follow it; returns the exit code.

    `done`: the words for people, of the endpoint before the change, instead of "changed".
    """
    changed = await change(session.client, key, alter)
    if changed.anything:
        assert changed.before is not None
        return await follow_rollout(session, changed, patience, cluster, done(changed.before))
    if patience.events:
        _tell("unchanged", changed.after, patience)
    elif patience.text:
        say(f"{changed.after.ref} is unchanged: the spec is the same")
    else:
        print_object(patience.output, changed.after)
    return 0


async def follow_rollout(
    session: Session, changed: EndpointChange, patience: Patience, cluster: ClusterChoice, done: str = ""
) -> int:
    """Say that an endpoint was created or changed, and show how that goes on until it is done; returns the exit code.

    Only results go to stdout: for scripts events, or the object at the end. `done`: the words for people, instead of
    "created", "changed" or "unchanged".
    """
    obj = changed.after
    what = "created" if changed.before is None else "changed" if changed.anything else "unchanged"
    if patience.events:
        _tell(what, obj, patience)
    elif patience.text or patience.wait:
        say(f"{obj.ref} {done or what}", err=not patience.text)
    if not patience.wait:
        if not patience.text:
            print_object(patience.output, obj)
        return 0
    look, start = cluster.complete(f"pilotage status {_words(obj)}"), cluster.complete("pilotage operator")
    shift = cluster.complete(f"pilotage rollout {_words(obj)}")
    shown = renderer(patience.output, hint="Ctrl-C leaves it to the operator")

    def show(status: RolloutStatus, now: dt.datetime) -> None:
        shown.show(RolloutView(status, cluster.complete), now)

    def no_operator(why: str) -> None:
        note(f"{obj.ref} waits for an operator, and none runs: {why}. Start one: {start}")

    try:
        with interruptible(), silenced():
            end = await follow(session.client, changed, patience.timeout, show, no_operator)
    except Interrupted:
        say(f"Stopped waiting; the operator continues. Look with: {look}", err=True)
        return INTERRUPTED
    return _end(obj, end, patience, shift if any(step.name == "shift" for step in end.status.steps) else look)


def _tell(event: str, obj: Object, patience: Patience) -> None:
    """An event about an endpoint as a whole."""
    meta = obj.meta
    named = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "namespace": meta.namespace}
    told = {"event": event, "object": named | {"name": meta.name, "uid": meta.uid}}
    print_event(sys.stdout, patience.output, told)


class RolloutView:
    """One state of a rollout; see `ProgressView`."""

    def __init__(self, status: RolloutStatus, complete: Callable[[str], str] = str) -> None:
        self._steps = status.steps
        self._rows = tuple(Row(step.name, RowState(step.state), _words_of(step, complete)) for step in status.steps)
        self.finished = status.verdict is not RolloutVerdict.GOING

    def news(self) -> Iterator[Row]:
        """The steps that have begun; not one that says nothing but the name of a revision whose route waits."""
        steps = zip(self._steps, self._rows, strict=True)
        return (
            row for step, row in steps if step.state != "later" and (step.state, step.text) != ("active", step.revision)
        )

    def waits(self, now: dt.datetime) -> Iterator[Row]:  # noqa: ARG002
        """The steps that are under way."""
        return (row for row in self._rows if row.state is RowState.ACTIVE)

    def block(self, now: dt.datetime) -> tuple[Row, ...]:  # noqa: ARG002
        """All steps."""
        return self._rows

    def events(self, now: dt.datetime) -> Iterator[tuple[str, object, dict[str, Any]]]:  # noqa: ARG002
        """An event for each step that has begun."""
        for step in self._steps:
            if step.state != "later":
                fields = {"state": step.state, "revision": step.revision}
                yield step.name, step, {"event": step.name} | fields | {"reason": step.reason, "message": step.message}


def _words_of(step: RolloutStep, complete: Callable[[str], str]) -> str:
    """The text of a step, with the commands for a person that it waits for."""
    if not step.commands:
        return step.text
    return f"{step.text.rstrip('.')}. Next: {' | '.join(map(complete, step.commands))}"


def _end(obj: Object, end: RolloutEnd, patience: Patience, look: str) -> int:
    """Say how it ended, and what to do next: `look` is the command that shows it."""
    status = end.status
    if patience.events:
        print_event(sys.stdout, patience.output, {"event": "end"} | _result(end))
    elif not patience.text and end.endpoint is not None:
        print_object(patience.output, end.endpoint)
    if status.verdict is RolloutVerdict.SERVING:
        if patience.text:
            width = columns()
            say(*(wrapped(f"{obj.ref} {status.text}", width) if width else [f"{obj.ref} {status.text}"]))
        return 0
    late = status.verdict is RolloutVerdict.TIMEOUT
    reason = f"After {patience.timeout:g} s: {status.text}" if late else status.text
    lines = [reason, f"{obj.ref} does not serve as asked."]
    if status.verdict is not RolloutVerdict.DELETED:
        lines.append(f"Look with: {look}{'; the operator continues' if late else ''}")
    say(*lines, err=True)
    return 1


def _result(end: RolloutEnd) -> dict[str, Any]:
    """The end of a change for scripts."""
    status = StoredEndpoint.of(end.endpoint).status if end.endpoint is not None else EndpointStatus()
    return {
        "result": str(end.status.verdict),
        "reason": end.status.reason,
        "message": end.status.text,
        "url": status.url,
        "revision": status.revision,
        "replicas": {"ready": status.replicas.ready, "desired": status.replicas.desired},
    }


def _words(obj: Object) -> str:
    return f"{quote(obj.meta.name)} -n {quote(obj.meta.namespace)}"
