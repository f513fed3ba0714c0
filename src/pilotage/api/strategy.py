"""Strategies of replacing one revision by the next, as parts of the spec of an endpoint."""

from typing import Annotated, Literal

from msgspec import Meta

from pilotage.api.analysis import AnalysisSpec
from pilotage.api.base import REPLICAS_MAX, Argument, Duration, EnvVar, Schema, Seconds, map_list, matches
from pilotage.api.traffic import Assignment, Percent, RequestMatch
from pilotage.api.variant import VARIANTS_MAX, VariantSpec

STEPS_MAX = 50
AUTO = "Auto"
ALL = "All"
ReplicaCount = Annotated[int, Meta(ge=0, le=REPLICAS_MAX)]
Surge = ReplicaCount | Annotated[str, matches(f"^({AUTO}|100%|[1-9]?[0-9]%)$", max_length=4)]


class CanaryPause(Schema, frozen=True):
    """Pause of a rollout."""

    duration: Duration | None = None
    """Length of the pause, such as 10m. If unset, it lasts until the step is promoted."""


class CanaryScale(Schema, frozen=True):
    """Size of the candidate: exactly one of `replicas`, `percent` and `follow`. It never gets less than its weight
    needs."""

    replicas: ReplicaCount | None = None
    """Number of replicas."""
    percent: Percent | None = None
    """Percentage of the endpoint's replicas."""
    follow: Literal["Weight"] | None = None
    """Weight: as many replicas as its weight needs, which is the default."""


class CanaryAnalysis(Schema, frozen=True):
    """Wait for the verdict of the analysis."""

    at_most: Duration = "30m"
    """Time for the verdict. If it is undecided then, the rollout pauses."""


class CanaryJob(Schema, frozen=True):
    """Evaluation by a Job. Its pod gets CANDIDATE_URL and SERVING_URL. Exit code 0 passes, 1 aborts; everything else
    holds the rollout."""

    image: Annotated[str, Meta(min_length=1, max_length=1024)]
    """Container image."""
    command: Annotated[list[Argument], Meta(max_length=64)] = []
    """Entrypoint. Defaults to the image's entrypoint."""
    args: Annotated[list[Argument], Meta(max_length=512)] = []
    """Arguments."""
    env: Annotated[list[EnvVar], Meta(max_length=64, extra_json_schema=map_list("name"))] = []
    """Environment variables."""
    at_most: Duration = "1h"
    """Time that it may take."""


class CanaryExperiment(Schema, frozen=True, kw_only=True):
    """Experiment beside the rollout. The next step follows when its time is over."""

    duration: Duration
    """Time from the moment at which all of it is programmed, such as 1h."""
    variants: Annotated[
        list[VariantSpec], Meta(min_length=1, max_length=VARIANTS_MAX, extra_json_schema=map_list("name"))
    ]
    """Variants of the endpoint. Their weights come from the serving revision."""
    match: RequestMatch | None = None
    """Requests that take part. If unset, all."""
    start_deadline_seconds: Seconds = 1800
    """Seconds that the variants have to become available."""


class CanaryStep(Schema, frozen=True):
    """Step of a rollout: exactly one of its fields."""

    set_weight: Percent | None = None
    """Percentage of the requests that the candidate gets."""
    set_scale: CanaryScale | None = None
    pause: CanaryPause | None = None
    analysis: CanaryAnalysis | None = None
    experiment: CanaryExperiment | None = None
    job: CanaryJob | None = None


class AbortPolicy(Schema, frozen=True):
    """Policy for the candidate of an aborted rollout."""

    scale_down_delay_seconds: Seconds = 0
    """Seconds that its replicas are kept, out of traffic."""


class FormerPolicy(Schema, frozen=True):
    """Policy for the revision that was replaced: it rests, so that a return to it takes no start."""

    keep_seconds: Seconds = 600
    """Seconds that it is kept, out of traffic."""
    replicas: ReplicaCount | Literal["All"] = "All"
    """Number of its replicas that are kept, at most as many as `surge` allows. All: all of them."""


class Canary(Schema, frozen=True):
    """Rollout in steps."""

    steps: Annotated[list[CanaryStep], Meta(max_length=STEPS_MAX)] = []
    """Steps, in order. After the last one the candidate is promoted."""
    surge: Surge = AUTO
    """Number or percentage of replicas beyond those of the endpoint. 0: one replica makes room for each new one. Auto:
    1, or 0 if a resource is short."""
    max_unavailable: Annotated[int, Meta(ge=1, le=REPLICAS_MAX)] = 1
    """Number of replicas that may be missing meanwhile with surge 0."""
    analysis: AnalysisSpec | None = None
    """Comparison of the candidate with the serving revision, from its first weight on. The result Worse ends the
    rollout as `onFailure` says."""
    match: RequestMatch | None = None
    """Requests that always go to the candidate."""
    assign: Assignment = Assignment()
    on_failure: Literal["Abort", "Pause"] = "Abort"
    """Reaction if the candidate fails or is worse."""
    abort: AbortPolicy = AbortPolicy()
    former: FormerPolicy = FormerPolicy()


class Strategy(Schema, frozen=True):
    """Strategy of replacing one revision by the next."""

    type: Literal["BlueGreen", "Recreate", "Canary"] = "BlueGreen"
    """BlueGreen: the old revision is removed once the new one is ready. Recreate: the old revision is removed first.
    Canary: requests move to the new revision in steps."""
    canary: Canary | None = None
    """Steps of a Canary."""
