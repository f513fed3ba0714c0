"""Endpoints whose pods answer, behind a real Contour and Envoy: the stand-in for the kubelet, and the user's view.

kwok's pods have no servers. So these pods are for a node that does not exist; a `Kubelet` of the test starts a server
for each in the network of the edge, says that the pod runs there, and only then binds it to a node: kwok then finds
nothing left to do, until the pod is deleted. That takes a moment, without any grace, and its server is killed as soon:
whatever is still under way to it fails.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from controlplane.components import NODE
from field.ground.backends import PORT
from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_REVISION, TEARDOWNS
from pilotage.kube import PODS, Absent, Client, Object, ObjectKey, Propagation, load_config, merge_patch
from pilotage.serving.resources import SERVICES
from pilotage.traffic.routers.httpproxy import HTTP_PROXIES
from pilotage.traffic.routers.httproute import HTTP_ROUTES
from tests.controllers.operating import GROUP, PARTS, install, operator
from tests.support.edge import Place
from tests.support.waiting import eventually
from tests.teardown.staged import force_away

ROUTES = {"HTTPProxy": HTTP_PROXIES, "HTTPRoute": HTTP_ROUTES}
POLL_SECONDS = 0.1
SECONDS_MAX = 60.0
NOWHERE = {"pilotage.dev/node": "none"}


class Kubelet:
    """Kubelet of the test. A server has the name of its revision: each revision has one pod."""

    def __init__(self, here: Place, client: Client) -> None:
        self._cluster, self._edge, self._namespace = here.cluster, here.edge, here.namespace
        self._client = client
        self._servers: dict[str, str] = {}

    async def run(self) -> None:
        listed = await self._client.list(PODS, self._namespace, labels=LABEL_ENDPOINT_UID)
        watch = self._client.watch(
            PODS, self._namespace, labels=LABEL_ENDPOINT_UID, resource_version=listed.resource_version, seconds=600
        )
        async with watch as changes:
            async for event in changes:
                if event.type == "ADDED":
                    await self._start(event.object)
                elif event.type == "DELETED" or (event.type == "MODIFIED" and event.object.meta.terminating):
                    self._kill(event.object.meta.uid)

    def kill_all(self) -> None:
        for uid in [*self._servers]:
            self._kill(uid)

    async def _start(self, pod: Object) -> None:
        labels = pod.meta.labels
        name = self._servers[pod.meta.uid] = f"{labels[LABEL_ENDPOINT]}-{labels[LABEL_REVISION]}"
        address = self._edge.backend(name)
        conditions = [{"type": each, "status": "True"} for each in ("Initialized", "ContainersReady", "Ready")]
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
        with contextlib.suppress(Absent):
            await self._client.patch(PODS, pod.key, merge_patch({"status": status}), subresource="status")
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE["metadata"]["name"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.meta.name}, "target": target}
        self._cluster.request("POST", f"{PODS.path(self._namespace, pod.meta.name)}/binding", binding)

    def _kill(self, uid: str) -> None:
        if name := self._servers.pop(uid, ""):
            self._edge.stop_backend(name)


class ContourCluster:
    """Endpoints in the namespace that Contour watches; leftovers are removed by force at the end."""

    def __init__(self, here: Place, client: Client) -> None:
        self.place, self.edge, self.client = here, here.edge, client
        self.namespace = here.namespace
        self._suffix = secrets.token_hex(3)
        self.kubelet = Kubelet(here, client)

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, here: Place) -> "AsyncIterator[ContourCluster]":
        install(here.cluster)
        here.cluster.wait_for_service_account(here.namespace)
        async with Client.connect(load_config(kubeconfig=str(here.cluster.kubeconfig))) as client:
            contour = cls(here, client)
            await contour._keep_listening()
            playing = asyncio.create_task(contour.kubelet.run())
            try:
                yield contour
            finally:
                here.edge.release()
                playing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await playing
                contour.kubelet.kill_all()
                contour._force_away()

    async def _keep_listening(self) -> None:
        """One more route, so that Envoy still listens when the last endpoint has gone, and says 404."""
        name = f"other-{self._suffix}"
        service = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
        await self.client.create(SERVICES, service, namespace=self.namespace)
        rule = {"services": [{"name": name, "port": 80}]}
        spec = {"virtualhost": {"fqdn": f"{name}.example.com"}, "routes": [rule]}
        await self.client.create(HTTP_PROXIES, {"metadata": {"name": name}, "spec": spec}, namespace=self.namespace)

    def operate(self, folder: Path) -> Any:
        """The operator as a process that can read the Envoy."""
        return operator(self.place.cluster, folder, "--envoy-admins", f"unix://{self.edge.admin}")

    async def deploy(self, kind: str) -> "Endpoint":
        name = f"{kind.lower()}-{self._suffix}"
        route: dict[str, Any] = {"kind": kind, "host": f"{name}.example.com"}
        if kind == "HTTPRoute":
            route["gateway"] = {"name": self.place.gateway}
        spec = {
            "model": {"source": "hf://org/repo/model.gguf"},
            "runtime": {"port": PORT},
            "nodeSelector": NOWHERE,
            "route": route,
            "deletion": {"drainSeconds": 20},
        }
        await self.client.create(ENDPOINTS, {"metadata": {"name": name}, "spec": spec}, namespace=self.namespace)
        return Endpoint(self, kind, name)

    async def records(self) -> list[dict[str, Any]]:
        return [each.to_dict() for each in (await self.client.list(TEARDOWNS, self.namespace)).items]

    def _force_away(self) -> None:
        paths = [path.format(self.namespace) for path in PARTS]
        paths += [each.path(self.namespace) for each in ROUTES.values()]
        paths += [
            f"{GROUP}/namespaces/{self.namespace}/{each}" for each in ("experiments", "servingendpoints", "teardowns")
        ]
        for path in paths:
            for each in self.place.cluster.request("GET", path)["items"]:
                if self._suffix in each["metadata"]["name"]:
                    force_away(self.place.cluster, f"{path}/{each['metadata']['name']}")


class Endpoint:
    """One of them, as a user with kubectl and an HTTP client sees it."""

    def __init__(self, contour: ContourCluster, kind: str, name: str) -> None:
        self.contour, self.kind, self.name = contour, kind, name
        self.host = f"{name}.example.com"
        self.key = ObjectKey(contour.namespace, name)

    async def get(self) -> dict[str, Any] | None:
        try:
            return (await self.contour.client.get(ENDPOINTS, self.key)).to_dict()
        except Absent:
            return None

    async def redeploy(self, argument: str) -> None:
        patch = merge_patch({"spec": {"runtime": {"args": ["--alias", argument]}}})
        await self.contour.client.patch(ENDPOINTS, self.key, patch)

    async def delete(self) -> None:
        found = await self.contour.client.get(ENDPOINTS, self.key, metadata_only=True)
        await self.contour.client.delete(ENDPOINTS, self.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    async def until(
        self, condition: Callable[[dict[str, Any]], object], seconds: float = SECONDS_MAX
    ) -> dict[str, Any]:
        """Wait for its status to be so; of one that is gone it is empty. Returns it."""
        deadline = asyncio.get_running_loop().time() + seconds
        status: dict[str, Any]
        while not condition(status := (await self.get() or {}).get("status", {})):
            if asyncio.get_running_loop().time() > deadline:
                left = {name: value for name, value in status.items() if name not in ("history", "ledger")}
                raise AssertionError(f"{self.name} is still so: {json.dumps(left)}")
            await asyncio.sleep(POLL_SECONDS)
        return status

    async def serves(self, revision: int) -> dict[str, Any]:
        """Wait until a revision has all of the traffic, and nothing of another one is there."""
        wanted = f"{self.name}-{revision}"
        status = await self.until(
            lambda status: status.get("phase") == "Serving" and status.get("revision") == wanted and arrived(status)
        )
        assert condition(status, "RouteProgrammed")["reason"] == "ProvenByProxy"
        return status

    async def answers(self, revision: int, times: int = 20) -> None:
        """Wait for some answers of a revision to what is asked all the time."""
        name = f"{self.name}-{revision}"
        first = self.report()["answers"].get(name, 0)
        await self.reports(lambda report: report["answers"].get(name, 0) >= first + times)

    async def reports(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until what was asked has come out so."""

        async def look() -> bool:
            return wanted(self.report())

        await eventually(look, SECONDS_MAX)

    def load(self) -> None:
        self.contour.edge.load(self.host, clients=2, pause=0.02, streams=2, seconds=1.0)

    def report(self) -> dict[str, Any]:
        return self.contour.edge.report(self.host)

    async def weights(self) -> dict[str, int]:
        """Weights in its route."""
        found = (await self.contour.client.get(ROUTES[self.kind], self.key)).to_dict()["spec"]
        services = found["routes"][0]["services"] if self.kind == "HTTPProxy" else found["rules"][0]["backendRefs"]
        return {each["name"]: each["weight"] for each in services}


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((each for each in status.get("conditions", ()) if each["type"] == kind), {})


def arrived(status: dict[str, Any]) -> bool:
    """Whether nothing of a former revision is there any more."""
    return condition(status, "Progressing").get("reason") == "Arrived"
