"""EndpointSlices of Services with a selector: where its pods are, and what may be sent there.

`serving` is the pod's readiness, `ready` is that without the terminating ones (all are ready where the Service says
publishNotReadyAddresses). One slice for each Service: the real controller begins another one after 100 endpoints, and
one for each address family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Absent, Propagation, Terminating, merge_patch
from pilotage.kube.selectors import LabelSelector
from pilotage_sim.models.common import FINISHED, PODS, SERVICES, SLICES, is_mine, is_ready, owner_reference

if TYPE_CHECKING:
    from pilotage.kube import Json, Object, ObjectKey
    from pilotage.runtime.controller import Context
    from pilotage.runtime.manager import Manager
    from pilotage.runtime.store import Store
    from pilotage.runtime.types import Reconcile

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"


def add(manager: Manager) -> None:
    """Run it in a manager."""
    services, pods, slices = manager.informer(SERVICES), manager.informer(PODS), manager.informer(SLICES)

    def make(context: Context) -> Reconcile:
        return _Slices(context, pods.store, slices.store).reconcile

    def of_pod(pod: Object) -> list[ObjectKey]:
        return [
            service.key
            for service in services.store.list(pod.meta.namespace)
            if (selector := service.get("spec", "selector")) and selector.items() <= pod.meta.labels.items()
        ]

    def of_slice(slice_: Object) -> list[ObjectKey]:
        name = slice_.meta.labels.get(SERVICE_NAME)
        own = slice_.meta.labels.get(MANAGED_BY) == MANAGER
        return [slice_.key.__class__(slice_.meta.namespace, name)] if name and own else []

    manager.add("endpointslice-model", services, make, watches=[(pods, of_pod), (slices, of_slice)])


class _Slices:
    def __init__(self, context: Context, pods: Store, slices: Store) -> None:
        self._client = context.client
        self._store = context.store
        self._pods = pods
        self._slices = slices

    async def reconcile(self, key: ObjectKey) -> None:
        service = self._store.get(key)
        if service is None or service.meta.terminating:
            return
        body = service.to_dict()
        selector = body["spec"].get("selector")
        if not selector or body["spec"].get("type") == "ExternalName":
            return
        chosen = LabelSelector.from_object({"matchLabels": selector})
        pods = [pod.to_dict() for pod in self._pods.list(key.namespace) if chosen.matches(pod.meta.labels)]
        shown = sorted((pod for pod in pods if _has_address(pod)), key=lambda pod: str(pod["metadata"]["name"]))
        wanted: Json = {
            "addressType": "IPv6" if (body["spec"].get("ipFamilies") or ["IPv4"])[0] == "IPv6" else "IPv4",
            "ports": _ports(body, shown),
            "endpoints": [_endpoint(pod, body) for pod in shown],
        }
        labels = {**service.meta.labels, SERVICE_NAME: key.name, MANAGED_BY: MANAGER}
        if body["spec"].get("clusterIP") == "None":
            labels[HEADLESS] = ""
        await self._write(service, wanted, labels)

    async def _write(self, service: Object, wanted: Json, labels: dict[str, str]) -> None:
        found = sorted(
            (each for each in self._slices.list(service.meta.namespace) if is_mine(service, each)),
            key=lambda each: each.meta.name,
        )
        for extra in found[1:]:
            try:
                await self._client.delete(SLICES, extra.key, uid=extra.meta.uid, propagation=Propagation.BACKGROUND)
            except Absent:
                continue
        if not found:
            metadata = {
                "namespace": service.meta.namespace,
                "generateName": f"{service.meta.name}-",
                "labels": labels,
                "ownerReferences": [owner_reference(SERVICES, service)],
            }
            try:
                await self._client.create(SLICES, {"metadata": metadata, **wanted})
            except Terminating:
                return
            return
        current = found[0].to_dict()
        if {name: current.get(name) or [] for name in wanted} != wanted or found[0].meta.labels != labels:
            changes = {"metadata": {"labels": labels}, **wanted}
            patch = merge_patch(changes, resource_version=found[0].meta.resource_version)
            await self._client.patch(SLICES, found[0].key, patch)


def _has_address(pod: Json) -> bool:
    status = pod.get("status") or {}
    return bool(status.get("podIP")) and status.get("phase") not in FINISHED


def _endpoint(pod: Json, service: Json) -> Json:
    serving = is_ready(pod)
    terminating = "deletionTimestamp" in pod["metadata"]
    everything = bool(service["spec"].get("publishNotReadyAddresses"))
    meta, spec = pod["metadata"], pod["spec"]
    endpoint: Json = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": everything or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    }
    if spec.get("nodeName"):
        endpoint["nodeName"] = spec["nodeName"]
    if spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]:
        endpoint["hostname"] = spec["hostname"]
    return endpoint


def _ports(service: Json, pods: list[Json]) -> list[Json]:
    """The target ports; one that is named is looked up in the first pod that has it."""
    ports: list[Json] = []
    for port in service["spec"].get("ports") or []:
        number = _number(port, pods)
        if number is None:
            continue
        shown: Json = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
        if port.get("appProtocol"):
            shown["appProtocol"] = port["appProtocol"]
        ports.append(shown)
    return ports if pods else []


def _number(port: Json, pods: list[Json]) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for each in container.get("ports") or []:
                if each.get("name") == target and each.get("protocol", "TCP") == port.get("protocol", "TCP"):
                    return int(each["containerPort"])
    return None
