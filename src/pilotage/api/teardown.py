"""`Teardown`: the record of one teardown. It drives what is torn down, and outlives it for a while with the receipt."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pilotage.api.base import Conditions, Part
from pilotage.api.endpoint import Deletion, Waiting

TTL_SECONDS = 7 * 24 * 3600
TTL_SECONDS_MAX = 10 * 365 * 24 * 3600
Short = Annotated[str, Field(max_length=317)]
"""A name, a uid, a group with a version."""


class Target(Part):
    """Whose parts go."""

    api_version: Short
    kind: Short
    namespace: Annotated[Short, Field(description="That of the Teardown itself, or it is refused.")]
    name: Short
    uid: Short


class Doomed(Part):
    """One object that goes, if it is proven to be a part of the target."""

    api_version: Short
    kind: Short
    resource: Short
    name: Short
    uid: Annotated[Short, Field(description="Empty: the one of this name that is sealed for the target.")] = ""


class TeardownSpec(Part):
    """What goes, and how."""

    target: Target
    reason: Annotated[
        Literal["Deleted", "Superseded", "Replaced", "Vanished", "Failed"], Field(description="Why it goes.")
    ]
    all_parts: Annotated[
        bool, Field(description="Everything that is proven to be a part of the target, besides the parts.")
    ] = False
    parts: Annotated[list[Doomed], Field(description="What goes, by name.")] = Field(default_factory=list)
    deletion: Deletion = Field(default_factory=Deletion)
    ttl_seconds_after_finished: Annotated[
        int,
        Field(ge=0, le=TTL_SECONDS_MAX, description="How long the record, with its receipt, stays when all is gone."),
    ] = TTL_SECONDS


class TeardownStatus(Part):
    """How far it is."""

    phase: Annotated[str | None, Field(description="A phase of the engine in lower case, then `done`.")] = None
    conditions: Conditions = Field(default_factory=list)
    started: str | None = None
    finished: str | None = None
    left: int | None = None
    gone: int | None = None
    waiting_for: str | None = None
    waits: list[Waiting] = Field(default_factory=list)
    ledger: Annotated[dict[str, Any] | None, Field(description="What goes and in which order, by uid.")] = None
    receipt: Annotated[dict[str, Any] | None, Field(description="The proof.")] = None


class Teardown(Part):
    """The record of one teardown."""

    spec: TeardownSpec
    status: TeardownStatus = Field(default_factory=TeardownStatus)
