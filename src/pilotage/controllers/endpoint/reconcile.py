"""One look at one endpoint that stays, and what follows from it."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

import structlog

from pilotage.api.endpoint import PastRevision
from pilotage.api.names import ENDPOINT_FINALIZER, ENDPOINTS, LABEL_ENDPOINT_UID, LABEL_REVISION
from pilotage.controllers.caches import MADE_FROM_OURS, PODS, Seen
from pilotage.controllers.endpoint import revisions
from pilotage.controllers.endpoint.apply_parts import EndpointProblem, ledger_entry
from pilotage.controllers.endpoint.model_reference import resolve
from pilotage.controllers.endpoint.status import Findings, next_status
from pilotage.controllers.proof import uids_of
from pilotage.kube import merge_patch
from pilotage.kube.wire import parse_time
from pilotage.runtime import Result
from pilotage.runtime.clock import utc_now
from pilotage.serving import backend, fingerprint, problems, readiness, wanted_parts
from pilotage.serving.parts import EndpointRef
from pilotage.serving.pods import explained
from pilotage.serving.resources import SERVICES
from pilotage.traffic.contract import Backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pilotage.api.endpoint import EndpointSpec
    from pilotage.controllers.caches import Caches
    from pilotage.controllers.endpoint.apply_parts import PartApplier
    from pilotage.controllers.endpoint.revisions import Revision
    from pilotage.controllers.endpoint.teardown_records import TeardownRecords
    from pilotage.controllers.routing import Routed, Routing
    from pilotage.kube import Client, Json, Object, Resource
    from pilotage.runtime.events import Recorder
    from pilotage.runtime.store import Store
    from pilotage.serving.parts import Capabilities, DesiredObject, Readiness

_log = structlog.get_logger(__name__)

PODS_AFTER = dt.timedelta(seconds=15)
"""A revision that is not available by then has its pods looked at: they say why."""
PODS_SECONDS = 30.0
BREATH_PARTS = 50
"""So many parts are looked at in one go: others wait for the loop meanwhile, and an endpoint may have a thousand."""


class Tools(NamedTuple):
    """What a pass works with."""

    client: Client
    events: Recorder
    caches: Caches
    models: Store
    maker: PartApplier
    routing: Routing
    departures: TeardownRecords
    capabilities: Callable[[], Capabilities]
    gateway_url: str = ""


class Pass:
    """See the module."""

    def __init__(self, tools: Tools, obj: Object, spec: EndpointSpec, status: Json) -> None:
        """`spec` and `status` are those of the object, decoded."""
        self.tools = tools
        self.obj = obj
        self.spec = spec
        self.status = status
        made = uids_of(status.get("ledger", []))
        self.subject = EndpointRef(obj.meta.namespace, obj.meta.name, obj.meta.uid, spec, made)
        self.capabilities = tools.capabilities()
        self.ledger: dict[tuple[str, str], Json] = {
            (each["kind"], each["name"]): each for each in status.get("ledger", [])
        }
        self.again: list[float] = []
        self._ready: dict[int, Readiness] = {}
        self._wanted: dict[int, list[DesiredObject]] = {}
        self._remember([PastRevision.read(each) for each in status.get("history", [])])

    async def run(self) -> Result | None:
        """Do what may be done now, and say how far it is."""
        try:
            findings = await self._advance()
        except EndpointProblem as trouble:
            findings = self._findings(trouble)
        return await self._report(findings)

    async def refuse(self, trouble: EndpointProblem) -> Result | None:
        """Say that nothing can be done with it as it is."""
        return await self._report(self._findings(trouble))

    async def _advance(self) -> Findings:
        await self._hold()
        trouble = await self._choose()
        wanted, serving = self.wanted, self.serving
        if wanted is None:
            return self._findings(trouble)
        if serving is not None and serving.number != wanted.number:
            if self.spec.strategy.type == "Recreate":
                if not await self._cleared(wanted):
                    return self._findings(trouble)._replace(waiting_for="the former revision is torn down first")
                self._remember(revisions.departed(self.history))
            else:
                await self._keep_up(serving)
        try:
            await self._make(wanted)
        except EndpointProblem as error:
            trouble = trouble or error
        await _breathe()
        await self._look_at_pods(wanted)
        routed = await self._route()
        await _breathe()
        replacing = await self._clear_away(routed)
        await _breathe()
        return self._findings(trouble, routed)._replace(replacing=replacing)

    async def _hold(self) -> None:
        """Nothing is made before it is sure that it will be taken down."""
        meta = self.obj.meta
        if ENDPOINT_FINALIZER not in meta.finalizers:
            metadata = {"uid": meta.uid, "finalizers": [*meta.finalizers, ENDPOINT_FINALIZER]}
            patch = merge_patch({"metadata": metadata}, resource_version=meta.resource_version)
            self.obj = await self.tools.client.patch(ENDPOINTS, self.obj.key, patch)

    # Revisions

    def _remember(self, history: list[PastRevision]) -> None:
        """What was, which revision shall serve, and which one does."""
        self.history = history
        self.revisions = revisions.of_history(history, self.subject)
        self.wanted = revisions.wanted(self.revisions)
        self.serving = revisions.serving(self.revisions)

    def _parts_of(self, revision: Revision) -> list[DesiredObject]:
        """All objects of a revision, as they should be."""
        if revision.number not in self._wanted:
            self._wanted[revision.number] = wanted_parts(
                revision.subject, revision.number, revision.model, self.capabilities
            )
        return self._wanted[revision.number]

    async def _choose(self) -> EndpointProblem | None:
        """Begin a new revision if the spec asks for one and the server would take it; else say why not."""
        try:
            model = resolve(self.tools.models, self.obj, self.spec)
            if wrong := problems(self.subject, model, self.capabilities):
                raise EndpointProblem("InvalidSpec", " ".join(wrong))
            mark = fingerprint(self.spec, model)
            if (last := self.wanted) is not None and last.fingerprint == mark:
                return None
            history = revisions.begun(self.history, self.subject, model, mark, utc_now())
            parts = wanted_parts(self.subject, history[-1].number, model, self.capabilities)
            if self.serving is not None:
                for part in parts:
                    if part.revision is not None:
                        await self.tools.maker.check(self.subject, part)
        except EndpointProblem as trouble:
            return trouble
        self._remember(history)
        await self._note([*parts, *self._route_by_name()], begins=True)
        return None

    async def _note(self, parts: Iterable[DesiredObject], *, begins: bool = False) -> None:
        """Write down what will be made, before it is."""
        new = {(part.resource.kind, part.name): ledger_entry(part) for part in parts}
        missing = {key: entry for key, entry in new.items() if key not in self.ledger}
        if missing or begins:
            self.ledger |= missing
            status = {
                "phase": "Redeploying" if self.serving is not None else "Deploying",
                "ledger": [*self.ledger.values()],
                "history": [past.written() for past in self.history],
            }
            self.obj = await self._write_status(status)
            self.status = self.obj.get("status", default={})

    async def _make(self, revision: Revision) -> None:
        """All parts of a revision; one that cannot be made does not keep the others from it."""
        parts = self._parts_of(revision)
        await self._note(parts)
        troubles = []
        for number, part in enumerate(parts, 1):
            if not number % BREATH_PARTS:
                await _breathe()
            try:
                made = await self.tools.maker.make(self.subject, part)
            except EndpointProblem as trouble:
                troubles.append(trouble)
            else:
                self.ledger[part.resource.kind, part.name] = ledger_entry(part, made.meta.uid)
        if troubles:
            raise troubles[0]

    async def _keep_up(self, serving: Revision) -> None:
        """What serves stays as it should be while another revision comes up."""
        try:
            await self._make(serving)
        except EndpointProblem as trouble:
            _log.warning("a part of the revision that serves cannot be kept up", error=trouble.message)

    def _readiness(self, revision: Revision | None) -> Readiness | None:
        if revision is None:
            return None
        if revision.number not in self._ready:
            self._ready[revision.number] = readiness(revision.subject, revision.number, self._find)
        return self._ready[revision.number]

    async def _look_at_pods(self, wanted: Revision) -> None:
        """Where a revision does not become available, its pods say why."""
        if wanted.subject.spec.placement.kind == "Host":
            return  # there are none, and the processes have said it
        ready = self._readiness(wanted)
        if ready is None or ready.available or not ready.desired:
            return
        self.again.append(PODS_SECONDS)
        if utc_now() - parse_time(self.history[-1].created) < PODS_AFTER:
            return
        selector = f"{LABEL_ENDPOINT_UID}={self.subject.uid},{LABEL_REVISION}={wanted.number}"
        pods = await self.tools.client.list(PODS, self.subject.namespace, labels=selector)
        self._ready[wanted.number] = explained(ready, pods.items)

    def _find(self, resource: Resource, name: str) -> Object | None:
        return self.tools.caches.part(self.subject, resource, name)

    # Traffic

    async def _route(self) -> Routed | None:
        """Move traffic to the wanted revision once it can take it; returns how far that is."""
        wanted, serving = self.wanted, self.serving
        assert wanted is not None
        ready = self._readiness(wanted)
        arrived = serving is not None and serving.number == wanted.number
        target = wanted if arrived or (ready is not None and ready.available) else serving
        if target is None:
            return None
        if self.spec.route.kind == "None":
            if target is wanted and not arrived:
                self._arrive(wanted)
            return None
        services = {each.number: backend(each.subject, each.number) for each in self.revisions}
        name, port = services[target.number]
        goal = Backend(name, port)
        others = {service for number, (service, _) in services.items() if number != target.number}
        running = [service for service in others if self._find(SERVICES, service) is not None]
        part = self.tools.routing.part(self.subject, [goal])
        await self._note([part])
        now = self._readiness(target)
        # While one revision follows another, clients may call the model as either of them does.
        models = sorted({each.model.name for each in (serving, wanted) if each is not None})
        has_replicas = now is not None and now.ready > 0
        routed = await self.tools.routing.move(self.subject, goal, running, models, ready=has_replicas)
        if (made := self.tools.routing.current(self.subject)) is not None:
            self.ledger[part.resource.kind, part.name] = ledger_entry(part, made.meta.uid)
        if routed.again is not None:
            self.again.append(routed.again)
        if routed.done and target is wanted and not arrived:
            self._arrive(wanted)
        return routed

    def _route_by_name(self) -> list[DesiredObject]:
        """The route, whatever it points at; none where there is none, or nobody serves its kind."""
        if self.spec.route.kind == "None":
            return []
        try:
            return [self.tools.routing.part(self.subject, [Backend("any", 1)])]
        except EndpointProblem:
            return []  # said when it is to be made

    def _arrive(self, wanted: Revision) -> None:
        self._remember(revisions.arrived(self.history, wanted.number))
        self.tools.events.normal(self.obj, "Serving", f"{self.subject.name}-{wanted.number} serves.")

    # What is not needed any more

    async def _cleared(self, wanted: Revision) -> bool:
        """Take down all that is not the wanted revision's, its route included; whether it is gone."""
        return await self._replace("Replaced", [seen for seen in self._parts() if not _is_of(seen, wanted.number)])

    async def _clear_away(self, routed: Routed | None) -> int:
        """Take down what nothing points at any more: former revisions, routes, autoscalers; how much is left."""
        wanted, serving = self.wanted, self.serving
        assert wanted is not None
        if self.spec.route.kind != "None" and (routed is None or not routed.done):
            return self.tools.departures.under_way(self.subject)
        keep = (
            {wanted.number} if serving is None or serving.number == wanted.number else {wanted.number, serving.number}
        )
        named = routed.services if routed is not None else frozenset[str]()
        keep |= {each.number for each in self.revisions if backend(each.subject, each.number)[0] in named}
        current = {
            (part.resource, part.name)
            for each in self.revisions
            if each.number in keep
            for part in self._parts_of(each)
        }
        current |= {(part.resource, part.name) for part in self._route_by_name()}
        by_revision: dict[str, list[Seen]] = {}
        for seen in self._parts():
            if (seen.resource, seen.object.meta.name) not in current:
                by_revision.setdefault(seen.object.meta.labels.get(LABEL_REVISION, ""), []).append(seen)
        written = {each["number"]: each.get("state") for each in self.status.get("history", [])}
        if by_revision and written != {past.number: past.state for past in self.history}:
            # First it is written down which one serves: who forgot that would make the other one anew while it goes.
            self.again.append(0.0)
            return len(by_revision)
        for revision, parts in by_revision.items():
            superseded = revision and revision not in map(str, keep)
            await self._replace("Superseded" if superseded else "Replaced", parts)
        return max(len(by_revision), self.tools.departures.under_way(self.subject))

    def _parts(self) -> list[Seen]:
        """All that was made for it by us, and not from it by others, whatever owners somebody has written on it."""
        caches = self.tools.caches
        return [
            seen
            for seen in caches.labelled(self.subject.namespace, self.subject.uid)
            if seen.resource not in MADE_FROM_OURS and caches.seals.is_part(self.subject, seen.resource, seen.object)
        ]

    async def _replace(self, reason: str, parts: list[Seen]) -> bool:
        deletion = self.spec.deletion.written()
        return await self.tools.departures.replace(self.obj, reason, parts, deletion)

    # What others see

    def _findings(self, trouble: EndpointProblem | None = None, routed: Routed | None = None) -> Findings:
        wanted, serving = self.wanted, self.serving
        waiting = ""
        if trouble is not None:
            waiting = trouble.message
        elif routed is not None and not routed.done:
            waiting = routed.text
        elif wanted is not None and wanted.subject.spec.placement.kind == "Host" and wanted is not serving:
            ready = self._readiness(wanted)  # of processes, an agent says itself how far they are
            waiting = ready.message if ready is not None and not ready.available else ""
        return Findings(
            wanted,
            serving,
            self._readiness(wanted),
            self._readiness(serving),
            routed,
            trouble,
            waiting,
            gateway_url=self.tools.gateway_url,
        )

    async def _report(self, findings: Findings) -> Result | None:
        """Write the status if it says something new."""
        old = self.status
        status = next_status(self.obj, old, self.spec, findings, self.history, self._present_ledger(), utc_now())
        if status != old:
            await self._write_status(status | {name: None for name in old if name not in status})
        if findings.trouble is not None:
            self.again.append(findings.trouble.again)
        return Result(requeue_after=min(self.again)) if self.again else None

    def _present_ledger(self) -> list[Json]:
        """What was made, or may have been, and is not proven gone."""
        gone = self.tools.departures.proven_gone(self.subject)
        kept = {each.number for each in (self.wanted, self.serving) if each is not None}
        there = {(seen.resource.kind, seen.object.meta.name) for seen in self._parts()}
        return [
            entry
            for key, entry in self.ledger.items()
            if entry["uid"] not in gone and (entry["uid"] or key in there or entry.get("revision") in {None, *kept})
        ]

    async def _write_status(self, status: Json) -> Object:
        patch = merge_patch({"metadata": {"uid": self.obj.meta.uid}, "status": status})
        return await self.tools.client.patch(ENDPOINTS, self.obj.key, patch, subresource="status")


async def _breathe() -> None:
    """Let others have the event loop for a moment."""
    await asyncio.sleep(0)


def _is_of(seen: Seen, number: int) -> bool:
    return seen.object.meta.labels.get(LABEL_REVISION) == str(number) or seen.resource.kind == "PersistentVolumeClaim"
