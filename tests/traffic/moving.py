"""Services with one server behind each, a route, and the loop that moves it as a controller would."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Self

from msgspec.structs import replace

from field.ground.backends import PORT as SERVER_PORT
from pilotage.api.endpoint import GatewayRef, Route
from pilotage.kube import Absent, Client, Json, ObjectKey, Propagation, Resource, load_config
from pilotage.traffic.contract import Backend, ExpectedRoute, Mix, Programming, RouteStatus, combined
from pilotage.traffic.proxies import Proxies, envoy_source, observe
from pilotage.traffic.routers import ROUTERS, RouteRequest
from pilotage.traffic.routers.base import Router
from pilotage.traffic.shift import Done, ShiftTimeouts, WriteMix, expected_route, next_step
from tests.support.edge import Place

PORT = 8080
SERVICES = Resource("", "v1", "services", "Service")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
POLL_SECONDS = 0.02
SECONDS_MAX = 30.0


class ContourRoutes:
    """One test's part of the place: its objects have names of its own, and are removed at the end."""

    def __init__(self, here: Place, client: Client) -> None:
        self.place, self.client = here, client
        self.edge, self.namespace = here.edge, here.namespace
        self.proxies = Proxies([envoy_source(f"unix://{here.edge.admin}", client)])
        self._suffix = secrets.token_hex(3)
        self._made: list[tuple[Resource, str]] = []
        self._servers: set[str] = set()

    @classmethod
    @asynccontextmanager
    async def at(cls, here: Place) -> AsyncIterator[Self]:
        async with Client.connect(load_config(kubeconfig=str(here.cluster.kubeconfig))) as client:
            contour = cls(here, client)
            try:
                yield contour
            finally:
                here.edge.release()
                for resource, name in reversed(contour._made):
                    await contour.remove(resource, name)
                for name in [*contour._servers]:
                    contour.kill(name)
                await contour.proxies.close()

    async def service(self, name: str, *, empty: bool = False) -> Backend:
        """A Service with a server behind it; `empty`: with none, yet."""
        name = f"{name}-{self._suffix}"
        body = {"metadata": {"name": name}, "spec": {"ports": [{"port": PORT, "targetPort": SERVER_PORT}]}}
        await self.create(SERVICES, body)
        if not empty:
            await self.open(name)
        return Backend(name, PORT)

    async def open(self, name: str) -> None:
        """A server behind a Service, and its slice."""
        self._servers.add(name)
        endpoint = {"addresses": [self.edge.backend(name)], "conditions": {"ready": True}}
        metadata = {"name": name, "labels": {"kubernetes.io/service-name": name}}
        await self.create(
            SLICES,
            {
                "metadata": metadata,
                "addressType": "IPv4",
                "ports": [{"port": SERVER_PORT, "protocol": "TCP"}],
                "endpoints": [endpoint],
            },
        )

    async def create(self, resource: Resource, body: Json) -> None:
        self._made.append((resource, body["metadata"]["name"]))
        await self.client.create(resource, body, namespace=self.namespace)

    async def remove(self, resource: Resource, name: str) -> None:
        key = ObjectKey(self.namespace, name)
        try:
            found = await self.client.get(resource, key, metadata_only=True)
            await self.client.delete(resource, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        except Absent:
            pass

    def kill(self, name: str) -> None:
        """Kill the server; requests under way are cut off."""
        self._servers.discard(name)
        self.edge.stop_backend(name)

    async def take_down(self, backend: Backend) -> None:
        """Take a revision down that should get no more requests, as a teardown does."""
        self.kill(backend.service)
        await self.remove(SLICES, backend.service)
        await self.remove(SERVICES, backend.service)

    def moving(self, kind: str, path: str = "/") -> "Moving":
        """A route of this kind, not made yet, on a host of its own."""
        route = Route.read({"kind": kind, "host": f"{kind.lower()}-{self._suffix}.example.com", "path": path})
        if kind == "HTTPRoute":
            route = replace(route, gateway=GatewayRef(name=self.place.gateway))
        self._made.append((router_of(kind)[1], f"route-{kind.lower()}-{self._suffix}"))
        return Moving(self, route, f"route-{kind.lower()}-{self._suffix}")


class Moving:
    """A route, and who moves it."""

    def __init__(self, contour: ContourRoutes, route: Route, name: str) -> None:
        self.contour, self.route, self.name = contour, route, name
        self.host = route.host or ""
        self.router, self.resource = router_of(route.kind)

    async def write(self, *backends: Backend) -> None:
        await self.write_mix(Mix(backends))

    async def write_mix(self, mix: Mix) -> None:
        body = self.router.manifest(RouteRequest(self.contour.namespace, self.name, {}, self.route, mix))
        await self.contour.client.apply(self.resource, body, force=True)

    async def read(self) -> Json | None:
        try:
            found = await self.contour.client.get(self.resource, ObjectKey(self.contour.namespace, self.name))
        except Absent:
            return None
        return found.to_dict()

    def expect(self, *backends: Backend, **options: frozenset[str]) -> ExpectedRoute:
        return self.expect_mix(Mix(backends), **options)

    def expect_mix(self, mix: Mix, **options: frozenset[str]) -> ExpectedRoute:
        return ExpectedRoute(self.contour.namespace, self.host, self.route.path, mix, **options)

    async def seen(self, wanted: ExpectedRoute) -> RouteStatus:
        return await observe(self.contour.proxies, wanted)

    async def until(self, wanted: ExpectedRoute, proof: Programming = Programming.PROGRAMMED) -> RouteStatus:
        return await until(lambda: self.seen(wanted), proof)

    async def said(self, proof: Programming) -> RouteStatus:
        """Wait for the router's status of the current route."""

        async def look() -> RouteStatus:
            obj = await self.read()
            return self.router.status(obj) if obj else RouteStatus(Programming.PENDING, text="there is none")

        return await until(look, proof)

    async def move(self, target: Backend, *others: Backend, timeouts: ShiftTimeouts, proven: bool = True) -> Done:
        """Move all traffic to the target; without `proven`, by the router's word alone."""
        running = {each.service for each in others}
        return await self.move_to(Mix((target,)), running, timeouts=timeouts, proven=proven)

    async def move_to(
        self, wanted: Mix, others: Collection[str] = (), *, timeouts: ShiftTimeouts, proven: bool = True
    ) -> Done:
        """Move the route to a mix of Services that are all reachable."""
        loop = asyncio.get_running_loop()
        proven_at: tuple[object, float] = (None, 0.0)
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                obj = await self.read()
                says = self.router.mix(obj) if obj else Mix()
                status = self.router.status(obj) if obj else RouteStatus(Programming.PENDING)
                if proven:
                    place = (self.contour.namespace, self.host, self.route.path)
                    asked = expected_route(*place, says, wanted, others=others, reachable=wanted.services)
                    status = combined(status, await self.seen(asked))
                fact = (obj["metadata"]["generation"], status.programming) if obj else None
                if fact != proven_at[0]:
                    proven_at = (fact, loop.time())
                seconds = loop.time() - proven_at[1]
                step = next_step(says, wanted, status, others=others, proven_seconds=seconds, timeouts=timeouts)
                if isinstance(step, Done):
                    return step
                if isinstance(step, WriteMix):
                    await self.write_mix(step.mix)
                else:
                    await asyncio.sleep(min(step.seconds, POLL_SECONDS))


def router_of(kind: str) -> tuple[Router, Resource]:
    router = ROUTERS[kind]
    assert router.resource
    return router, router.resource


async def until(look: Callable[[], Awaitable[RouteStatus]], proof: Programming) -> RouteStatus:
    """EnvoyReading again and again until it is that."""
    status = None
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while (status := await look()).programming is not proof:  # noqa: ASYNC110 - Envoy sends no events
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"after {SECONDS_MAX:g} s still {status}") from None
    return status
