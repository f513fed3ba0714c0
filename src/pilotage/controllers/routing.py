"""The route of an endpoint: created when a revision can take traffic, moved through weight 0, proven where possible."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from pilotage.controllers.caches import Caches
from pilotage.controllers.endpoint.apply_parts import PartApplier
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.kube import Absent, ApiError, Client, Json, Object, ObjectKey
from pilotage.runtime.clock import monotonic
from pilotage.serving.drift import same
from pilotage.serving.parts import DesiredObject, EndpointRef, labels
from pilotage.serving.resources import SERVICES
from pilotage.traffic.contract import Backend, Programming, ProxyObserver, RouteStatus, combined
from pilotage.traffic.drain import TrafficWait
from pilotage.traffic.routers import ROUTERS, Router, RouteRequest
from pilotage.traffic.shift import POLL_SECONDS, Done, ShiftTimeouts, WriteBackends, expected_route, next_step

UNDECLARED = "field not declared in schema"
"""Message of an API server for an apply with a field that its version of the kind does not have. Nothing is written."""


class Routed(NamedTuple):
    """Progress of the route of an endpoint."""

    done: bool
    """Whether all requests go where they should, and to nothing else."""
    verified: bool
    reason: str
    """Reason for the condition."""
    text: str
    again: float | None
    """Seconds until the next reconcile; None: no other than by events."""
    services: frozenset[str] = frozenset()
    """The Services that the route names."""
    conflict: str = ""
    """Message about host names or models of the route that lead to another endpoint; empty: none."""


class Routing:
    """Writes the routes of endpoints, one step at a time.

    It remembers since when a route has been proven, and which kinds the cluster has in an old version. A new instance
    has forgotten both, and waits longer or is refused once more.
    """

    def __init__(self, client: Client, maker: PartApplier, caches: Caches, observer: ProxyObserver) -> None:
        self._client = client
        self._maker = maker
        self._caches = caches
        self._observer = observer
        self._since: dict[str, tuple[str, int, Programming, float]] = {}
        self._old_kinds: set[str] = set()

    def part(self, subject: EndpointRef, backends: Collection[Backend], models: Sequence[str] = ()) -> DesiredObject:
        """The route object. EndpointProblem for a kind without a router; ValueError for weights it cannot have.

        `models`: what clients call the model.
        """
        router = _router(subject)
        assert router.resource is not None
        route = subject.spec.route
        request = RouteRequest(subject.namespace, subject.name, labels(subject), route, tuple(backends), models)
        manifest = router.manifest(request)
        if router.kind in self._old_kinds:
            manifest = router.plain(manifest)
        return self._maker.sealed(subject, DesiredObject(router.resource, subject.name, manifest, None))

    def current(self, subject: EndpointRef) -> Object | None:
        """The route as it is, if there is one and it is this endpoint's."""
        router = _router(subject)
        assert router.resource is not None
        return self._caches.part(subject, router.resource, subject.name)

    async def move(
        self,
        subject: EndpointRef,
        target: Backend,
        running: Collection[str],
        models: Sequence[str] = (),
        *,
        ready: bool,
    ) -> Routed:
        """One step towards all requests going to `target`. `running`: Services of other revisions that are there.

        `models`: what clients call the model. `ready`: the target has replicas that answer.
        """
        router = _router(subject)
        found = self.current(subject) or await self._write(subject, [target], models)
        body: Json = found.to_dict()
        backends = router.backends(body)
        if self._is_another(subject, backends, models, found):
            found = await self._write(subject, backends, models)
            body = found.to_dict()
        status = await self._status(router, subject, body, backends, target, running, ready=ready)
        step = next_step(
            backends,
            target,
            status,
            proven_seconds=self._proven_seconds(found, status),
            leaving=bool(set(running) - {target.service}),
            weighted=router.weighted,
            missing=await self._missing(subject, backends, target),
            timeouts=ShiftTimeouts(drain_seconds=float(subject.spec.deletion.drain_seconds)),
        )
        services = frozenset(each.service for each in backends)
        match step:
            case WriteBackends(backends=wanted):
                await self._write(subject, wanted, models)
                named = services | {each.service for each in wanted}
                return Routed(False, False, "Moving", f"The route is moved: {_shares(wanted)}.", POLL_SECONDS, named)
            case TrafficWait(text=text, seconds=seconds):
                reason = "Rejected" if status.programming is Programming.REJECTED else "Waiting"
                return Routed(False, False, reason, text, seconds, services)
            case Done(verified=verified):
                return Routed(True, verified, "Done", status.text, None, services, status.conflict)

    def _is_another(self, subject: EndpointRef, backends: list[Backend], models: Sequence[str], found: Object) -> bool:
        """Whether it differs in more than its backends: the host was changed, or somebody has edited it."""
        try:
            return not same(self.part(subject, backends, models), found)
        except ValueError:
            return False  # nothing that we would write: the next step puts all of it right

    async def _missing(self, subject: EndpointRef, backends: list[Backend], target: Backend) -> set[str]:
        """The Services that the route names and that are not there."""
        missing = set()
        for name in {each.service for each in backends} - {target.service}:
            key = ObjectKey(subject.namespace, name)
            if self._caches.get(SERVICES, key) is None:
                try:
                    await self._client.get(SERVICES, key, metadata_only=True)
                except Absent:
                    missing.add(name)
        return missing

    async def _write(self, subject: EndpointRef, backends: Collection[Backend], models: Sequence[str]) -> Object:
        """Make the route so, without what an old version of its kind does not know."""
        try:
            return await self._maker.apply(subject, self.part(subject, backends, models))
        except ApiError as error:
            if UNDECLARED not in error.message or subject.spec.route.kind in self._old_kinds:
                raise
        self._old_kinds.add(subject.spec.route.kind)
        return await self._maker.apply(subject, self.part(subject, backends, models))

    async def _status(
        self,
        router: Router,
        subject: EndpointRef,
        body: Json,
        backends: list[Backend],
        target: Backend,
        running: Collection[str],
        *,
        ready: bool,
    ) -> RouteStatus:
        route = subject.spec.route
        expected = expected_route(
            subject.namespace, route.host or "", route.path, backends, target, others=running, reachable=ready
        )
        said = router.status(body, expected.counted)
        return said if router.proves else combined(said, await self._observer.observe(expected))

    def _proven_seconds(self, found: Object, status: RouteStatus) -> float:
        """Seconds since this state was first proven, or accepted."""
        proven = status.programming in (Programming.PROGRAMMED, Programming.ACCEPTED)
        key = found.meta.uid
        if not proven:
            self._since.pop(key, None)
            return 0.0
        since = self._since.get(key)
        if since is None or since[:3] != (found.meta.uid, found.meta.generation, status.programming):
            since = self._since[key] = (found.meta.uid, found.meta.generation, status.programming, monotonic())
        return monotonic() - since[3]


def _router(subject: EndpointRef) -> Router:
    kind = subject.spec.route.kind
    router = ROUTERS.get(kind)
    if router is None or router.resource is None:
        raise EndpointProblem("NoRouter", f"route.kind {kind} is not served by this operator.")
    return router


def _shares(backends: Collection[Backend]) -> str:
    return ", ".join(f"{each.service} {each.weight}" for each in backends)
