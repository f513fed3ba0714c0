"""A rollout in steps, shown until it has ended: how `rollout --watch`, `promote`, `abort` and `retry` wait."""

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from shlex import quote
from typing import Any

from pilotage.api.endpoint_status import RolloutState, StoredEndpoint
from pilotage.cli.connection import ClusterChoice
from pilotage.cli.options import Patience
from pilotage.cli.output.objects import print_object
from pilotage.cli.output.progress import Row, RowState, print_event, renderer
from pilotage.cli.output.text import say
from pilotage.cli.signals import INTERRUPTED, Interrupted, interruptible
from pilotage.kube import Object, ObjectKey
from pilotage.rollout.follow import FollowedRollout, StepsEnd, StepsResult, follow_steps
from pilotage.rollout.intents import Intent, write_intent
from pilotage.rollout.steps import (
    ENDS,
    next_commands,
    phase_words,
    share_words,
    shown_sides,
    shown_steps,
    waits_for_person,
)
from pilotage.runtime.lazy_logger import silenced
from pilotage.teardown.session import Session
from pilotage.teardown.snapshot.fields import seconds_since, span


async def ask_for(
    session: Session,
    key: ObjectKey,
    decide: Callable[[StoredEndpoint], Intent],
    patience: Patience,
    cluster: ClusterChoice,
    goal: StepsResult = "Promoted",
    *,
    repeated: bool = False,
) -> int:
    """Ask a rollout for something, and follow it if that is wanted; returns the exit code. See `follow_shown`."""
    written = await write_intent(session.client, key, decide)
    if patience.text or patience.wait:
        already = "" if written.anything else " (this was asked for already)"
        say(f"{written.endpoint.ref} {written.intent.done}{already}", err=not patience.text)
    if patience.wait:
        followed = FollowedRollout(written.endpoint.meta.uid, written.intent.revision, repeated=repeated)
        return await follow_shown(session, written.endpoint, followed, patience, cluster, goal)
    if not patience.text:
        print_object(patience.output, written.endpoint)
    return 0


async def follow_shown(
    session: Session,
    obj: Object,
    followed: FollowedRollout,
    patience: Patience,
    cluster: ClusterChoice,
    goal: StepsResult = "Promoted",
) -> int:
    """Show a rollout until it has ended; returns the exit code, which is 0 if it ended as `goal` says."""
    shown = renderer(patience.output, hint="Ctrl-C leaves it to the operator")
    look = cluster.complete(f"pilotage rollout {quote(obj.meta.name)} -n {quote(obj.meta.namespace)}")

    def show(endpoint: StoredEndpoint, now: dt.datetime) -> None:
        if endpoint.status.rollout is not None:
            shown.show(StepsView(endpoint, endpoint.status.rollout, cluster.complete), now)

    try:
        with interruptible(), silenced():
            end = await follow_steps(session.client, obj, followed, patience.timeout, show)
    except Interrupted:
        say(f"Stopped waiting; the operator continues. Look with: {look}", err=True)
        return INTERRUPTED
    return _end(obj, end, patience, look, goal)


def _end(obj: Object, end: StepsEnd, patience: Patience, look: str, goal: StepsResult) -> int:
    good = end.result == goal
    if patience.events:
        print_event(sys.stdout, patience.output, {"event": "end", "result": end.result.lower(), "message": end.text})
    elif not patience.text and end.endpoint is not None:
        print_object(patience.output, end.endpoint)
    if patience.text or not good:
        say(f"{obj.ref} {end.text}", err=not good)
    if not good and end.result != "Deleted":
        say(f"Look with: {look}", err=True)
    return 0 if good else 1


class StepsView:
    """One state of a rollout in steps; see `ProgressView`."""

    def __init__(self, endpoint: StoredEndpoint, state: RolloutState, complete: Callable[[str], str]) -> None:
        self._endpoint = endpoint
        self._state = state
        self._complete = complete
        self.finished = state.phase in ENDS

    def news(self) -> Iterator[Row]:
        """The phase, with its reason; the traffic, once it is proven."""
        state = self._state
        mark = RowState.DONE if self.finished else RowState.FAILED if state.phase == "Held" else RowState.ACTIVE
        yield Row(f"{state.step}/{state.of}", mark, self._phase())
        if state.weight.programmed == state.weight.wanted:
            yield Row("traffic", RowState.DONE, f"{share_words(state.weight)} to {state.revision}")

    def _phase(self) -> str:
        said = phase_words(self._endpoint)
        if not waits_for_person(self._endpoint):
            return said
        return f"{said.rstrip('.')}. Next: {' | '.join(map(self._complete, next_commands(self._endpoint)))}"

    def waits(self, now: dt.datetime) -> Iterator[Row]:
        """The phase, with the time that it has left."""
        left = seconds_since(now, self._state.until or "")
        for row in list(self.news())[:1]:
            yield row._replace(text=f"{row.text}, {span(-left)} left") if left is not None and left < 0 else row

    def block(self, now: dt.datetime) -> Iterator[Row]:
        """All steps, the phase, and what both sides get."""
        for each in shown_steps(self._endpoint):
            yield Row(str(each.number), RowState(each.state), each.name)
        sides = tuple(
            f"{each.revision}  {each.role}, {each.replicas or 'unknown'} ready, {share_words(each.share)}"
            for each in shown_sides(self._endpoint)
        )
        for row in self.waits(now):
            yield row._replace(details=sides)

    def events(self, now: dt.datetime) -> Iterator[tuple[str, object, dict[str, Any]]]:  # noqa: ARG002
        """An event for each change of the phase, the step, the weight or the reason."""
        state = self._state
        content: dict[str, Any] = {
            "revision": state.revision,
            "phase": state.phase,
            "step": state.step,
            "of": state.of,
            "weight": state.weight.written(),
            "until": state.until,
            "message": state.message,
        }
        yield "rollout", content, {"event": "rollout"} | content
