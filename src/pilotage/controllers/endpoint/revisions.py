"""The revisions of an endpoint: which one is wanted, which one serves, and what each consists of. Pure.

The history in the status is the only memory: its last entry that is not Abandoned is the wanted revision, the entry in
state Current serves.
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
from pilotage.runtime.conditions import clipped
from pilotage.serving import backend, desired_objects
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, ResolvedModel
from pilotage.serving.placements import ServiceBackend
from pilotage.serving.problems import problems
from pilotage.serving.revision import fingerprint
from pilotage.serving.runtimes import RUNTIMES
from pilotage.traffic.routers import route_problems

KEPT = 10
"""Length of the history."""
MESSAGE_CHARS = 400
"""Length of a message in the history."""
_MODEL_FIELDS = {*ResolvedModel._fields} - {"other_names"}


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

    def answers_to(self, name: str) -> bool:
        """Whether its servers accept a name of the model in requests."""
        if RUNTIMES[self.subject.spec.runtime.name].answers_any_name:
            return True
        return name in (self.model.name, *self.model.other_names)

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
    """Revisions as the status has them."""
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
        found = [each for each in self.revisions if self.states[each.number] != "Abandoned"]
        return found[-1] if found else None

    @property
    def wanted_since(self) -> str:
        """Time at which the wanted revision was created."""
        assert self.wanted is not None
        return next(past.created for past in self.past if past.number == self.wanted.number)

    @property
    def serving(self) -> Revision | None:
        """The revision that serves."""
        current = [number for number, state in self.states.items() if state == "Current"]
        return next((each for each in self.revisions if each.number in current), None)

    @property
    def served(self) -> bool:
        """Whether a revision serves, or has served."""
        return any(past.state in ("Current", "Previous") for past in self.past)

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
            model={name: value for name, value in asked.model._asdict().items() if isinstance(value, str)},
            names=[each for each in self._other_names(subject) if each != asked.model.name],
        )
        former = self._abandon(lambda past: past.state == "Starting", f"Revision {new.number} was asked for instead.")
        current = [past for past in former.past if past.state == "Current"]
        others = [past for past in former.past if past.state != "Current"][-(KEPT - 1 - len(current)) :]
        kept = {past.number for past in (*current, *others)}
        return RevisionHistory(
            (*(past for past in former.past if past.number in kept), new),
            (*(each for each in self.revisions if each.number in kept), _revision(new, subject, capabilities)),
        )

    def _other_names(self, subject: EndpointRef) -> list[str]:
        """Names of the route while a revision follows the one that serves: a server that lacks one answers 404."""
        return [*dict.fromkeys([subject.name, *([self.serving.model.name] if self.serving is not None else [])])]

    def arrive(self, number: int) -> RevisionHistory:
        """The history once a revision serves."""
        return self.depart()._with_state(number, "Current")

    def fail(self, number: int, message: str) -> RevisionHistory:
        """The history once a revision cannot become available as it is. It stays the wanted one."""
        return self._with_state(number, "Failed", clipped(message, MESSAGE_CHARS))

    def start(self, number: int) -> RevisionHistory:
        """The history while a revision may become available."""
        return self._with_state(number, "Starting")

    def return_to(self, number: int) -> RevisionHistory:
        """The history once the spec asks again for a revision that still has its parts: later ones are abandoned."""
        message = f"The spec returned to revision {number}."
        returned = self._abandon(lambda past: past.number > number and past.state != "Current", message)
        return returned if self.states[number] == "Current" else returned.start(number)

    def depart(self) -> RevisionHistory:
        """The history once the revision that served is gone, before another one serves."""
        return self._change(lambda past: replace(past, state="Previous") if past.state == "Current" else past)

    def _abandon(self, which: Callable[[PastRevision], bool], message: str) -> RevisionHistory:
        """The history without hope for some revisions. Why one failed before stays in its message."""

        def abandoned(past: PastRevision) -> PastRevision:
            said = past.message if past.state in ("Failed", "Abandoned") else message
            return replace(past, state="Abandoned", message=said) if which(past) else past

        return self._change(abandoned)

    def _with_state(self, number: int, state: str, message: str = "") -> RevisionHistory:
        return self._change(lambda past: replace(past, state=state, message=message) if past.number == number else past)

    def _change(self, change: Callable[[PastRevision], PastRevision]) -> RevisionHistory:
        return self._replace(past=tuple(change(past) for past in self.past))


def _revision(past: PastRevision, subject: EndpointRef, capabilities: Capabilities) -> Revision:
    then = EndpointSpec.read({name: value for name, value in past.spec.items() if name in REVISION_FIELDS})
    revisioned = [each.name for each in fields(EndpointSpec) if each.encode_name in REVISION_FIELDS]
    spec = replace(subject.spec, **{name: getattr(then, name) for name in revisioned})
    known = {name: value for name, value in past.model.items() if name in _MODEL_FIELDS}
    try:
        model = ResolvedModel(**known, other_names=tuple(past.names))
    except TypeError as error:
        raise ValueError(f"revision {past.number}: {error}") from error
    return Revision(past.number, subject._replace(spec=spec), model, past.fingerprint, capabilities)
