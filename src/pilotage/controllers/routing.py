"""The route of an endpoint: created when a revision can take traffic, moved through weight 0, proven where possible."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pilotage.controllers.caches import Caches
from pilotage.controllers.endpoint.apply_parts import PartApplier
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.ingress_canary import IngressCanary
from pilotage.kube import Absent, ApiError, Client, Json, Object, ObjectKey, Resource
from pilotage.runtime.clock import monotonic
from pilotage.serving.drift import same
from pilotage.serving.parts import DesiredObject, EndpointRef, labels
from pilotage.serving.resources import SERVICES
from pilotage.teardown.snapshot.fields import dig
from pilotage.traffic.contract import Mix, Programming, ProxyObserver, RouteStatus, combined
from pilotage.traffic.drain import TrafficWait
from pilotage.traffic.ingress_nginx import WritePair
from pilotage.traffic.routers import ROUTERS, Capability, Router, RouteRequest
from pilotage.traffic.shift import (
    POLL_SECONDS,
    Done,
    ShiftTimeouts,
    WriteMix,
    expected_route,
    first_mix,
    next_step,
    unproven,
)

UNDECLARED = "field not declared in schema"
"""Message of an API server for an apply with a field that its version of the kind does not have. Nothing is written."""
UNVERIFIED = "Ingress-NGINX does not tell whether its proxies have it"


class Routed(NamedTuple):
    """Progress of the route of an endpoint."""

    done: bool
    """Whether the route says exactly what is wanted, this is proven, and services that have left it are drained."""
    verified: bool
    reason: str
    """Reason for the condition."""
    text: str
    again: float | None
    """Seconds until the next reconcile; None: no other than by events."""
    services: frozenset[str] = frozenset()
    """The Services that the route names, or named before this step."""
    conflict: str = ""
    """Message about host names or models of the route that lead to another endpoint; empty: none."""
    mix: Mix = Mix()
    """The mix that the route says now."""
    proven: bool = False
    """Whether that mix counts as programmed: seen in every proxy, or accepted and given its time."""
    effective: Mapping[str, float] | None = None
    """Percentage of the requests of the main branch that each service really gets; None: unknown."""
    in_flight: Mapping[str, int] = {}
    """Requests in flight by service; unknown for those that are not in it."""
    measured: object = None
    """`status.measured` of a GatewayRoute as it is in the API, if there is any."""
    parts: frozenset[tuple[Resource, str]] = frozenset()
    """Objects by kind and name that the mix takes beside the route that is called like the endpoint."""


class RouteTraits(NamedTuple):
    """Everything about a route but its mix."""

    models: Sequence[str] = ()
    """Names by which clients call the model."""
    measure: bool = False
    """Whether requests are to be measured, by a router that can."""
    warmup_seconds: int = 0
    """Seconds after a change of the shares whose requests are not measured."""


NO_TRAITS = RouteTraits()


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
        self._ingresses = IngressCanary(client, maker, caches)

    def part(self, subject: EndpointRef, mix: Mix, traits: RouteTraits = NO_TRAITS) -> DesiredObject:
        """The route object. EndpointProblem for a kind without a router; ValueError for a mix it cannot have."""
        router = _router(subject)
        assert router.resource is not None
        route = subject.spec.route
        request = RouteRequest(subject.namespace, subject.name, labels(subject), route, mix, *traits)
        manifest = router.manifest(request)
        if router.kind in self._old_kinds:
            manifest = router.plain(manifest)
        return self._maker.sealed(subject, DesiredObject(router.resource, subject.name, manifest, None))

    def current(self, subject: EndpointRef) -> Object | None:
        """The route as it is, if there is one and it is this endpoint's."""
        router = _router(subject)
        assert router.resource is not None
        return self._caches.part(subject, router.resource, subject.name)

    def mix(self, subject: EndpointRef) -> Mix:
        """The mix that the route says, as far as the cache knows; an empty one where there is no route."""
        router = ROUTERS.get(subject.spec.route.kind)
        if router is None or router.resource is None or (found := self.current(subject)) is None:
            return Mix()
        if self._ingresses.applies(subject):
            return self._ingresses.pair(subject).mix
        return router.mix(found.to_dict())

    def parts(self, subject: EndpointRef, wanted: Mix) -> list[tuple[Resource, str]]:
        """The objects by kind and name that a mix takes beside the route that is called like the endpoint."""
        return self._ingresses.parts(subject, wanted) if self._ingresses.applies(subject) else []

    async def canary_refusal(self, subject: EndpointRef) -> str:
        """Why requests of an endpoint cannot move in steps, if the cluster is the reason; empty: it is not."""
        is_asked = subject.spec.strategy.type == "Canary" and self._ingresses.applies(subject)
        return await self._ingresses.refusal(subject) if is_asked else ""

    async def move(
        self,
        subject: EndpointRef,
        wanted: Mix,
        running: Collection[str],
        traits: RouteTraits = NO_TRAITS,
        *,
        reachable: Collection[str] = (),
        leaving: Collection[str] = (),
    ) -> Routed:
        """One step towards a route that says `wanted`. `running`: Services of other revisions that are there.

        `reachable`: Services with replicas that answer, so that proxies must know an address of them. `leaving`: uids
        of parts that a Teardown removes. EndpointProblem for a mix that a route of this kind cannot have.
        """
        if self._ingresses.applies(subject):
            return await self._move_pair(subject, wanted, running, reachable, leaving)
        router = _router(subject)
        if problems := router.problems(wanted):
            raise EndpointProblem("RouteCannot", " ".join(problems))
        found = self.current(subject) or await self._write(subject, first_mix(wanted), traits)
        body: Json = found.to_dict()
        now = router.mix(body)
        if self._is_another(subject, now, traits, found):
            found = await self._write(subject, now, traits)
            body = found.to_dict()
        status = await self._status(router, subject, body, now, wanted, running, reachable)
        timeouts = ShiftTimeouts(drain_seconds=float(subject.spec.deletion.drain_seconds))
        proven_seconds = self._proven_seconds(found, status)
        step = next_step(
            now,
            wanted,
            status,
            others=running,
            proven_seconds=proven_seconds,
            weighted=Capability.WEIGHTS in router.can,
            missing=await self._missing(subject, now.services - wanted.services),
            timeouts=timeouts,
        )
        routed = Routed(
            False,
            False,
            "Waiting",
            "",
            POLL_SECONDS,
            now.services,
            status.conflict,
            now,
            unproven(status, proven_seconds, timeouts) is None,
            status.effective,
            status.in_flight,
            dig(body, "status", "measured"),
        )
        match step:
            case WriteMix(mix=mix):
                await self._write(subject, mix, traits)
                named = now.services | mix.services
                return routed._replace(
                    reason="Moving", text=f"The route is moved: {mix}.", services=named, mix=mix, proven=False
                )
            case TrafficWait(text=text, seconds=seconds):
                reason = "Rejected" if status.programming is Programming.REJECTED else "Waiting"
                return routed._replace(reason=reason, text=text, again=seconds)
            case Done(verified=verified):
                return routed._replace(done=True, verified=verified, reason="Done", text=status.text, again=None)

    async def _move_pair(
        self,
        subject: EndpointRef,
        wanted: Mix,
        running: Collection[str],
        reachable: Collection[str],
        leaving: Collection[str],
    ) -> Routed:
        """The same step for the two Ingresses of Ingress-NGINX."""
        named = self._ingresses.pair(subject).mix.services
        missing = await self._missing(subject, named - wanted.services)
        pair, step, seconds = await self._ingresses.move(
            subject, wanted, running, missing=missing, reachable=reachable, leaving=leaving
        )
        proven = pair.main is not None and seconds >= ShiftTimeouts().settle_seconds
        routed = Routed(False, False, "Waiting", "", POLL_SECONDS, pair.mix.services, mix=pair.mix, proven=proven)
        match step:
            case WritePair(pair=written):
                text, named = f"The route is moved: {written.mix}.", pair.mix.services | written.mix.services
                return routed._replace(reason="Moving", text=text, services=named, mix=written.mix, proven=False)
            case TrafficWait(text=text, seconds=seconds):
                return routed._replace(text=text, again=seconds)
            case Done():
                # A canary Ingress at weight 0 still names its revision, which is kept until that Ingress is gone.
                kept = frozenset(self.parts(subject, wanted))
                return routed._replace(done=True, reason="Done", text=UNVERIFIED, again=None, mix=wanted, parts=kept)

    def _is_another(self, subject: EndpointRef, mix: Mix, traits: RouteTraits, found: Object) -> bool:
        """Whether it differs in more than its mix: the host was changed, or somebody has edited it."""
        try:
            return not same(self.part(subject, mix, traits), found)
        except ValueError:
            return False  # nothing that we would write: the next step puts all of it right

    async def _missing(self, subject: EndpointRef, services: Collection[str]) -> set[str]:
        """Those of the Services that are not there."""
        missing = set()
        for name in services:
            key = ObjectKey(subject.namespace, name)
            if self._caches.get(SERVICES, key) is None:
                try:
                    await self._client.get(SERVICES, key, metadata_only=True)
                except Absent:
                    missing.add(name)
        return missing

    async def _write(self, subject: EndpointRef, mix: Mix, traits: RouteTraits) -> Object:
        """Make the route so, without what an old version of its kind does not know."""
        try:
            return await self._maker.apply(subject, self.part(subject, mix, traits))
        except ApiError as error:
            if UNDECLARED not in error.message or subject.spec.route.kind in self._old_kinds:
                raise
        self._old_kinds.add(subject.spec.route.kind)
        return await self._maker.apply(subject, self.part(subject, mix, traits))

    async def _status(
        self,
        router: Router,
        subject: EndpointRef,
        body: Json,
        now: Mix,
        wanted: Mix,
        running: Collection[str],
        reachable: Collection[str],
    ) -> RouteStatus:
        route = subject.spec.route
        expected = expected_route(
            subject.namespace, route.host, route.path, now, wanted, others=running, reachable=reachable
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
