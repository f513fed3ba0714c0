"""The controller of `Experiment`: it decides when one ends, and writes its status and its finalizer, nothing else.

Whatever is made, routed and taken down for it is the work of the endpoint's controller, which is woken by each change
of an Experiment; the words of that one, in the endpoint's status, wake this one.
"""

from collections.abc import Callable, Mapping

import structlog

from pilotage.analysis.metrics import problems
from pilotage.analysis.verdict import Side, judge
from pilotage.api.analysis import SERVING, AnalysisSpec, Verdict
from pilotage.api.base import InvalidField
from pilotage.api.endpoint_status import ClaimedExperiment, ClaimedVariant, EndpointStatus
from pilotage.api.experiment import ExperimentSpec, ExperimentStatus, VariantStatus
from pilotage.api.measured import Stratum
from pilotage.api.names import EXPERIMENT_FINALIZER, EXPERIMENTS, GATEWAY_ROUTES
from pilotage.controllers.caches import Caches
from pilotage.controllers.experiment.decide import (
    ExperimentDecision,
    ExperimentState,
    ObservedEndpoint,
    claimed,
    decide,
    summary,
    worst,
)
from pilotage.kube import Absent, Client, Json, Object, ObjectKey, Propagation, merge_patch, without_finalizer
from pilotage.kube.wire import format_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.conditions import clipped, set_condition
from pilotage.runtime.controller import Context
from pilotage.runtime.store import Store
from pilotage.runtime.types import Reconcile, Result, TerminalError

_log = structlog.get_logger(__name__)

BY_ENDPOINT = "endpoint"


def by_endpoint(obj: Object) -> tuple[str, ...]:
    """Index Experiments by their endpoint."""
    name = obj.get("spec", "endpoint", "name")
    return (f"{obj.meta.namespace}/{name}",) if isinstance(name, str) else ()


def keys_of_endpoint(store: Store, endpoint: Object) -> list[ObjectKey]:
    """Map an endpoint, or a route called like it, to the Experiments on it."""
    return [each.key for each in store.indexed(BY_ENDPOINT, f"{endpoint.meta.namespace}/{endpoint.meta.name}")]


def endpoint_of_experiment(experiment: Object) -> list[ObjectKey]:
    """Map an Experiment to its endpoint."""
    name = experiment.get("spec", "endpoint", "name")
    return [ObjectKey(experiment.meta.namespace, name)] if isinstance(name, str) else []


def experiments(endpoints: Store, caches: Caches) -> Callable[[Context], Reconcile]:
    """The factory of the controller, for `Manager.add`."""

    def make(context: Context) -> Reconcile:
        return ExperimentController(context, endpoints, caches).reconcile

    return make


class ExperimentController:
    """Reconciles Experiments."""

    def __init__(self, context: Context, endpoints: Store, caches: Caches) -> None:
        self._client: Client = context.client
        self._store = context.store
        self._events = context.events
        self._endpoints = endpoints
        self._caches = caches

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile one Experiment."""
        obj = self._store.get(key)
        if obj is None or (obj.meta.terminating and EXPERIMENT_FINALIZER not in obj.meta.finalizers):
            return None
        body = obj.to_dict()
        try:
            spec = ExperimentSpec.read(body.get("spec"))
        except InvalidField as error:
            return await self._refuse(obj, f"{error.below('spec')}: {error.reason}")
        try:
            old = ExperimentStatus.read(body.get("status"))
        except InvalidField as error:
            raise TerminalError(
                "UnreadableStatus", clipped(f"{error.below('status')}: {error.reason}", 1000)
            ) from error
        if not obj.meta.terminating and EXPERIMENT_FINALIZER not in obj.meta.finalizers:
            obj = await self._hold(obj)
        endpoint = self._endpoint(key.namespace, spec.endpoint.name, obj.meta.uid)
        claim = endpoint.claim if endpoint is not None else None
        verdicts = self._verdicts(spec, old, claim, key.namespace)
        state = ExperimentState(obj.meta.creation_timestamp, obj.meta.terminating, spec, old)
        decision = decide(state, endpoint, verdicts, utc_now())
        obj = await self._write(obj, spec, old, decision, claim, verdicts)
        if decision.is_over and obj.meta.terminating:
            await self._release(obj)
            return None
        if decision.expired and not obj.meta.terminating:
            left = await self._client.delete(EXPERIMENTS, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)
            if left is not None:  # a reconcile is not woken by its own writes
                await self._release(left)
        return Result(requeue_after=decision.requeue_after) if decision.requeue_after is not None else None

    def _endpoint(self, namespace: str, name: str, uid: str) -> ObservedEndpoint | None:
        found = self._endpoints.get(ObjectKey(namespace, name))
        if found is None:
            return None
        status = EndpointStatus.read(found.to_dict().get("status"))
        claim = next((each for each in status.experiments if each.uid == uid), None)
        return ObservedEndpoint(found.meta.terminating, claim)

    def _verdicts(
        self, spec: ExperimentSpec, old: ExperimentStatus, claim: ClaimedExperiment | None, namespace: str
    ) -> Mapping[str, Verdict]:
        """The verdict on each variant with a share. Once the experiment ends, those of its last moment stay."""
        before = {each.name: each.verdict for each in old.variants if each.verdict is not None}
        if claim is None or old.reason is not None or claim.phase != "Running":
            return before
        strata = self._measured(ObjectKey(namespace, spec.endpoint.name))
        analysis = spec.analysis or AnalysisSpec(on_worse="Report")
        other = _other_side(claim, analysis.against)
        if other is None or not strata or problems(analysis):
            return before
        now = format_time(utc_now())
        return before | {
            each.name: _as_before(before.get(each.name), judge(analysis, _side(each), _side(other), strata, {}, now))
            for each in claim.variants
            if each.share.wanted and each.name != other.name and _has_weight(spec, each.name)
        }

    def _measured(self, key: ObjectKey) -> list[Stratum]:
        route = self._caches.get(GATEWAY_ROUTES, key)
        written = route.get("status", "measured", default=[]) if route is not None else []
        try:
            return [Stratum.read(each) for each in written]
        except InvalidField as error:
            _log.warning("measurements of a route cannot be read", route=str(key), error=str(error))
            return []

    async def _hold(self, obj: Object) -> Object:
        metadata = {"uid": obj.meta.uid, "finalizers": [*obj.meta.finalizers, EXPERIMENT_FINALIZER]}
        patch = merge_patch({"metadata": metadata}, resource_version=obj.meta.resource_version)
        return await self._client.patch(EXPERIMENTS, obj.key, patch)

    async def _refuse(self, obj: Object, text: str) -> Result | None:
        """Write that the spec cannot be read. Nothing was made for it by this spec, and its finalizer may go."""
        status: Json = obj.to_dict().get("status", {})
        conditions = _accepted(status.get("conditions", []), obj, "InvalidSpec", text)
        if conditions is not None:
            await self._patch(obj, status | {"phase": "Pending", "conditions": conditions, "waitingFor": clipped(text)})
        if obj.meta.terminating:
            await self._release(obj)
        return None

    async def _release(self, obj: Object) -> None:
        patch = without_finalizer(obj, EXPERIMENT_FINALIZER)
        if patch is not None:
            await self._client.patch(EXPERIMENTS, obj.key, patch)

    async def _write(
        self,
        obj: Object,
        spec: ExperimentSpec,
        old: ExperimentStatus,
        decision: ExperimentDecision,
        claim: ClaimedExperiment | None,
        verdicts: Mapping[str, Verdict],
    ) -> Object:
        """Write the status if it says something new, and tell a change of the phase in an Event."""
        before: Json = obj.to_dict().get("status", {})
        status = _status(obj, spec, decision, claim, verdicts, before)
        if status == before:
            return obj
        written = await self._patch(obj, status | {name: None for name in before if name not in status})
        if decision.phase != old.phase and decision.phase != "Pending":
            said = f"{decision.phase}{f' ({decision.reason})' if decision.reason else ''}: {status['summary']}."
            tell = self._events.warning if decision.reason in ("Worse", "NotStarted", "VariantLost") else None
            (tell or self._events.normal)(obj, f"Experiment{decision.phase}", said)
        return written

    async def _patch(self, obj: Object, status: Json) -> Object:
        patch = merge_patch({"metadata": {"uid": obj.meta.uid}, "status": status})
        try:
            return await self._client.patch(EXPERIMENTS, obj.key, patch, subresource="status")
        except Absent:
            return obj  # it has gone meanwhile, and its end needs no status


def _status(
    obj: Object,
    spec: ExperimentSpec,
    decision: ExperimentDecision,
    claim: ClaimedExperiment | None,
    verdicts: Mapping[str, Verdict],
    before: Json,
) -> Json:
    """The whole status as it should be."""
    made = ExperimentStatus(
        phase=decision.phase,
        reason=decision.reason,
        observed_generation=obj.meta.generation,
        accepted=decision.accepted,
        started=decision.started,
        until=decision.until,
        ended=decision.ended,
        lost_since=decision.lost_since,
        summary=summary(spec.variants),
        variants=[_variant(claimed(claim, each.name), verdicts.get(each.name), spec) for each in spec.variants],
        verdict=worst(verdicts),
        waiting_for=clipped(decision.waiting_for) or None,
    ).written()
    refused = claim is not None and claim.phase == "Refused"
    reason, text = ("Refused", claim.message) if refused and claim is not None else ("", "")
    conditions = _accepted(before.get("conditions", []), obj, reason, text)
    made["conditions"] = before.get("conditions", []) if conditions is None else conditions
    return made


def _accepted(conditions: list[Json], obj: Object, reason: str, text: str) -> list[Json] | None:
    return set_condition(
        conditions,
        "Accepted",
        status=not reason,
        reason=reason or "AsAsked",
        message=text,
        generation=obj.meta.generation,
        now=utc_now(),
    )


def _variant(each: ClaimedVariant, verdict: Verdict | None, spec: ExperimentSpec) -> VariantStatus:
    return VariantStatus(
        name=each.name,
        revision=f"{spec.endpoint.name}-{each.revision}" if each.revision is not None else None,
        replicas=each.replicas,
        weight=each.share,
        in_flight=each.in_flight,
        verdict=verdict,
    )


def _other_side(claim: ClaimedExperiment, against: str) -> ClaimedVariant | None:
    if against == SERVING:
        return claim.serving
    return next((each for each in claim.variants if each.name == against), None)


def _has_weight(spec: ExperimentSpec, name: str) -> bool:
    return any(each.name == name and each.mirror is None for each in spec.variants)


def _side(each: ClaimedVariant) -> Side:
    return Side(each.name, each.service, each.replicas.ready)


def _as_before(before: Verdict | None, now: Verdict) -> Verdict:
    """The verdict; the one before where nothing but its time is new, so that it is not written again."""
    if before is None:
        return now
    return before if {**before.written(), "at": ""} == {**now.written(), "at": ""} else now
