"""One reconcile of an endpoint that is not being deleted: observe, decide, execute, write the status.

`decide` says what is to be done; here it is done, and nothing is chosen. A part or a route is always in the ledger of
the status before it is made.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import structlog

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.endpoint_status import ClaimedExperiment
from pilotage.api.names import ENDPOINT_FINALIZER, ENDPOINTS, LABEL_ENDPOINT_UID, LABEL_REVISION, PROCESSES
from pilotage.controllers.caches import MADE_FROM_OURS, Caches
from pilotage.controllers.endpoint.apply_parts import PartApplier
from pilotage.controllers.endpoint.canary import Intents
from pilotage.controllers.endpoint.decide import decide, route_of
from pilotage.controllers.endpoint.experiments import CLAIMS_MAX, read_claims, refusals, step_claim, variant_spec
from pilotage.controllers.endpoint.judging import JobResult, StepJob, judged, needs_pods, not_made
from pilotage.controllers.endpoint.ledger import PartLedger, PartName, names_of
from pilotage.controllers.endpoint.model_reference import resolve
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import Revision, RevisionHistory, requested
from pilotage.controllers.endpoint.rolling import RolloutInputs
from pilotage.controllers.endpoint.status import Situation, next_status
from pilotage.controllers.endpoint.steps import (
    AddFinalizer,
    AnnounceRollout,
    AnnounceServing,
    AppliedParts,
    ApplyParts,
    BeginRevision,
    DryRun,
    EndpointStep,
    ListPods,
    MoveRoute,
    Observed,
    ObservedPart,
    RunJob,
    TearDown,
    WriteStatus,
)
from pilotage.controllers.endpoint.teardown_records import TeardownRecords
from pilotage.controllers.endpoint.variants import ExperimentInputs, RequestedVariant
from pilotage.controllers.proof import uids_of
from pilotage.controllers.routing import Routed, RouteTraits, Routing
from pilotage.kube import PODS, Client, Json, Object, ObjectKey, Resource, merge_patch
from pilotage.runtime.clock import utc_now
from pilotage.runtime.events import Recorder
from pilotage.runtime.store import Store
from pilotage.runtime.types import Result
from pilotage.serving import readiness
from pilotage.serving.parts import Capabilities, EndpointRef, Readiness
from pilotage.serving.placements.host import SILENT
from pilotage.serving.pod_problems import explained
from pilotage.serving.resources import SERVICES
from pilotage.traffic.routers import ROUTERS

_log = structlog.get_logger(__name__)

SILENT_SECONDS = 2.0
"""Pause while the agent of a Host has to be heard of: it renews its Lease every few seconds."""
WORSE = ("Aborting", "Aborted", "CapacityShort")
"""Transitions of a rollout that a person should know of."""
PARTS_AT_ONCE = 50
"""Number of parts after which other reconciles get the event loop: an endpoint may have a thousand."""


class Dependencies(NamedTuple):
    """Everything that a reconcile works with."""

    client: Client
    events: Recorder
    caches: Caches
    models: Store
    applier: PartApplier
    routing: Routing
    records: TeardownRecords
    capabilities: Callable[[], Capabilities]
    is_silent: Callable[[str], bool]
    experiments: Callable[[ObjectKey], Iterable[Object]]
    """The Experiments on an endpoint."""
    gateway_url: str = ""


class EndpointReconcile:
    """One reconcile. Raises ValueError for a history in the status that cannot be read."""

    def __init__(self, dependencies: Dependencies, obj: Object, spec: EndpointSpec, status: Json) -> None:
        """`spec` and `status` are those of the object, decoded."""
        self._with = dependencies
        self._obj = obj
        self._status = status
        self._ledger = PartLedger(status.get("ledger", []))
        made = uids_of(status.get("ledger", []))
        self._subject = EndpointRef(obj.meta.namespace, obj.meta.name, obj.meta.uid, spec, made)
        self._capabilities = dependencies.capabilities()
        self._history = RevisionHistory.read(
            status.get("history", []), self._subject, self._capabilities, status.get("rollout")
        )
        self._recorded = self._history.states
        self._silent = False

    async def run(self) -> Result | None:
        """Do what may be done now, and write how far it is."""
        observed = self._observe(await self._with.routing.canary_refusal(self._subject))
        while True:
            observed = observed._replace(recorded=self._recorded)
            decision = decide(self._subject, self._history, observed, utc_now())
            self._history = decision.history
            for step in decision.steps:
                if isinstance(step, WriteStatus):
                    return await self._write_findings(step, observed)
                observed = await self._execute(step, observed)
                await asyncio.sleep(0)  # others may have the event loop

    async def refuse(self, problem: EndpointProblem) -> Result | None:
        """Write that nothing can be done with the endpoint as it is."""
        observed = Observed(problem, self._capabilities, parts=self._parts())
        claimed = self._claimed_without_work()
        return await self._write_findings(
            WriteStatus(problem, problem.message, requeue_after=problem.retry_after, experiments=claimed),
            observed,
        )

    def _claimed_without_work(self) -> tuple[ClaimedExperiment, ...]:
        """The claims as they were; those that are over before anything was made for them may go, whatever the spec."""
        begun = {past.experiment for past in self._history.past}
        claims = read_claims(self._with.experiments(self._obj.key), begun)
        over = {each.uid: each.name for each in claims if not each.active and each.uid not in begun}
        gone = [ClaimedExperiment(name=name, uid=uid, phase="Gone") for uid, name in over.items()]
        before = sorted(self._claimed(), key=lambda each: each.uid not in begun)
        kept = [each for each in before if each.uid not in over]
        return (*gone, *kept)[: CLAIMS_MAX + 1]

    # Observe

    def _observe(self, canary_refusal: str) -> Observed:
        records = self._with.records
        under_way = records.under_way(self._subject)
        waits, blocked = records.waits(self._subject) if under_way else ("", "")
        return Observed(
            requested(self._subject, resolve(self._subject, self._with.models.get), self._capabilities, canary_refusal),
            self._capabilities,
            held=ENDPOINT_FINALIZER in self._obj.meta.finalizers,
            parts=self._parts(),
            leaving=records.leaving(self._subject),
            teardowns=under_way,
            teardowns_wait=waits,
            teardowns_blocked=blocked,
            rolling=self._sides(),
            experiments=self._experiments(),
        )

    def _claimed(self) -> tuple[ClaimedExperiment, ...]:
        """The claims of experiments, as the status has them."""
        return tuple(ClaimedExperiment.read(each) for each in self._status.get("experiments", []))

    def _experiments(self) -> ExperimentInputs:
        """The experiments on the endpoint, with the Models of their variants looked up."""
        step = step_claim(self._subject, self._history.under_way)
        begun = {past.experiment for past in self._history.past if past.state == "Variant"}
        claims = read_claims(self._with.experiments(self._obj.key), begun)
        claims += [step] if step is not None else []
        serving, router = self._history.serving, ROUTERS.get(self._subject.spec.route.kind)
        before = self._claimed()
        if not claims or serving is None or router is None:
            return ExperimentInputs(claims, before=before)
        spec = serving.subject.spec
        refused = refusals(claims, spec, self._history.past, router)
        asked: dict[tuple[str, str], RequestedVariant] = {}
        for claim in claims:
            for each in claim.spec.variants if claim.active and claim.uid not in refused else ():
                variant = variant_spec(spec, each, self._history.past)
                subject = self._subject._replace(spec=variant)
                model = resolve(subject, self._with.models.get)
                asked[claim.uid, each.name] = RequestedVariant(variant, requested(subject, model, self._capabilities))
        return ExperimentInputs(claims, refused, asked, before, self._with.routing.mix(self._subject))

    def _sides(self) -> RolloutInputs:
        """Everything about the sides of a rollout in steps but their readiness."""
        intents = Intents.read(self._obj.meta.annotations)
        if self._subject.spec.strategy.type != "Canary" and self._history.rollout is None:
            return RolloutInputs(intents=intents)
        revisions = Counter(
            seen.object.meta.labels.get(LABEL_REVISION, "")
            for seen in self._with.caches.parts_of(self._subject)
            if seen.resource in (PODS, PROCESSES)
        )
        existing = {each.number: revisions[str(each.number)] for each in self._history.revisions}
        return RolloutInputs(existing=existing, mix=self._with.routing.mix(self._subject), intents=intents)

    def _parts(self) -> tuple[ObservedPart, ...]:
        """All parts made for it by us, and not from them by others, whatever owners somebody has written on them."""
        caches, subject = self._with.caches, self._subject
        gone = self._with.records.proven_gone(subject)  # a cache may lag behind the receipt
        return tuple(
            ObservedPart(seen.resource, meta.name, meta.uid, meta.labels.get(LABEL_REVISION, ""))
            for seen in caches.labelled(subject.namespace, subject.uid)
            if seen.resource not in MADE_FROM_OURS and caches.seals.is_part(subject, seen.resource, seen.object)
            for meta in (seen.object.meta,)
            if meta.uid not in gone
        )

    def _find(self, resource: Resource, name: str) -> Object | None:
        return self._with.caches.part(self._subject, resource, name)

    def _readiness(self) -> Mapping[int, Readiness]:
        """Readiness of the revisions that are wanted, that serve, and of variants, by number."""
        both = (self._history.wanted, self._history.serving)
        found = {each.number: each for each in (*both, *self._history.variants()) if each is not None}
        return {number: readiness(each.subject, number, self._find_known) for number, each in found.items()}

    def _find_known(self, resource: Resource, name: str) -> Object | None:
        """A part; a process that is ready by the last words of an agent that was not heard of since is `SILENT`.

        After a reboot it does not run, and nobody has said so yet.
        """
        found = self._find(resource, name)
        if resource != PROCESSES or found is None or found.get("status", "ready") is not True:
            return found
        host = str(found.get("spec", "host") or "")
        if not self._with.is_silent(host):
            return found
        self._silent = True
        body = found.to_dict()
        said = f"the agent of host/{host} has not been heard of"
        return Object.from_dict(body | {"status": body["status"] | {"phase": SILENT, "ready": False, "message": said}})

    # Execute

    async def _execute(self, step: EndpointStep, observed: Observed) -> Observed:
        """Do one step; returns what is observed then."""
        match step:
            case AddFinalizer():
                await self._hold()
                return observed._replace(held=True)
            case DryRun(revision):
                return await self._dry_run(revision, observed)
            case BeginRevision(revision):
                self._ledger.add([*names_of(revision.parts), *self._route()])
                await self._replace(self._next_status(WriteStatus(experiments=self._claimed()), observed))
            case ApplyParts(revision):
                return await self._apply(revision, observed)
            case ListPods(revision):
                return await self._explain(revision, observed)
            case MoveRoute():
                return observed._replace(routed=await self._move(step))
            case RunJob(job):
                return observed._replace(judged=await self._judge(job))
            case AnnounceServing(revision):
                self._with.events.normal(self._obj, "Serving", f"{revision.name} serves.")
            case AnnounceRollout(revision, decision):
                text = f"{revision}: {decision.text or decision.what}"
                send = self._with.events.warning if decision.what in WORSE else self._with.events.normal
                send(self._obj, f"Rollout{decision.what}", text)
            case TearDown(reason, parts):
                deletion = self._subject.spec.deletion.written()
                await self._with.records.tear_down(self._obj, reason, parts, deletion)
            case WriteStatus():
                raise AssertionError("the last step is not executed here")
        return observed

    async def _hold(self) -> None:
        meta = self._obj.meta
        metadata = {"uid": meta.uid, "finalizers": [*meta.finalizers, ENDPOINT_FINALIZER]}
        patch = merge_patch({"metadata": metadata}, resource_version=meta.resource_version)
        self._obj = await self._with.client.patch(ENDPOINTS, self._obj.key, patch)

    async def _dry_run(self, revision: Revision, observed: Observed) -> Observed:
        try:
            for part in revision.parts:
                if part.revision is not None:
                    await self._with.applier.check(self._subject, part)
        except EndpointProblem as problem:
            return observed._replace(requested=problem)
        return observed._replace(accepted=True)

    async def _record(self, parts: Iterable[PartName]) -> None:
        """Write parts into the ledger of the status, before they are made."""
        if self._ledger.add(parts):
            await self._write({"ledger": self._ledger.entries(), **self._history.written()})

    async def _apply(self, revision: Revision, observed: Observed) -> Observed:
        """Apply all parts of a revision; one that fails does not keep the others from it."""
        await self._record(names_of(revision.parts))
        problems = []
        for number, part in enumerate(revision.parts, 1):
            if not number % PARTS_AT_ONCE:
                await asyncio.sleep(0)
            try:
                made = await self._with.applier.apply(self._subject, part)
            except EndpointProblem as problem:
                problems.append(problem)
            else:
                self._ledger.made(PartName(part.resource, part.name, part.revision), made.meta.uid)
        if self._history.wanted is None or revision.number != self._history.wanted.number:
            if problems:
                _log.warning("a part of the serving revision cannot be kept up", error=problems[0].message)
            return observed
        services = {each.backend[0] for each in self._history.revisions}
        existing = frozenset(service for service in services if self._find(SERVICES, service) is not None)
        return observed._replace(applied=AppliedParts(problems[0] if problems else None, self._readiness(), existing))

    async def _explain(self, revision: Revision, observed: Observed) -> Observed:
        assert observed.applied is not None
        selector = f"{LABEL_ENDPOINT_UID}={self._subject.uid},{LABEL_REVISION}={revision.number}"
        pods = await self._with.client.list(PODS, self._subject.namespace, labels=selector)
        ready = dict(observed.applied.readiness)
        ready[revision.number] = explained(ready[revision.number], pods.items)
        return observed._replace(pods_listed=True, applied=observed.applied._replace(readiness=ready))

    async def _move(self, step: MoveRoute) -> Routed | EndpointProblem:
        routing = self._with.routing
        parts = [*self._route(), *(PartName(*each) for each in routing.parts(self._subject, step.mix))]
        await self._record(parts)
        try:
            warmup = step.analysis.warmup_seconds if step.analysis is not None else 0
            traits = RouteTraits(step.models, step.analysis is not None, warmup)
            routed = await routing.move(
                self._subject, step.mix, step.others, traits, reachable=step.reachable, leaving=step.leaving
            )
        except EndpointProblem as problem:
            return problem
        for part in parts:
            if (made := self._find(part.resource, part.name)) is not None:
                self._ledger.made(part, made.meta.uid)
        return routed

    async def _judge(self, job: StepJob) -> JobResult:
        """Create the Job of a step, if it is not there, and see what it says."""
        part = job.manifest(self._with.gateway_url)
        await self._record(names_of([part]))
        try:
            made = await self._with.applier.apply(self._subject, part)
        except EndpointProblem as problem:
            return not_made(job.number, problem)
        self._ledger.made(PartName(part.resource, part.name, part.revision), made.meta.uid)
        now, pods = utc_now(), list[Object]()
        if needs_pods(made, now):
            selector = f"{LABEL_ENDPOINT_UID}={self._subject.uid},{LABEL_REVISION}={job.pod_label}"
            pods = (await self._with.client.list(PODS, self._subject.namespace, labels=selector)).items
        return judged(job.number, made, pods, now)

    def _route(self) -> list[PartName]:
        route = route_of(self._subject)
        return [route] if route is not None else []

    # Write the status

    async def _write_findings(self, step: WriteStatus, observed: Observed) -> Result | None:
        """Write the status if it says something new."""
        old, status = self._status, self._next_status(step, observed)
        if status != old and not _only_tells_uids(old, status):
            await self._replace(status)
        again = [each for each in (step.requeue_after, SILENT_SECONDS if self._silent else None) if each is not None]
        return Result(requeue_after=min(again)) if again else None

    def _next_status(self, step: WriteStatus, observed: Observed) -> Json:
        """The whole status as it should be."""
        wanted, serving = self._history.wanted, self._history.serving
        ready = observed.applied.readiness if observed.applied is not None else self._readiness()
        situation = Situation(
            wanted,
            serving,
            ready.get(wanted.number) if wanted is not None else None,
            ready.get(serving.number) if serving is not None else None,
            step.routed,
            step.problem,
            step.waiting_for,
            step.replacing,
            self._with.gateway_url,
            self._history.served,
        )
        ledger = self._ledger.present(
            self._with.records.proven_gone(self._subject),
            {(part.resource.kind, part.name) for part in observed.parts},
            {
                each.number
                for each in (wanted, serving, *self._history.kept(), *self._history.variants())
                if each is not None
            },
        )
        spec = self._subject.spec
        made = next_status(self._obj, self._status, spec, situation, self._history, ledger, utc_now())
        claimed = [each.written() for each in step.experiments]
        return made | {"experiments": claimed} if claimed else made

    async def _replace(self, status: Json) -> None:
        await self._write(status | {name: None for name in self._status if name not in status})

    async def _write(self, status: Json) -> None:
        made = {name: _without_former(self._status.get(name), value) for name, value in status.items()}
        patch = merge_patch({"metadata": {"uid": self._obj.meta.uid}, "status": made})
        self._obj = await self._with.client.patch(ENDPOINTS, self._obj.key, patch, subresource="status")
        self._status = self._obj.get("status", default={})
        self._recorded = self._history.states


def _without_former(old: Any, new: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """A value for a merge patch, which also removes fields that only the former value has."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    made = {name: _without_former(old.get(name), value) for name, value in new.items()}
    return made | {name: None for name in old if name not in new}


def _only_tells_uids(old: Json, new: Json) -> bool:
    """Whether two statuses differ in nothing but uids of parts that have just been made.

    They are not worth a write of their own: the next one has them, and a part without one is known by its seal.
    """
    before, after = old.get("ledger", []), new["ledger"]
    if len(before) != len(after) or old.get("phase") == "Serving":
        return False
    known = [entry | {"uid": last["uid"] or entry["uid"]} for last, entry in zip(after, before, strict=True)]
    return old | {"ledger": known} == new and all(
        not entry["uid"] or entry["uid"] == last["uid"] for last, entry in zip(after, before, strict=True)
    )
