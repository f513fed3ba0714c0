"""Status of a `ServingEndpoint`, apart from its spec: commands read the status alone, and start faster so."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from pilotage.api.analysis import Verdict
from pilotage.api.base import Condition, Conditions, Schema, Stored, Timestamp, map_list, one_of

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
ROLLOUT_PHASES = (
    "Starting",
    "Shifting",
    "Pausing",
    "Analysing",
    "Experimenting",
    "Judging",
    "Promoting",
    "Aborting",
    "Held",
    "Promoted",
    "Aborted",
)
"""Phases of a rollout in steps. The last two are ends."""
DECISIONS_MAX = 20
CLAIM_PHASES = ("Refused", "Waiting", "Starting", "Entering", "Running", "Leaving", "Stopping", "Gone")


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
    state: Literal["Current", "Previous", "Failed", "Starting", "Abandoned", "Resting", "Aborted", "Variant"]
    """State of the revision. An abandoned one never served, because the spec asked for another one. A resting one has
    served, and is kept out of traffic. An aborted one is not tried again, unless it is asked for. A variant belongs to
    an experiment."""
    message: str = ""
    """Reason for the state, for people."""
    fingerprint: str = ""
    """Digest of the fields that make a new revision."""
    spec: dict[str, Any] = {}
    """Spec of the endpoint at that revision."""
    model: dict[str, str] = {}
    """Model of the revision, as it was resolved then."""
    until: Timestamp | None = None
    """Time until which the parts of a resting or aborted revision are kept."""
    replicas: int | None = None
    """Number of replicas that a resting or aborted revision keeps."""
    experiment: str | None = None
    """UID of the experiment that a variant belongs to."""
    variant: str | None = None
    """Name of the variant in its experiment."""
    names: list[str] = []
    """More names that its servers answer to: those of the endpoint, and of the model that it served before."""


class VariantShare(Schema, frozen=True):
    """Share of a revision, in percent of the requests that take part, or of the copies."""

    wanted: Annotated[int, Meta(ge=0, le=100)] = 0
    """Percentage that is asked for."""
    programmed: Annotated[int, Meta(ge=0, le=100)] | None = None
    """Percentage that every proxy has loaded; unset if that is not proven."""
    effective: Annotated[float, Meta(ge=0, le=100)] | None = None
    """Percentage that it really gets: shares of Services without a server go to the others. Unset if it is unknown."""


class RolloutReplicas(Schema, frozen=True):
    """Replicas of both sides, as ready ones of desired ones."""

    serving: str = ""
    """Replicas of the revision that serves, such as 3 of 3."""
    candidate: str = ""
    """Replicas of the candidate."""


class RolloutSizes(Schema, frozen=True):
    """Numbers of replicas that both sides are told to have. Written before the sides are changed."""

    serving: int
    """Number of replicas of the revision that serves."""
    candidate: int
    """Number of replicas of the candidate."""
    total: int
    """Number of replicas of the revision that served when the rollout began."""
    surge: int
    """Number of replicas beyond the total. Auto has become a number."""


class RolloutDecision(Schema, frozen=True):
    """Transition of a rollout, for people."""

    what: Annotated[str, Meta(max_length=63)]
    """Transition, in CamelCase."""
    step: int
    """Step in which it happened."""
    at: Timestamp
    """Time of the transition."""
    text: Annotated[str, Meta(max_length=1024)] = ""
    """Reason for the transition."""


class RolloutState(Schema, frozen=True, kw_only=True):
    """Rollout in steps that is under way, or the last one."""

    revision: str
    """Name of the candidate."""
    phase: Annotated[str, one_of(*ROLLOUT_PHASES)]
    """Phase of the rollout."""
    step: int = 0
    """Current step; the first one is 1, and 0 is before it."""
    of: int = 0
    """Number of steps."""
    since: Timestamp
    """Start of the phase."""
    until: Timestamp | None = None
    """End of the pause, or of the time for the analysis or the Job."""
    passed: str = ""
    """Digest of the steps before the current one, by which an edit of them is noticed."""
    weight: VariantShare = VariantShare()
    """Percentage of the requests that the candidate gets."""
    replicas: RolloutReplicas = RolloutReplicas()
    sizes: RolloutSizes | None = None
    verdict: Verdict | None = None
    """Last verdict of the analysis."""
    message: Annotated[str, Meta(max_length=1024)] = ""
    """Reason for the phase, for people."""
    decisions: Annotated[list[RolloutDecision], Meta(max_length=DECISIONS_MAX)] = []
    """Last transitions, oldest first."""


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


class ClaimedVariant(Schema, frozen=True, kw_only=True):
    """Variant of an experiment, as far as its endpoint has brought it."""

    name: str
    """Name of the variant."""
    revision: int | None = None
    """Number of its revision; unset before it has begun, and once it is proven gone."""
    service: str = ""
    """Name of the Service of its revision."""
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
    phase: Annotated[str, one_of(*CLAIM_PHASES)]
    """Stage of its variants. Gone: every part of them is proven gone."""
    message: str = ""
    """Wait or refusal, for people."""
    variants: Annotated[list[ClaimedVariant], Meta(max_length=8, extra_json_schema=map_list("name"))] = []
    """Variants of the experiment."""
    serving: ClaimedVariant | None = None
    """Revision that serves, as the other side of a comparison; its name is Serving."""


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
    rollout: RolloutState | None = None
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
