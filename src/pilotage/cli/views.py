"""What the commands read of our own kinds: as much as they print.

Not the types of `pilotage.api`: those take longer to import than a command takes to answer, and refuse what a newer
operator may write. A test holds the names of the fields here to theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pilotage.cli.errors import NoAnswer
from pilotage.kube.wire import ObjectMeta

if TYPE_CHECKING:
    from pilotage.kube import Object


class View(msgspec.Struct, frozen=True, rename="camel"):
    """Fields that are not named here are not looked at."""


class Condition(View, frozen=True):
    """See `pilotage.api.base`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class Replicas(View, frozen=True):
    """How many there are."""

    ready: int = 0
    desired: int = 0


class LedgerEntry(View, frozen=True):
    """A part of an endpoint."""

    api_version: str = ""
    kind: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""
    revision: int | None = None


class PastRevision(View, frozen=True):
    """A revision, to go back to."""

    number: int
    created: str = ""
    state: str = ""
    message: str = ""
    spec: dict[str, Any] = {}


class Waiting(View, frozen=True):
    """What a teardown waits for."""

    object: str = ""
    cause: str = ""
    text: str = ""
    since: str = ""
    until: str = ""


class TeardownState(View, frozen=True):
    """How far a teardown is, as the endpoint tells it."""

    name: str = ""
    phase: str = ""
    left: int | None = None
    waits: tuple[Waiting, ...] = ()


class EndpointStatus(View, frozen=True):
    """What is, of an endpoint."""

    phase: str | None = None
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    url: str | None = None
    revision: str | None = None
    route_kind: str | None = None
    placement: str | None = None
    replicas: Replicas = Replicas()
    waiting_for: str | None = None
    ledger: tuple[LedgerEntry, ...] = ()
    history: tuple[PastRevision, ...] = ()
    teardown: TeardownState | None = None

    def condition(self, type_: str) -> Condition | None:
        """The condition of a type, if there is one."""
        return next((each for each in self.conditions if each.type == type_), None)


class Endpoint(View, frozen=True):
    """A ServingEndpoint. Its spec is what its user wrote, and stays as it is."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: EndpointStatus = EndpointStatus()


class Format(View, frozen=True):
    """What a file is."""

    kind: str = ""
    architecture: str | None = None
    quantization: str | None = None
    context_length: int | None = None


class Bytes(View, frozen=True):
    """How far a fetch is."""

    done: int = 0
    total: int | None = None


class ModelStatus(View, frozen=True):
    """What is, of a model."""

    phase: str | None = None
    conditions: tuple[Condition, ...] = ()
    format: Format | None = None
    bytes: Bytes | None = None
    path: str | None = None


class Model(View, frozen=True):
    """A Model."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: ModelStatus = ModelStatus()


class Target(View, frozen=True):
    """Whose parts go."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class TeardownSpec(View, frozen=True):
    """What goes."""

    target: Target = Target()
    reason: str = ""


class TeardownStatus(View, frozen=True):
    """How far a teardown is."""

    phase: str | None = None
    started: str | None = None
    finished: str | None = None
    left: int | None = None
    gone: int | None = None
    waiting_for: str | None = None
    waits: tuple[Waiting, ...] = ()
    ledger: dict[str, Any] | None = None
    receipt: dict[str, Any] | None = None


class Teardown(View, frozen=True):
    """The record of a teardown."""

    metadata: ObjectMeta
    spec: TeardownSpec = TeardownSpec()
    status: TeardownStatus = TeardownStatus()


V = TypeVar("V", Endpoint, Model, Teardown)


def view(obj: Object, type_: type[V]) -> V:
    """One object as one of these. NoAnswer where a field is of another type than it was when this was written."""
    try:
        return obj.decode_as(type_)
    except msgspec.ValidationError as error:
        raise NoAnswer(f"{obj.ref} was written by another version of Pilotage ({error}). Update this one.") from error
