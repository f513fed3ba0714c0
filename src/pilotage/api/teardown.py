"""`Teardown`: the record of one teardown. It drives the removal, and outlives it for a while with the receipt."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pilotage.api.base import Conditions, Schema, Stored
from pilotage.api.endpoint import Deletion
from pilotage.api.endpoint_status import Waiting
from pilotage.kube.wire import ObjectMeta

TTL_SECONDS = 7 * 24 * 3600
TTL_SECONDS_MAX = 10 * 365 * 24 * 3600
Short = Annotated[str, Meta(max_length=317)]
"""A name, a uid, a group with a version."""


class Target(Schema, frozen=True):
    """Object whose parts are removed."""

    api_version: Short
    """API version of the target."""
    kind: Short
    """Kind of the target."""
    namespace: Short
    """Namespace of the target. It has to be the namespace of the Teardown."""
    name: Short
    """Name of the target."""
    uid: Short
    """UID of the target."""


class TeardownPart(Schema, frozen=True):
    """Object that is removed, if it is proven to be a part of the target."""

    api_version: Short
    """API version of the object."""
    kind: Short
    """Kind of the object."""
    resource: Short
    """Plural resource name of the object."""
    name: Short
    """Name of the object."""
    uid: Short = ""
    """UID of the object. If empty, the object of this name that is sealed for the target."""


class TeardownSpec(Schema, frozen=True):
    """Objects to remove, and the policy for it. It is immutable."""

    target: Target
    reason: Literal["Deleted", "Superseded", "Replaced", "Vanished", "Failed", "Ended", "Aborted"]
    """Reason for the removal."""
    all_parts: bool = False
    """Whether every proven part of the target is removed, in addition to `parts`."""
    parts: list[TeardownPart] = []
    """Objects to remove, by name."""
    deletion: Deletion = Deletion()
    ttl_seconds_after_finished: Annotated[int, Meta(ge=0, le=TTL_SECONDS_MAX)] = TTL_SECONDS
    """Seconds that the Teardown is kept, with its receipt, once everything is gone."""


class TeardownStatus(Schema, frozen=True):
    """Observed state of the teardown, written by the operator."""

    phase: str | None = None
    """Phase of the engine in lower case, and `done` at the end."""
    conditions: Conditions = []
    started: str | None = None
    """Time at which the teardown started."""
    finished: str | None = None
    """Time at which everything was proven gone."""
    left: int | None = None
    """Number of objects that are left."""
    gone: int | None = None
    """Number of objects that are gone."""
    waiting_for: str | None = None
    """Object or event that the teardown waits for."""
    waits: list[Waiting] = []
    """Current waits, each with its cause."""
    ledger: dict[str, Any] | None = None
    """Objects to remove, by UID, and their order."""
    receipt: dict[str, Any] | None = None
    """Proof that everything is gone."""


class Teardown(Schema, frozen=True):
    """Record of one teardown: the objects to remove, the progress, and the receipt."""

    spec: TeardownSpec
    metadata: ObjectMeta = ObjectMeta()
    status: TeardownStatus = TeardownStatus()


class StoredTeardown(Stored, frozen=True):
    """A Teardown as a client reads it."""

    status: TeardownStatus = TeardownStatus()


class _SummarySpec(msgspec.Struct, frozen=True):
    target: Target
    reason: str = ""


class _SummaryStatus(msgspec.Struct, frozen=True):
    phase: str | None = None


class TeardownSummary(msgspec.Struct, frozen=True):
    """Target, reason and phase of a Teardown, which are read at every change: ledger and receipt are long."""

    spec: _SummarySpec
    status: _SummaryStatus = _SummaryStatus()
