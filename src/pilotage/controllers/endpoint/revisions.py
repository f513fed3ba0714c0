"""The revisions of an endpoint: which one is wanted, which one serves, and what each consists of. Pure.

The history in the status is the only memory: its last entry is the wanted revision, the entry in state Current serves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import fields, replace

from pilotage.api.endpoint import REVISION_FIELDS, EndpointSpec
from pilotage.api.endpoint_status import PastRevision
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.kube import Json
from pilotage.kube.wire import format_time
from pilotage.serving import backend, desired_objects
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, ResolvedModel
from pilotage.serving.placements import ServiceBackend
from pilotage.serving.problems import problems
from pilotage.serving.revision import fingerprint
from pilotage.traffic.routers import route_problems

KEPT = 10
"""Length of the history."""


@dataclass(frozen=True)
class Revision:
    """One revision. Its parts are computed once, when they are asked for: there may be a thousand of them."""

    number: int
    subject: EndpointRef
    """The endpoint, with the spec of this revision."""
    model: ResolvedModel
    fingerprint: str
    capabilities: Capabilities

    @cached_property
    def parts(self) -> Sequence[DesiredObject]:
        """All its objects, and those of all revisions, in the order in which they are made."""
        return desired_objects(self.subject, self.number, self.model, self.capabilities)

    @property
    def backend(self) -> ServiceBackend:
        """Its Service and the port."""
        return backend(self.subject, self.number)

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.subject.name}-{self.number}"


class RequestedRevision(NamedTuple):
    """The revision that a spec asks for, with its Model looked up. Equal fingerprints are the same revision."""

    model: ResolvedModel
    fingerprint: str


def requested(
    subject: EndpointRef, model: ResolvedModel | EndpointProblem, capabilities: Capabilities
) -> RequestedRevision | EndpointProblem:
    """The revision that a spec asks for, or why there can be none."""
    if isinstance(model, EndpointProblem):
        return model
    if wrong := [*problems(subject, model, capabilities), *route_problems(subject.spec)]:
        return EndpointProblem("InvalidSpec", " ".join(wrong))
    return RequestedRevision(model, fingerprint(subject.spec, model))


class RevisionHistory(NamedTuple):
    """The revisions that are remembered, oldest first."""

    past: tuple[PastRevision, ...] = ()
    """As the status has them."""
    revisions: tuple[Revision, ...] = ()
    """The same revisions; a field that changes in place has the value of the endpoint's spec now."""

    @classmethod
    def read(cls, written: Iterable[Json], subject: EndpointRef, capabilities: Capabilities) -> RevisionHistory:
        """Read `status.history`. Raises ValueError for one that no operator has written, or one that allowed more."""
        past = tuple(PastRevision.read(each) for each in written)
        return cls(past, tuple(_revision(each, subject, capabilities) for each in past))

    def written(self) -> list[Json]:
        """`status.history`."""
        return [each.written() for each in self.past]

    @property
    def states(self) -> dict[int, str]:
        """The state of each revision, by its number."""
        return {each.number: each.state for each in self.past}

    @property
    def wanted(self) -> Revision | None:
        """The revision that shall serve."""
        return self.revisions[-1] if self.revisions else None

    @property
    def serving(self) -> Revision | None:
        """The revision that serves."""
        current = [number for number, state in self.states.items() if state == "Current"]
        return next((each for each in self.revisions if each.number in current), None)

    def begin(
        self, subject: EndpointRef, asked: RequestedRevision, capabilities: Capabilities, now: dt.datetime
    ) -> RevisionHistory:
        """The history with one more revision, which is the wanted one from now on."""
        new = PastRevision(
            number=max((each.number for each in self.past), default=0) + 1,
            created=format_time(now),
            state="Starting",
            fingerprint=asked.fingerprint,
            spec=subject.spec.written(),
            model=asked.model._asdict(),
        )
        former = self._with_states(lambda past: "Failed" if past.state == "Starting" else past.state)
        current = [past for past in former.past if past.state == "Current"]
        others = [past for past in former.past if past.state != "Current"][-(KEPT - 1 - len(current)) :]
        kept = {past.number for past in (*current, *others)}
        return RevisionHistory(
            (*(past for past in former.past if past.number in kept), new),
            (*(each for each in self.revisions if each.number in kept), _revision(new, subject, capabilities)),
        )

    def arrive(self, number: int) -> RevisionHistory:
        """The history once a revision serves."""
        states = {"Current": "Previous", "Starting": "Failed"}
        arrived = self._with_states(
            lambda past: "Current" if past.number == number else states.get(past.state, past.state)
        )
        return arrived._replace(
            past=tuple(replace(past, message="") if past.number == number else past for past in arrived.past)
        )

    def depart(self) -> RevisionHistory:
        """The history once the revision that served is gone, before another one serves."""
        return self._with_states(lambda past: "Previous" if past.state == "Current" else past.state)

    def _with_states(self, state: Callable[[PastRevision], str]) -> RevisionHistory:
        return self._replace(past=tuple(replace(past, state=state(past)) for past in self.past))


def _revision(past: PastRevision, subject: EndpointRef, capabilities: Capabilities) -> Revision:
    then = EndpointSpec.read({name: value for name, value in past.spec.items() if name in REVISION_FIELDS})
    revisioned = [each.name for each in fields(EndpointSpec) if each.encode_name in REVISION_FIELDS]
    spec = replace(subject.spec, **{name: getattr(then, name) for name in revisioned})
    known = {name: value for name, value in past.model.items() if name in ResolvedModel._fields}
    try:
        model = ResolvedModel(**known)
    except TypeError as error:
        raise ValueError(f"revision {past.number}: {error}") from error
    return Revision(past.number, subject._replace(spec=spec), model, past.fingerprint, capabilities)
