"""The objects on the API server that the clients read, watch and patch."""

import asyncio
import time
from typing import Any

from bench.peers import Job, object_name
from bench.peers.parallel import in_parallel
from bench.progress import say
from controlplane import Cluster
from pilotage.kube import Client, ObjectKey, Resource, load_config

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CONCURRENCY = 32


class Stock:
    """Deployments, as many as are asked for, each number in a namespace of its own. No controller reacts to them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: dict[int, Job] = {}

    def of(self, objects: int) -> Job:
        """Job with this number of objects, which are created at the first call."""
        if objects not in self._made:
            started = time.monotonic()
            self._made[objects] = asyncio.run(_make(self._cluster, f"bench-{objects}", objects))
            say(f"created {objects:,} Deployments in {time.monotonic() - started:.0f} s")
        return self._made[objects]


async def _make(cluster: Cluster, namespace: str, objects: int) -> Job:
    kubeconfig = str(cluster.kubeconfig)
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    async with Client.connect(load_config(kubeconfig=kubeconfig), name="bench") as client:

        async def create(number: int) -> None:
            await client.create(DEPLOYMENTS, deployment(object_name(number)), namespace=namespace)

        await in_parallel(create, range(objects), CONCURRENCY)
        one = await client.get(DEPLOYMENTS, ObjectKey(namespace, object_name(0)))
    return Job(kubeconfig, namespace, objects, len(one.raw))


def deployment(name: str) -> dict[str, Any]:
    """Deployment of the size of a model server's: between 2 and 3 KB with the fields that the API server adds."""
    labels = {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/part-of": "bench",
        "app.kubernetes.io/managed-by": "pilotage",
    }
    return {
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"bench.pilotage.dev/model": f"registry.example/models/{name}@sha256:{'0' * 64}"},
            "ownerReferences": [
                {
                    "apiVersion": "bench.pilotage.dev/v1",
                    "kind": "Model",
                    "name": name,
                    "uid": "00000000-0000-4000-8000-000000000000",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": name}},
                "spec": {
                    "containers": [
                        {
                            "name": "server",
                            "image": "registry.example/server:1.0",
                            "args": [f"--model=/models/{name}", "--port=8080"],
                            "resources": {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "8Gi"}},
                        }
                    ],
                },
            },
        },
    }
