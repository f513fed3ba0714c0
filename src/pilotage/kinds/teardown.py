"""`Teardown`: the record of one teardown. It drives what is torn down, and outlives it for a while with the receipt."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pilotage.kinds.base import Conditions, Part
from pilotage.kinds.endpoint import Deletion, Waiting

TTL_SECONDS = 7 * 24 * 3600


class Target(Part):
    """Whose parts go."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Doomed(Part):
    """One object that goes."""

    api_version: str
    kind: str
    resource: str
    name: str
    uid: Annotated[str, Field(description="Empty: the one of this name that carries the label of the target.")] = ""


class TeardownSpec(Part):
    """What goes, and how."""

    target: Target
    reason: Annotated[
        Literal["Deleted", "Superseded", "Replaced", "Vanished", "Failed"], Field(description="Why it goes.")
    ]
    all_parts: Annotated[
        bool, Field(description="Everything that carries the label of the target, besides the parts.")
    ] = False
    parts: Annotated[list[Doomed], Field(description="What goes, by name.")] = Field(default_factory=list)
    deletion: Deletion = Field(default_factory=Deletion)
    ttl_seconds_after_finished: Annotated[
        int, Field(ge=0, description="How long the record, with its receipt, stays when all is gone.")
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
