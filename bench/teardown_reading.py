"""Cost of reading the world of a teardown, beside the bare lists that it consists of.

One namespace with 5,000 objects on a real API server. Bare is: the same lists over pooled connections, answers thrown
away. Each measurement makes its connections anew, as a command does; ours asks the server what kinds there are, too.
All run without Python's garbage collector, as commands that look and end do.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench import steadiness
from bench.figures import PILOTAGE, Goal, Section
from bench.peers.parallel import in_parallel
from bench.progress import say
from bench.run import Run
from bench.stock import CONCURRENCY, deployment
from controlplane import Cluster
from pilotage.kube import Client, ClusterConfig, Discovery, Resource, load_config
from pilotage.kube.transport import Request, Response, Transport
from pilotage.teardown.snapshot.gather import gather, readable
from pilotage.teardown.snapshot.world import World

NAMESPACE = "bench-teardown"
EACH = 1_000
RATIO_MAX = 1.5
ROUNDS = 9
CONNECTIONS = (4, 8, 16)
"""Numbers of connections that the bare lists are tried with; the fastest counts."""
BARE = "bare lists"
_ACCEPT = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def run(run: Run) -> Section:
    """Make the objects, then read them in turn."""
    asyncio.run(_make(run.cluster))
    gc.disable()
    try:
        return asyncio.run(_measure(load_config(kubeconfig=str(run.cluster.kubeconfig))))
    finally:
        gc.enable()


async def _make(cluster: Cluster) -> None:
    say(f"teardown: creating {EACH * len(KINDS):,} objects")
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench") as client:

        async def create(number: int) -> None:
            for resource, make in KINDS.items():
                await client.create(resource, make(f"web-{number:04}"), namespace=NAMESPACE)

        await in_parallel(create, range(EACH), CONCURRENCY)


def _labelled(name: str, **fields: object) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app.kubernetes.io/name": name}}, **fields}


def _deployment(name: str) -> dict[str, Any]:
    made = deployment(name)
    made["spec"]["replicas"] = 0
    return made


def _service(name: str) -> dict[str, Any]:
    # Headless: there are not enough cluster addresses.
    return _labelled(name, spec={"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": 80}]})


def _ingress(name: str) -> dict[str, Any]:
    backend = {"service": {"name": name, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return _labelled(name, spec={"rules": [{"host": f"{name}.example.com", "http": {"paths": [path]}}]})


KINDS: dict[Resource, Callable[[str], dict[str, Any]]] = {
    Resource("", "v1", "configmaps", "ConfigMap"): lambda name: _labelled(name, data={"model": name}),
    Resource("", "v1", "secrets", "Secret"): lambda name: _labelled(name, stringData={"token": name}),
    Resource("", "v1", "services", "Service"): _service,
    Resource("apps", "v1", "deployments", "Deployment"): _deployment,
    Resource("networking.k8s.io", "v1", "ingresses", "Ingress"): _ingress,
}


class _Counted:
    """A transport, and what went over it."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests = 0

    async def send(self, request: Request) -> Response:
        self.requests += 1
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


async def _measure(config: ClusterConfig) -> Section:
    async with Client.connect(config) as client:
        targets = [each.path(NAMESPACE) for each in readable(await Discovery(client).surface(), None, frozenset())]
    byte_counts: list[int] = []
    contestants: dict[str, Callable[[Client], Awaitable[object]]] = {PILOTAGE: _gather}
    for connections in CONNECTIONS:
        contestants[f"{BARE}, {connections}"] = _bare(targets, connections, byte_counts)
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    cpu: dict[str, list[float]] = {name: [] for name in contestants}
    requests: dict[str, int] = {}
    for number in range(ROUNDS + 1):
        say(f"teardown: reading {EACH * len(KINDS):,} objects, round {number} of {ROUNDS}")
        steadiness.sample()
        for name, read in contestants.items():
            counts: list[_Counted] = []
            gc.collect()
            started, cpu_started = time.monotonic(), time.process_time()
            async with Client.connect(config) as client:
                await read(client.through(lambda inner, counts=counts: _count(inner, counts)))  # type: ignore[misc]
            if number:  # the first warms up both sides
                seconds[name].append(time.monotonic() - started)
                cpu[name].append(time.process_time() - cpu_started)
            requests[name] = counts[0].requests
    return _section(seconds, cpu, requests, byte_counts[0])


def _count(inner: Transport, counts: list[_Counted]) -> _Counted:
    counts.append(_Counted(inner))
    return counts[0]


async def _gather(client: Client) -> World:
    world = await gather(client, Discovery(client), namespaces=(NAMESPACE,))
    assert len(world.of("", "Secret", NAMESPACE)) == EACH
    return world


def _bare(targets: list[str], connections: int, byte_counts: list[int]) -> Callable[[Client], Awaitable[object]]:
    async def read(client: Client) -> None:
        sizes: list[int] = []

        async def get(number: int) -> None:
            sizes.append(len(await client.get_path(targets[number], accept=_ACCEPT)))

        await in_parallel(get, range(len(targets)), connections)
        byte_counts.append(sum(sizes))

    return read


def _section(
    seconds: dict[str, list[float]], cpu: dict[str, list[float]], requests: dict[str, int], size: int
) -> Section:
    title = f"Reading the world: {EACH * len(KINDS):,} objects in one namespace, {size / 1e6:.1f} MB of metadata"
    section = Section("teardown-reading", title)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    section.add("wall time", "s", medians)
    section.add("CPU of the client", "s", {name: statistics.median(each) for name, each in cpu.items()})
    section.add("requests", "", {name: float(each) for name, each in requests.items()})
    best = min(value for name, value in medians.items() if name != PILOTAGE)
    section.goals.append(Goal("wall time of gather to the best bare lists", medians[PILOTAGE] / best, RATIO_MAX, "×"))
    section.notes.append("bare lists, N: over N connections, answers thrown away; without asking what kinds there are")
    return section


def main() -> None:
    """``python -m bench.teardown_reading``: this benchmark alone."""
    from bench.run import QUICK
    from bench.stock import Stock

    with Cluster(components=()) as cluster:
        print(run(Run(cluster, Stock(cluster), QUICK)))


if __name__ == "__main__":
    main()
