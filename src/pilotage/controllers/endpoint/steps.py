"""The observations that a decision about an endpoint rests on, and the steps that follow from it. Values alone."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pilotage.api.analysis import AnalysisSpec
from pilotage.api.endpoint_status import ClaimedExperiment, RolloutDecision
from pilotage.controllers.endpoint.judging import JobResult, StepJob
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import RequestedRevision, Revision
from pilotage.controllers.endpoint.rolling import RolloutInputs
from pilotage.controllers.endpoint.variants import ExperimentInputs
from pilotage.controllers.routing import Routed
from pilotage.kube import Resource
from pilotage.serving.parts import Capabilities, Readiness
from pilotage.traffic.contract import Mix


class ObservedPart(NamedTuple):
    """A part of the endpoint, made by us for any of its revisions, as the caches have it."""

    resource: Resource
    name: str
    uid: str
    revision: str = ""
    """Its label; empty for a part of all revisions."""


class AppliedParts(NamedTuple):
    """State after the parts of the wanted revision, and of the one that serves, were applied."""

    problem: EndpointProblem | None = None
    """The first problem with a part of the wanted revision."""
    readiness: Mapping[int, Readiness] = {}
    """Readiness of the wanted and the serving revision, by number."""
    services: frozenset[str] = frozenset()
    """Names of the Services of all revisions that exist."""


class Observed(NamedTuple):
    """Everything that a decision rests on beside spec and history. The last five fields are results of steps."""

    requested: RequestedRevision | EndpointProblem
    """The revision that the spec asks for, or why it is impossible now."""
    capabilities: Capabilities
    held: bool = True
    """Whether the endpoint has our finalizer."""
    recorded: Mapping[int, str] = {}
    """The states of revisions that the status in the API has."""
    parts: Sequence[ObservedPart] = ()
    leaving: frozenset[str] = frozenset()
    """Uids of parts that unfinished Teardowns name."""
    teardowns: int = 0
    """Number of unfinished Teardowns of parts."""
    teardowns_wait: str = ""
    """The wait of these Teardowns, for people."""
    teardowns_blocked: str = ""
    """Reason why one of them does not go on; empty: none is blocked."""
    rolling: RolloutInputs = RolloutInputs()
    """The sides of a rollout in steps, without their readiness."""
    experiments: ExperimentInputs = ExperimentInputs()
    """The experiments on the endpoint."""
    accepted: bool = False
    """`DryRun` succeeded. If it fails, `requested` becomes the problem."""
    applied: AppliedParts | None = None
    """Result of `ApplyParts`."""
    pods_listed: bool = False
    """`ListPods` is done, and has explained the readiness."""
    routed: Routed | EndpointProblem | None = None
    """Result of `MoveRoute`."""
    judged: JobResult | None = None
    """Result of `RunJob`."""


class AddFinalizer(NamedTuple):
    """Put our finalizer on the endpoint."""


class DryRun(NamedTuple):
    """Ask the API server whether it would accept the parts of a revision. The result is needed."""

    revision: Revision


class BeginRevision(NamedTuple):
    """Write the history, and the parts of a new revision with their route, into the status."""

    revision: Revision


class ApplyParts(NamedTuple):
    """Write the parts of a revision into the ledger, then apply them. Of the wanted revision, the result is needed."""

    revision: Revision


class ListPods(NamedTuple):
    """List the pods of a revision: they explain why it is not available. The result is needed."""

    revision: Revision


class MoveRoute(NamedTuple):
    """Write the route into the ledger, then take a step towards a mix of its Services. The result is needed."""

    mix: Mix
    others: tuple[str, ...] = ()
    """Services of other revisions that exist."""
    models: tuple[str, ...] = ()
    """Names by which clients may call the model."""
    reachable: frozenset[str] = frozenset()
    """Services of the mix that have replicas which answer."""
    analysis: AnalysisSpec | None = None
    """Analysis that needs the numbers of these requests; None: nobody does."""
    leaving: frozenset[str] = frozenset()
    """Uids of parts that unfinished Teardowns name."""


class RunJob(NamedTuple):
    """Write the Job of a step into the ledger, then create it, and look for its answer. The result is needed."""

    job: StepJob


class AnnounceServing(NamedTuple):
    """Emit the Event that a revision serves."""

    revision: Revision


class AnnounceRollout(NamedTuple):
    """Emit the Event of a transition of a rollout."""

    revision: str
    decision: RolloutDecision


class TearDown(NamedTuple):
    """Create a Teardown of some parts."""

    reason: str
    parts: tuple[ObservedPart, ...]


class WriteStatus(NamedTuple):
    """The last step: write the status if it says something new, and reconcile again after a pause."""

    problem: EndpointProblem | None = None
    waiting_for: str = ""
    routed: Routed | None = None
    """None where there is no route, or it was not observed."""
    replacing: int = 0
    """Number of groups of former parts that are being torn down."""
    requeue_after: float | None = None
    experiments: tuple[ClaimedExperiment, ...] = ()
    """The claims of experiments, as far as they are met."""


EndpointStep: TypeAlias = (
    AddFinalizer
    | DryRun
    | BeginRevision
    | ApplyParts
    | ListPods
    | MoveRoute
    | RunJob
    | AnnounceServing
    | AnnounceRollout
    | TearDown
    | WriteStatus
)
