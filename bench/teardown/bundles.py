"""Endpoints to take down: each a ConfigMap, a Deployment of one pod, a Service, an HPA and an Ingress."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.parallel import in_parallel
from controlplane.components import NODE
from pilotage.kube import Client, Object, ObjectKey, Resource

Json = dict[str, Any]

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
SERVICES = Resource("", "v1", "services", "Service")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
PODS = Resource("", "v1", "pods", "Pod")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")

MADE = (CONFIG_MAPS, DEPLOYMENTS, SERVICES, AUTOSCALERS, INGRESSES)
GROWN = (REPLICA_SETS, PODS, SLICES)
"""Objects that controllers create for them."""
EVERY_NAMESPACE_HAS = "kube-root-ca.crt"
CONCURRENCY = 32
SECONDS_MAX = 600.0
POLL_SECONDS = 0.1
LABEL = "bundle"


@dataclass(frozen=True, slots=True)
class Made:
    """One object that was made."""

    resource: Resource
    key: ObjectKey
    uid: str


def bundle(name: str, group: str) -> list[tuple[Resource, Json]]:
    """The five objects of one endpoint; `group` is the value of their label, the same for all endpoints of a test."""
    labels = {LABEL: group, "app": name}
    meta = {"name": name, "labels": labels}
    port = {"name": "http", "port": 80, "targetPort": 8080}
    pod = {
        # Past the scheduler: it has no part in a deletion.
        "nodeName": NODE["metadata"]["name"],
        "containers": [
            {
                "name": "server",
                "image": "registry.example/server:1.0",
                "envFrom": [{"configMapRef": {"name": name}}],
                "resources": {"requests": {"cpu": "10m"}},
            }
        ],
    }
    backend = {"service": {"name": name, "port": {"number": 80}}}
    rule = {"host": f"{name}.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    bodies: list[Json] = [
        {"data": {"MODEL": name}},
        {
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            }
        },
        {"spec": {"selector": {"app": name}, "ports": [port]}},
        {"spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4}},
        {"spec": {"rules": [rule]}},
    ]
    return [
        (resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body})
        for resource, body in zip(MADE, bodies, strict=True)
    ]


def names(count: int) -> list[str]:
    """Names of the endpoints."""
    return [f"endpoint-{number:04d}" for number in range(count)]


def manifests(count: int, group: str) -> str:
    """All endpoints as one file for `-f`. JSON is YAML."""
    return "\n---\n".join(json.dumps(body) for name in names(count) for _, body in bundle(name, group)) + "\n"


def write_manifests(folder: Path, count: int, group: str) -> Path:
    """The same, in a folder of its own; returns that folder."""
    folder.mkdir(parents=True)
    (folder / "endpoints.yaml").write_text(manifests(count, group))
    return folder


async def create(client: Client, namespace: str, count: int, group: str) -> list[Made]:
    """Make them all, as fast as the server takes them."""
    wanted = [each for name in names(count) for each in bundle(name, group)]
    made: list[Made] = []

    async def one(number: int) -> None:
        resource, body = wanted[number]
        created = await client.create(resource, body, namespace=namespace)
        made.append(Made(resource, created.key, created.meta.uid))

    await in_parallel(one, range(len(wanted)), min(CONCURRENCY, len(wanted)))
    return made


async def wait_until_ready(client: Client, namespace: str, count: int) -> None:
    """Wait until every Deployment has its pod, and every Service knows it."""

    async def ready() -> bool:
        deployments = (await client.list(DEPLOYMENTS, namespace)).items
        if sum(map(_is_available, deployments)) < count:
            return False
        return sum(map(_has_endpoint, (await client.list(SLICES, namespace)).items)) >= count

    await until(ready)


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = SECONDS_MAX) -> None:
    """Ask again and again. Raises `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while True:
            if await condition():
                return
            await asyncio.sleep(POLL_SECONDS)


async def left(client: Client, namespace: str, resources: Iterable[Resource] = (*MADE, *GROWN)) -> dict[Resource, int]:
    """Number of remaining objects of each kind, by parallel lists of metadata; kinds with none are left out."""

    async def count(resource: Resource) -> int:
        listed = await client.list(resource, namespace, metadata_only=True)
        return sum(each.meta.name != EVERY_NAMESPACE_HAS for each in listed.items)

    asked = list(resources)
    counts = await asyncio.gather(*map(count, asked))
    return {resource: number for resource, number in zip(asked, counts, strict=True) if number}


def _is_available(deployment: Object) -> bool:
    return bool(deployment.to_dict().get("status", {}).get("availableReplicas"))


def _has_endpoint(slice_: Object) -> bool:
    return any(each.get("conditions", {}).get("ready") for each in slice_.to_dict().get("endpoints") or ())
