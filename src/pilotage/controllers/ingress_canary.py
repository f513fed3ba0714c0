"""The two Ingresses of an endpoint on Ingress-NGINX, and the Service behind the canary: read, and written one by one.

`traffic.ingress_nginx` says what is written and when. Nothing is deleted here: a canary Ingress that the route does not
need is a former part of the endpoint, and goes with its Service through a Teardown.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

from pilotage.controllers.caches import Caches
from pilotage.controllers.endpoint.apply_parts import PartApplier
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.kube import Absent, Client, Forbidden, Json, Object, ObjectKey, Resource
from pilotage.runtime.clock import monotonic
from pilotage.serving.drift import same
from pilotage.serving.manifests import manifest
from pilotage.serving.parts import DesiredObject, EndpointRef, labels
from pilotage.serving.resources import SERVICES
from pilotage.traffic.contract import Backend, Mix
from pilotage.traffic.drain import TrafficWait
from pilotage.traffic.ingress_nginx import (
    CONTROLLER,
    INGRESS_CLASSES,
    WRITE_SECONDS,
    IngressPair,
    PairStep,
    WritePair,
    canaries,
    canary_ingress,
    canary_name,
    canary_service_name,
    pair_problems,
    pair_step,
    read_pair,
    settling,
)
from pilotage.traffic.routers import ROUTERS, RouteRequest
from pilotage.traffic.routers.ingress import INGRESSES, ROUTER
from pilotage.traffic.shift import ShiftTimeouts

LEAVING_SECONDS = 2.0
"""Pause while the canary of a former rollout is torn down."""
REFUSED_SECONDS = 30.0
"""Pause until an IngressClass is read again that is not of Ingress-NGINX."""


class PairMove(NamedTuple):
    """One look at the two Ingresses, and the step that was taken."""

    pair: IngressPair
    """The pair as it was before the step."""
    step: PairStep
    state_seconds: float
    """Seconds for which it had been so."""


class IngressCanary:
    """Moves requests between two revisions on Ingress-NGINX.

    It remembers since when the Ingresses have been as they are, and when it wrote last. A new instance waits longer.
    """

    def __init__(self, client: Client, maker: PartApplier, caches: Caches) -> None:
        self._client = client
        self._maker = maker
        self._caches = caches
        self._states: dict[str, tuple[IngressPair, float]] = {}
        self._written: dict[str, float] = {}

    def applies(self, subject: EndpointRef) -> bool:
        """Whether the route of an endpoint has two Ingresses, or may get them."""
        router = ROUTERS.get(subject.spec.route.kind)
        if router is None or not router.may_pair:
            return False
        return subject.spec.strategy.type == "Canary" or self._found(subject, canary_name(subject.name)) is not None

    async def refusal(self, subject: EndpointRef) -> str:
        """Why an endpoint with `route.kind: Ingress` cannot have a canary, for people; empty: it can."""
        if subject.spec.placement.kind != "Deployment":
            return f"A Canary on an Ingress needs placement.kind Deployment, not {subject.spec.placement.kind}."
        name = subject.spec.route.class_name
        if not name:
            return f"A Canary on an Ingress needs route.className: an IngressClass of the controller {CONTROLLER}."
        try:
            found = await self._client.get(INGRESS_CLASSES, ObjectKey("", name))
        except Absent:
            return f"A Canary on an Ingress needs Ingress-NGINX, and there is no ingressclass/{name}."
        except Forbidden as error:
            why = error.message.rstrip(". ")
            return f"A Canary on an Ingress needs Ingress-NGINX, and ingressclass/{name} cannot be read: {why}."
        if (controller := found.get("spec", "controller")) == CONTROLLER:
            return ""
        return (
            f"Of all Ingresses, those of {CONTROLLER} alone have weights, which a Canary needs, "
            f"and ingressclass/{name} is of {controller}."
        )

    def pair(self, subject: EndpointRef) -> IngressPair:
        """The two Ingresses, as far as the cache knows."""
        main, canary = (self._found(subject, each) for each in (subject.name, canary_name(subject.name)))
        return read_pair(main.to_dict() if main else None, canary.to_dict() if canary else None)

    def parts(self, subject: EndpointRef, wanted: Mix) -> list[tuple[Resource, str]]:
        """The objects beside the main Ingress that the way to a mix takes, and those that it needs at its end."""
        services = {canary_service_name(each.service) for each in canaries(self.pair(subject), wanted)}
        if not services:
            return []
        return [(INGRESSES, canary_name(subject.name)), *((SERVICES, each) for each in sorted(services))]

    async def move(
        self,
        subject: EndpointRef,
        wanted: Mix,
        running: Collection[str],
        *,
        missing: Collection[str],
        reachable: Collection[str],
        leaving: Collection[str],
    ) -> PairMove:
        """Take one step towards Ingresses that say `wanted`. EndpointProblem for what they cannot say.

        `leaving`: uids of parts that a Teardown removes.
        """
        if problems := pair_problems(wanted):
            raise EndpointProblem("RouteCannot", " ".join(problems))
        canary = self._found(subject, canary_name(subject.name))
        if canary is not None and canary.get("spec", "ingressClassName") != subject.spec.route.class_name:
            await self._check_class(subject)
        now = self.pair(subject)
        is_leaving = self._is_leaving(subject, now.canary, leaving)
        if not is_leaving and now.canary is not None and now.canary.service not in missing:
            await self._keep_service(subject, now.canary)
        if (wait := await self._put_right(subject, now if not is_leaving else IngressPair(now.main))) is not None:
            return PairMove(now, wait, 0.0)
        seconds = self._seconds(subject, settling(now, wanted))
        step = pair_step(
            now,
            wanted,
            state_seconds=seconds,
            write_seconds=self._write_seconds(subject),
            others=running,
            reachable=reachable,
            missing=missing,
            timeouts=ShiftTimeouts(drain_seconds=float(subject.spec.deletion.drain_seconds)),
        )
        if isinstance(step, WritePair):
            step = await self._take(subject, now, step, leaving)
        return PairMove(now, step, seconds)

    async def _take(
        self, subject: EndpointRef, now: IngressPair, step: WritePair, leaving: Collection[str]
    ) -> WritePair | TrafficWait:
        main, canary = step.pair
        if main is not None and main != now.main:
            await self._write(subject, self._main(subject, main))
            return step
        assert canary is not None
        if self._is_leaving(subject, canary, leaving):
            name = canary_name(subject.name)
            return TrafficWait(f"ingress/{name} of the former rollout is torn down first", LEAVING_SECONDS)
        if self._found(subject, canary_name(subject.name)) is None:
            await self._check_class(subject)
        await self._keep_service(subject, canary)
        await self._write(subject, self._canary(subject, canary))
        return step

    async def _check_class(self, subject: EndpointRef) -> None:
        if why := await self.refusal(subject):
            raise EndpointProblem("RouteCannot", why, retry_after=REFUSED_SECONDS)

    def _is_leaving(self, subject: EndpointRef, canary: Backend | None, leaving: Collection[str]) -> bool:
        """Whether a Teardown removes the canary Ingress, or the Service that is behind it or shall be."""
        names = [(INGRESSES, canary_name(subject.name))]
        if canary is not None:
            names.append((SERVICES, canary_service_name(canary.service)))
        found = (self._caches.part(subject, *each) for each in names)
        return any(each is not None and each.meta.uid in leaving for each in found)

    async def _put_right(self, subject: EndpointRef, pair: IngressPair) -> TrafficWait | None:
        """Write an Ingress that differs in more than backend and weight: the host was changed, say. None: none does."""
        parts = [self._main(subject, pair.main)] if pair.main is not None else []
        if pair.canary is not None:
            parts.append(self._canary(subject, pair.canary))
        for part in parts:
            found = self._found(subject, part.name)
            if found is None or same(part, found):
                continue
            left = WRITE_SECONDS - self._write_seconds(subject)
            if left <= 0:
                await self._write(subject, part)
            return TrafficWait(f"ingress/{part.name} is put right", left if left > 0 else WRITE_SECONDS)
        return None

    async def _keep_service(self, subject: EndpointRef, canary: Backend) -> None:
        """Make the Service behind the canary: it selects the same pods as that of the revision."""
        served = self._caches.part(subject, SERVICES, canary.service)
        if served is None:
            raise EndpointProblem(
                "ServiceMissing", f"service/{canary.service} is not there yet.", retry_after=LEAVING_SECONDS, waits=True
            )
        ports = [
            {field: each[field] for field in ("name", "port", "targetPort") if field in each}
            for each in served.get("spec", "ports", default=[])
        ]
        spec = {"selector": served.get("spec", "selector", default={}), "ports": ports}
        name = canary_service_name(canary.service)
        await self._maker.apply(subject, manifest(SERVICES, subject, name, None, spec))

    async def _write(self, subject: EndpointRef, part: DesiredObject) -> None:
        self._written[subject.uid] = monotonic()
        await self._maker.apply(subject, part)

    def _main(self, subject: EndpointRef, main: Backend) -> DesiredObject:
        return self._sealed(subject, subject.name, ROUTER.manifest(self._request(subject, Mix((main,)))))

    def _canary(self, subject: EndpointRef, canary: Backend) -> DesiredObject:
        return self._sealed(subject, canary_name(subject.name), canary_ingress(self._request(subject, Mix()), canary))

    def _request(self, subject: EndpointRef, mix: Mix) -> RouteRequest:
        return RouteRequest(subject.namespace, subject.name, labels(subject), subject.spec.route, mix)

    def _sealed(self, subject: EndpointRef, name: str, body: Json) -> DesiredObject:
        return self._maker.sealed(subject, DesiredObject(INGRESSES, name, body, None))

    def _found(self, subject: EndpointRef, name: str) -> Object | None:
        return self._caches.part(subject, INGRESSES, name)

    def _write_seconds(self, subject: EndpointRef) -> float:
        """Seconds since the last write."""
        return monotonic() - self._written.get(subject.uid, -math.inf)

    def _seconds(self, subject: EndpointRef, pair: IngressPair) -> float:
        """Seconds since the Ingresses were first seen so."""
        state = self._states.get(subject.uid)
        if state is None or state[0] != pair:
            state = self._states[subject.uid] = (pair, monotonic())
        return monotonic() - state[1]
