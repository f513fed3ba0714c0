"""`Experiment`: variants of an endpoint that get a share, or copies, of its requests for a while, and are compared.

An Experiment only claims: the controller of its endpoint makes the variants, which are revisions like any other, and
writes the route. What it has made of the claim is in the endpoint's status (`ClaimedExperiment`).
"""

from typing import Annotated

from msgspec import Meta

from pilotage.api.analysis import AnalysisSpec, Verdict
from pilotage.api.base import (
    Conditions,
    Duration,
    ObjectName,
    Schema,
    Seconds,
    Stored,
    Timestamp,
    map_list,
    one_of,
)
from pilotage.api.endpoint_status import Replicas, VariantShare
from pilotage.api.traffic import Assignment, RequestMatch
from pilotage.api.variant import VARIANTS_MAX, VariantSpec
from pilotage.kube.wire import ObjectMeta

EXPERIMENT_PHASES = ("Pending", "Starting", "Entering", "Running", "Leaving", "Stopping", "Ended")
REASONS = ("Completed", "Terminated", "Worse", "NotStarted", "EndpointDeleted", "Deleted", "VariantLost")


class ExperimentEndpoint(Schema, frozen=True):
    """Endpoint whose requests the experiment takes a part of."""

    name: ObjectName
    """Name of a ServingEndpoint in the same namespace."""


class ExperimentSpec(Schema, frozen=True, kw_only=True):
    """Variants, who takes part, for how long, and how they are compared."""

    endpoint: ExperimentEndpoint
    variants: Annotated[
        list[VariantSpec], Meta(min_length=1, max_length=VARIANTS_MAX, extra_json_schema=map_list("name"))
    ]
    """Variants of the endpoint. The serving revision gets the rest of the requests."""
    on_hosts: bool = False
    """Whether its variants may run on Hosts. Required if the endpoint does; its author needs the right to use Hosts."""
    match: RequestMatch | None = None
    """Requests that take part. If unset, all."""
    assign: Assignment = Assignment()
    duration: Duration | None = None
    """Time from the moment at which all of it is programmed. If unset, until `terminate`."""
    start_deadline_seconds: Seconds = 1800
    """Seconds that the variants have to become available."""
    scale_down_delay_seconds: Seconds = 0
    """Seconds that variants stay after they are out of traffic and drained."""
    terminate: bool = False
    """Whether the experiment ends now."""
    analysis: AnalysisSpec | None = None
    """Comparison of the variants. If unset, the standard one, which reports and ends nothing."""
    ttl_seconds_after_finished: Annotated[int, Meta(ge=0, le=10 * 365 * 86400)] = 7 * 86400
    """Seconds that the Experiment is kept, with its verdict, once it has ended."""


class VariantStatus(Schema, frozen=True, kw_only=True):
    """Observed state of a variant."""

    name: str
    """Name of the variant."""
    revision: str | None = None
    """Name of its revision."""
    replicas: Replicas = Replicas()
    weight: VariantShare | None = None
    """Share of the requests, or of the copies."""
    in_flight: Annotated[int, Meta(ge=0)] | None = None
    """Number of requests in flight; unset if it is unknown."""
    verdict: Verdict | None = None
    """Comparison with the other side."""


class ExperimentStatus(Schema, frozen=True):
    """Observed state of the experiment, written by the operator."""

    phase: Annotated[str, one_of(*EXPERIMENT_PHASES)] | None = None
    """Stage of the experiment."""
    reason: Annotated[str, one_of(*REASONS)] | None = None
    """Reason for its end."""
    observed_generation: int | None = None
    """Generation that the status is about."""
    accepted: Timestamp | None = None
    """Time at which its variants began to start."""
    started: Timestamp | None = None
    """Time at which all of it was programmed."""
    until: Timestamp | None = None
    """Time at which it ends."""
    ended: Timestamp | None = None
    """Time at which everything of it was proven gone."""
    lost_since: Timestamp | None = None
    """Time since which a variant has had no server; unset if each has one."""
    summary: str | None = None
    """Variants and their shares, as `kubectl get` shows them: `q8 10, control 10, big ~5`."""
    variants: Annotated[list[VariantStatus], Meta(max_length=VARIANTS_MAX, extra_json_schema=map_list("name"))] = []
    """Variants and what they get."""
    verdict: Verdict | None = None
    """Verdict on the first variant that is compared and does worst."""
    conditions: Conditions = []
    waiting_for: str | None = None
    """Object or event that the experiment waits for."""


class Experiment(Schema, frozen=True):
    """Variants of an endpoint that get a part of its requests for a while."""

    spec: ExperimentSpec
    metadata: ObjectMeta = ObjectMeta()
    status: ExperimentStatus = ExperimentStatus()


class StoredExperiment(Stored, frozen=True):
    """An Experiment as a client reads it."""

    status: ExperimentStatus = ExperimentStatus()
