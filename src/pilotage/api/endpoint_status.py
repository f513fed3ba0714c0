"""Status of a `ServingEndpoint`, apart from its spec: commands read the status alone, and start faster so."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from pilotage.api.base import Condition, Conditions, Schema, Stored, map_list, one_of

PHASES = (
    "Pending",
    "Deploying",
    "Serving",
    "ScaledToZero",
    "Redeploying",
    "Degraded",
    "Unknown",
    "Failed",
    "Deleting",
)


class Replicas(Schema, frozen=True):
    """Replicas of the revision that serves."""

    ready: int = 0
    """Number of replicas that are ready."""
    desired: int = 0
    """Number of replicas that are wanted."""


class LedgerEntry(Schema, frozen=True):
    """Object that was created for the endpoint, or is about to be. Recorded before it is created."""

    api_version: str
    """API version of the object."""
    kind: str
    """Kind of the object."""
    resource: str
    """Plural resource name of the object."""
    name: str
    """Name of the object."""
    uid: str = ""
    """UID of the object; empty until it is known."""
    revision: int | None = None
    """Revision that the object belongs to; unset if it belongs to all of them."""


class PastRevision(Schema, frozen=True):
    """Revision of the endpoint that it can be rolled back to."""

    number: int
    """Number of the revision."""
    created: str
    """Time at which the revision was created."""
    state: Literal["Current", "Previous", "Failed", "Starting", "Abandoned"]
    """State of the revision. An abandoned one never served, because the spec asked for another one."""
    message: str = ""
    """Reason for the state, for people."""
    fingerprint: str = ""
    """Digest of the fields that make a new revision."""
    spec: dict[str, Any] = {}
    """Spec of the endpoint at that revision."""
    model: dict[str, str] = {}
    """Model of the revision, as it was resolved then."""
    names: list[str] = []
    """More names that its servers answer to: those of the endpoint, and of the model that it served before."""


class Waiting(Schema, frozen=True):
    """Wait of a teardown, for people."""

    object: str
    """Object that the teardown waits for."""
    cause: str
    """Reason for the wait, in CamelCase."""
    text: str
    """Details of the wait."""
    since: str
    """Start of the wait."""
    until: str
    """Time at which the wait is reported as blocked."""


class TeardownState(Schema, frozen=True):
    """Progress of a teardown."""

    name: str
    """Name of the Teardown."""
    phase: str = ""
    """Phase of the Teardown."""
    left: int | None = None
    """Number of objects that are left."""
    waits: list[Waiting] = []
    """Current waits of the Teardown."""


class VariantShare(Schema, frozen=True):
    """Share of a revision, in percent of the requests that take part, or of the copies."""

    wanted: Annotated[int, Meta(ge=0, le=100)] = 0
    """Percentage that is asked for."""
    programmed: Annotated[int, Meta(ge=0, le=100)] | None = None
    """Percentage that every proxy has loaded; unset if that is not proven."""
    effective: Annotated[float, Meta(ge=0, le=100)] | None = None
    """Percentage that it really gets: shares of Services without a server go to the others. Unset if it is unknown."""


class ClaimedVariant(Schema, frozen=True, kw_only=True):
    """Variant of an experiment, as far as its endpoint has brought it."""

    name: str
    """Name of the variant."""
    revision: int | None = None
    """Number of its revision; unset before it has begun, and once it is proven gone."""
    replicas: Replicas = Replicas()
    share: VariantShare = VariantShare()
    in_flight: Annotated[int, Meta(ge=0)] | None = None
    """Number of requests in flight; unset if it is unknown."""
    message: str = ""
    """Reason why it does not go on, for people."""


class ClaimedExperiment(Schema, frozen=True, kw_only=True):
    """Experiment on the endpoint, as far as the endpoint has brought it."""

    name: str
    """Name of the Experiment."""
    uid: str
    """UID of the Experiment."""
    phase: Annotated[str, one_of("Refused", "Starting", "Entering", "Running", "Leaving", "Stopping", "Gone")]
    """Stage of its variants. Gone: every part of them is proven gone."""
    message: str = ""
    """Wait or refusal, for people."""
    variants: Annotated[list[ClaimedVariant], Meta(max_length=8, extra_json_schema=map_list("name"))] = []
    """Variants of the experiment."""


class EndpointStatus(Schema, frozen=True):
    """Observed state of the endpoint, written by the operator."""

    phase: Annotated[str, one_of(*PHASES)] | None = None
    """Summary of the conditions."""
    observed_generation: int | None = None
    """Generation that the status is about."""
    conditions: Conditions = []
    url: str | None = None
    """URL at which the endpoint is served."""
    revision: str | None = None
    """Name of the revision that serves."""
    route_kind: str | None = None
    """Kind of the route that is in place."""
    placement: str | None = None
    """Placement of the revision that serves."""
    replicas: Replicas = Replicas()
    ready: str | None = None
    """Ready replicas of the desired ones, as `kubectl get` shows them: `2/2`."""
    selector: str | None = None
    """Label selector of the pods, for the scale subresource."""
    waiting_for: str | None = None
    """Object or event that the endpoint waits for."""
    ledger: list[LedgerEntry] = []
    """Objects that the endpoint is made of."""
    history: list[PastRevision] = []
    """Revisions, oldest first."""
    experiments: Annotated[list[ClaimedExperiment], Meta(max_length=8, extra_json_schema=map_list("uid"))] = []
    """Experiments that have a claim on the endpoint, the oldest first."""
    teardown: TeardownState | None = None
    """Progress of the teardown while the endpoint is deleted."""

    def condition(self, type_: str) -> Condition | None:
        """The condition of a type, if there is one."""
        return next((each for each in self.conditions if each.type == type_), None)


class StoredEndpoint(Stored, frozen=True):
    """A ServingEndpoint as a client reads it."""

    status: EndpointStatus = EndpointStatus()

    @property
    def phase(self) -> str:
        """The phase; one that no operator has written yet is told from the object alone."""
        return "Deleting" if self.metadata.terminating else self.status.phase or "Pending"
