"""The network of a trial: Contour with two Envoys, each with clients, and a server for each pod in both networks.

kwok's pods have no servers. So these pods are for a node that does not exist; the `Kubelet` here starts a server for
each, and says that the pod is ready there. kwok removes a pod without any grace when its deletion begins, and its
server is killed as soon: whatever is still under way to it is cut.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import field
from bench.experiments.proxies import contour_has_route
from bench.progress import say
from controlplane import ApiError, Cluster
from controlplane.access import wait_for
from controlplane.components import NODE
from field.edge import LISTENER_PORT, Edge, EnvoyBeside
from pilotage.kube import PODS, Absent, Client, Json, Object, merge_patch

T = TypeVar("T")
HasRoute = Callable[[Edge, str, str], Awaitable[bool]]

NOWHERE = {"pilotage.dev/node": "none"}
"""Node selector of pods that get a server."""
EDGE = "edge"
"""Namespace, GatewayClass and Gateway of Contour."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = {
    "contour": ("httpproxies.projectcontour.io", "tlscertificatedelegations.projectcontour.io"),
    "gateway-api": tuple(
        f"{each}.gateway.networking.k8s.io" for each in ("gatewayclasses", "gateways", "httproutes", "referencegrants")
    ),
}
START_SECONDS = 2.0
"""Time until a server is ready: its Service and EndpointSlice are there by then, as when a model is loaded."""
WATCH_SECONDS = 3600
WAIT_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
GATEWAY = f"""\
apiVersion: v1
kind: Namespace
metadata: {{name: {EDGE}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: {EDGE}}}
spec: {{controllerName: projectcontour.io/gateway-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {EDGE}, namespace: {EDGE}}}
spec:
  gatewayClassName: {EDGE}
  listeners:
  - {{name: http, protocol: HTTP, port: {LISTENER_PORT}, allowedRoutes: {{namespaces: {{from: All}}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: {EDGE}, namespace: {EDGE}}}
spec: {{ports: [{{port: 80}}]}}
---
# A route that stays: without any, Envoy would not listen, and a client could not be told that there is no route.
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {{name: {EDGE}, namespace: {EDGE}}}
spec:
  virtualhost: {{fqdn: {EDGE}.example.com}}
  routes: [{{services: [{{name: {EDGE}, port: 80}}]}}]
"""


class Kubelet:
    """Runs a server, called like the pod, in each network for each pod that selects `NOWHERE`."""

    def __init__(self, cluster: Cluster, client: Client, networks: Sequence[Edge]) -> None:
        self._cluster, self._client, self._networks = cluster, client, networks
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._servers: dict[str, str] = {}
        self.killed: dict[str, float] = {}
        """When each server was killed, in seconds of `time.time`."""

    async def run(self) -> None:
        """Follow all pods until cancelled."""
        listed = await self._client.list(PODS)
        watch = self._client.watch(PODS, resource_version=listed.resource_version, seconds=WATCH_SECONDS)
        async with watch as changes, asyncio.TaskGroup() as starts:
            async for event in changes:
                uid = event.object.meta.uid
                if event.type == "DELETED" or event.object.meta.terminating:
                    self._kill(uid)
                elif event.type == "ADDED" and event.object.get("spec", "nodeSelector") == NOWHERE:
                    self._starting[uid] = starts.create_task(self._start(event.object))

    async def _start(self, pod: Object) -> None:
        # With its phase kwok finds nothing left to do; without an address it is no endpoint yet.
        await self._patch(pod, {"phase": "Running", "conditions": _conditions("False")})
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE["metadata"]["name"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.meta.name}, "target": target}
        with contextlib.suppress(ApiError):  # it is gone
            self._cluster.request("POST", f"{PODS.path(pod.meta.namespace, pod.meta.name)}/binding", binding)
        await asyncio.sleep(START_SECONDS)
        self._servers[pod.meta.uid] = pod.meta.name
        address, *others = [each.backend(pod.meta.name) for each in self._networks]
        assert all(each == address for each in others)
        await self._patch(pod, {"podIP": address, "podIPs": [{"ip": address}], "conditions": _conditions("True")})

    async def _patch(self, pod: Object, status: Json) -> None:
        with contextlib.suppress(Absent):
            await self._client.patch(PODS, pod.key, merge_patch({"status": status}), subresource="status")

    def _kill(self, uid: str) -> None:
        if starting := self._starting.pop(uid, None):
            starting.cancel()
        if name := self._servers.pop(uid, ""):
            self.killed[name] = time.time()
            for each in self._networks:
                each.stop_backend(name)


def _conditions(ready: str) -> list[Json]:
    return [{"type": each, "status": ready} for each in ("Initialized", "ContainersReady", "Ready")]


@dataclass(frozen=True, slots=True)
class Stage:
    """A network with its proxies. The feed of the first of the `networks` is the one that is held."""

    cluster: Cluster
    client: Client
    networks: Sequence[Edge]
    kubelet: Kubelet
    has_route: HasRoute
    """Whether the proxy of a network gives requests to a Service, named by its namespace and its name."""


@contextlib.asynccontextmanager
async def contour(cluster: Cluster, client: Client) -> AsyncIterator[Stage]:
    """Contour, which watches all namespaces and serves the Gateway `EDGE`, and two Envoys."""
    for name, kinds in KINDS.items():
        install(cluster, field.crds(name, *kinds))
    cluster.kubectl("apply", "-f", "-", input=GATEWAY)
    with Edge(cluster.kubeconfig, EDGE, EDGE, say, everywhere=True) as first, EnvoyBeside(first) as second:
        async with served(cluster, client, (first, second), contour_has_route) as stage:
            yield stage


@contextlib.asynccontextmanager
async def served(cluster: Cluster, client: Client, networks: Sequence[Edge], routes: HasRoute) -> AsyncIterator[Stage]:
    """The stage in these networks, with a server for each pod."""
    kubelet = Kubelet(cluster, client, networks)
    running = asyncio.create_task(kubelet.run())
    try:
        yield Stage(cluster, client, networks, kubelet, routes)
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def until(what: str, condition: Callable[[], Awaitable[T]]) -> T:
    """Ask again and again until the answer is true, and return it. Raises `TimeoutError`, which names `what`."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (answer := await condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {WAIT_SECONDS_MAX:.0f} s still no {what}")
        await asyncio.sleep(POLL_SECONDS)
    return answer


def install(cluster: Cluster, definitions: Sequence[Mapping[str, Any]]) -> None:
    """Make sure that these kinds are served."""
    for each in definitions:
        if cluster.find(f"{CRDS}/{each['metadata']['name']}") is None:
            cluster.request("POST", CRDS, each)
    for each in definitions:
        spec = each["spec"]
        for version in (version["name"] for version in spec["versions"] if version["served"]):
            path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            wait_for(f"list of {path}", partial(_is_served, cluster, path))


def _is_served(cluster: Cluster, path: str) -> bool:
    try:
        cluster.request("GET", path)
    except ApiError:
        return False
    return True
