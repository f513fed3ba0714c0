"""The revisions of an endpoint: which one is wanted, which one serves, which ones are in the way. Pure.

The history in the status is the only memory: the last entry is the one that is wanted, the one in state Current serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pilotage.api.endpoint import EndpointSpec, PastRevision
from pilotage.kube.wire import format_time
from pilotage.serving.parts import EndpointRef, ResolvedModel

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

KEPT = 10
"""So many revisions are remembered."""

IN_PLACE = ("replicas", "autoscaling", "route", "deletion", "strategy")
"""What changes without a new revision."""


class Revision(NamedTuple):
    """One revision, with what it was made from."""

    number: int
    subject: EndpointRef
    model: ResolvedModel
    fingerprint: str
    state: str


def of_history(history: Sequence[PastRevision], subject: EndpointRef) -> list[Revision]:
    """The revisions that are remembered, oldest first; what changes in place is as the endpoint wants it now.

    Raises ValueError for a history that no operator has written, or one that allowed more.
    """
    return [_revision(past, subject) for past in history]


def _revision(past: PastRevision, subject: EndpointRef) -> Revision:
    now = {name: getattr(subject.spec, name) for name in IN_PLACE}
    pods = {name: value for name, value in past.spec.items() if name not in IN_PLACE}
    spec = replace(EndpointSpec.read(pods), **now)
    known = {name: value for name, value in past.model.items() if name in ResolvedModel._fields}
    try:
        model = ResolvedModel(**known)
    except TypeError as error:
        raise ValueError(f"revision {past.number}: {error}") from error
    return Revision(past.number, subject._replace(spec=spec), model, past.fingerprint, past.state)


def wanted(history: Sequence[Revision]) -> Revision | None:
    """The one that shall serve."""
    return history[-1] if history else None


def serving(history: Sequence[Revision]) -> Revision | None:
    """The one that does."""
    return next((each for each in history if each.state == "Current"), None)


def begun(
    history: list[PastRevision], subject: EndpointRef, model: ResolvedModel, fingerprint: str, now: dt.datetime
) -> list[PastRevision]:
    """The history with one more revision."""
    new = PastRevision(
        number=max((past.number for past in history), default=0) + 1,
        created=format_time(now),
        state="Starting",
        fingerprint=fingerprint,
        spec=subject.spec.written(),
        model=model._asdict(),
    )
    older = [replace(past, state="Failed") if past.state == "Starting" else past for past in history]
    current = [past for past in older if past.state == "Current"]
    others = [past for past in older if past.state != "Current"][-(KEPT - 1 - len(current)) :]
    return [*sorted([*current, *others], key=lambda past: past.number), new]


def arrived(history: list[PastRevision], number: int) -> list[PastRevision]:
    """The history once a revision serves."""
    states = {"Current": "Previous", "Starting": "Failed"}
    return [
        replace(past, state="Current", message="")
        if past.number == number
        else replace(past, state=states.get(past.state, past.state))
        for past in history
    ]


def departed(history: list[PastRevision]) -> list[PastRevision]:
    """The history when the revision that served has gone, before another one serves."""
    return [replace(past, state="Previous") if past.state == "Current" else past for past in history]
