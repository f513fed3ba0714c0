"""Argo Rollouts: a Rollout with an experiment as its first step, and Istio's VirtualService as its router.

Its plugins for Contour and for the Gateway API are unavailable here. So a translator copies the weights of the
VirtualService into an HTTPProxy of Contour whenever they change, and removes it with the VirtualService: Argo's own
order of writes then meets a real Envoy, some milliseconds later.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from functools import partial

import field
from bench.experiments.stage import EDGE, NOWHERE, Stage, contour, install, until
from bench.experiments.subject import SHARE, Column, NotStarted, Subject
from bench.progress import say
from controlplane import Cluster
from controlplane.access import wait_for
from field.argo_rollouts import ISTIO_KINDS, ArgoRollouts
from field.ground.backends import PORT
from pilotage.kube import Absent, ApiError, Client, Json, Object, ObjectKey, Propagation, Resource, merge_patch

VIRTUAL_SERVICES = Resource("networking.istio.io", "v1", "virtualservices", "VirtualService")
HTTP_PROXIES = Resource("projectcontour.io", "v1", "httpproxies", "HTTPProxy")
ROLLOUTS = Resource("argoproj.io", "v1alpha1", "rollouts", "Rollout")
EXPERIMENTS = Resource("argoproj.io", "v1alpha1", "experiments", "Experiment")
NAME = "chat"
WATCH_SECONDS = 3600
# Deleted in this order: first the route.
MANIFEST = """\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: [{host}]
  http:
  - name: primary
    route:
    - {{destination: {{host: {name}-stable}}, weight: 100}}
    - {{destination: {{host: {name}-canary}}, weight: 0}}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {{name: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      nodeSelector: {nowhere}
      containers:
      - {{name: server, image: none, ports: [{{containerPort: {port}}}]}}
  strategy:
    canary:
      stableService: {name}-stable
      canaryService: {name}-canary
      trafficRouting: {{istio: {{virtualService: {{name: {name}, routes: [primary]}}}}}}
      steps:
      - experiment:
          duration: 1h
          templates: [{{name: variant, specRef: canary, replicas: 1, weight: {share}}}]{delay}
      - pause: {{}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}-stable}}
spec: {{selector: {{app: {name}}}, ports: [{{port: {port}}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}-canary}}
spec: {{selector: {{app: {name}}}, ports: [{{port: {port}}}]}}
"""


class ArgoExperiment(Subject):
    """Argo Rollouts. `delay_seconds`: scaleDownDelaySeconds of the step; None for Argo's default, which is 30."""

    def __init__(self, stage: Stage, namespace: str, *, delay_seconds: int | None) -> None:
        super().__init__(stage, namespace)
        delay = "" if delay_seconds is None else f"\n          scaleDownDelaySeconds: {delay_seconds}"
        self._manifest = MANIFEST.format(
            name=NAME, host=self.host, nowhere=NOWHERE, port=PORT, share=SHARE, delay=delay
        )
        self._translating = asyncio.create_task(translate(self.client, namespace))
        self._experiment = ObjectKey(namespace, "")

    async def start(self) -> None:
        await self._kubectl("apply", "-f", "-")
        await until("healthy Rollout", self._is_healthy)

    async def shift(self) -> str:
        template = {"metadata": {"annotations": {"version": "2"}}}
        patch = merge_patch({"spec": {"template": template}})
        await self.client.patch(ROLLOUTS, ObjectKey(self.namespace, NAME), patch)
        try:
            return await until("Service with requests", self._routed)
        except TimeoutError as error:
            found = weights(await self.client.get(VIRTUAL_SERVICES, ObjectKey(self.namespace, NAME)))
            raise NotStarted(f"{error}; the VirtualService has {found}") from None

    async def runs(self) -> None:
        await until("Experiment that runs", self._runs)

    async def end(self) -> None:
        await self._change({"duration": "1s"})  # it is judged from the moment at which it began to run

    async def terminate(self) -> None:
        await self._change({"terminate": True})

    async def delete_experiment(self) -> None:
        found = await self.client.get(EXPERIMENTS, self._experiment)
        await self.client.delete(EXPERIMENTS, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    async def delete_endpoint(self) -> None:
        await self._kubectl("delete", "--wait=false", "-f", "-")

    async def close(self) -> None:
        self._translating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._translating

    async def _is_healthy(self) -> bool:
        found = await self.client.get(ROLLOUTS, ObjectKey(self.namespace, NAME))
        return bool(found.get("status", "phase") == "Healthy")

    async def _routed(self) -> str:
        """The Service of the experiment, once the VirtualService gives it requests."""
        for each in (await self.client.list(EXPERIMENTS, self.namespace)).items:
            self._experiment = each.key
            for template in each.get("status", "templateStatuses", default=()):
                service: str = template.get("serviceName", "")
                found = await self.client.get(VIRTUAL_SERVICES, ObjectKey(self.namespace, NAME))
                if weights(found).get(service) == SHARE:
                    return service
        return ""

    async def _runs(self) -> bool:
        found = await self.client.get(EXPERIMENTS, self._experiment)
        return bool(found.get("status", "phase", default="") == "Running")

    async def _change(self, spec: Json) -> None:
        await self.client.patch(EXPERIMENTS, self._experiment, merge_patch({"spec": spec}))

    async def _kubectl(self, *args: str) -> None:
        await asyncio.to_thread(self.stage.cluster.kubectl, "-n", self.namespace, *args, input=self._manifest)


def weights(virtual_service: Object) -> dict[str, int]:
    """Weights by Service, in the order of the VirtualService's first route."""
    first = virtual_service.get("spec", "http")[0]
    return {each["destination"]["host"]: each.get("weight", 0) for each in first["route"]}


def proxy(virtual_service: Object) -> Json:
    """HTTPProxy with the host and the weights of a VirtualService."""
    services = [{"name": name, "port": PORT, "weight": weight} for name, weight in weights(virtual_service).items()]
    key = virtual_service.key
    return {
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "virtualhost": {"fqdn": virtual_service.get("spec", "hosts")[0]},
            "routes": [{"services": services}],
        },
    }


async def translate(client: Client, namespace: str) -> None:
    """Copy each change of the VirtualServices of a namespace into HTTPProxies, until cancelled."""
    listed = await client.list(VIRTUAL_SERVICES, namespace)
    version = listed.resource_version
    async with client.watch(VIRTUAL_SERVICES, namespace, resource_version=version, seconds=WATCH_SECONDS) as changes:
        async for event in changes:
            with contextlib.suppress(ApiError):  # the namespace is going
                if event.type == "DELETED":
                    await _remove(client, event.object.key)
                elif event.type in ("ADDED", "MODIFIED"):
                    await client.apply(HTTP_PROXIES, proxy(event.object), force=True)


async def _remove(client: Client, key: ObjectKey) -> None:
    with contextlib.suppress(Absent):
        found = await client.get(HTTP_PROXIES, key, metadata_only=True)
        await client.delete(HTTP_PROXIES, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)


@contextlib.contextmanager
def controller(stage: Stage) -> Iterator[None]:
    """Argo's controller, beside the stage."""
    install(stage.cluster, field.crds("argo-rollouts"))
    install(stage.cluster, field.crds("istio", *ISTIO_KINDS))
    _wait_for_collector(stage.cluster)
    with ArgoRollouts(stage.cluster.kubeconfig, say):
        yield


def _wait_for_collector(cluster: Cluster) -> None:
    """Wait until the garbage collector knows kinds that were just installed: it asks for new ones twice a minute."""
    owner = {"apiVersion": VIRTUAL_SERVICES.api_version, "kind": "VirtualService", "metadata": {"name": "owner"}}
    made = cluster.request("POST", VIRTUAL_SERVICES.path(EDGE), owner)
    reference = {name: made[name] for name in ("apiVersion", "kind")} | {
        "name": "owner",
        "uid": made["metadata"]["uid"],
    }
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    cluster.request("POST", f"/api/v1/namespaces/{EDGE}/configmaps", owned)
    cluster.request("DELETE", VIRTUAL_SERVICES.path(EDGE, "owner"))
    wait_for(
        "collected ConfigMap", lambda: cluster.find(f"/api/v1/namespaces/{EDGE}/configmaps/owned") is None, timeout=180
    )


COLUMNS: Mapping[str, Column] = {
    "argo": Column(
        "Argo Rollouts 1.10.1, HTTPProxy (translated), as it comes",
        contour,
        controller,
        partial(ArgoExperiment, delay_seconds=None),
        ("delete-namespace-in-order",),
    ),
    "argo-no-delay": Column(
        "Argo Rollouts 1.10.1, HTTPProxy (translated), scaleDownDelaySeconds: 0",
        contour,
        controller,
        partial(ArgoExperiment, delay_seconds=0),
        ("delete-namespace-in-order",),
    ),
}
