"""Time until many endpoints serve, beside the controllers of Kubernetes alone: `python -m bench.scale [N]`.

Each contestant has a control plane of its own with kwok. "controllers alone" gets the Deployments and Services that the
operator would make, from a client that just sends them: no operator can be faster than the controllers that make pods
of them. `--before CHECKOUT` runs the operator of another checkout of this repository, too, with its own environment.

The lag of an endpoint is the time from the moment its Deployment is available to the moment its status says Serving.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from bench import steadiness
from bench.figures import PILOTAGE, Goal, Section
from bench.lives import READS
from bench.peers import object_name
from bench.peers.parallel import in_parallel
from bench.processes import operator
from bench.progress import say
from controlplane import Cluster, NoControlPlane, StartError
from controlplane.access import wait_for
from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID
from pilotage.controllers.caches import MADE_BY_US
from pilotage.kube import PODS, Client, Json, ObjectKey, Propagation, Resource, load_config
from pilotage.operator.crds import crds
from pilotage.runtime.informer import Change, Informer
from pilotage.serving.resources import DEPLOYMENTS, SERVICES

ALONE = "controllers alone"
BEFORE = "before"
NAMESPACE = "bench-scale"
CONCURRENCY = 16
POLL_SECONDS = 0.1
SECONDS_MAX = 1800.0
RATIO_MAX = 1.3
LAG_SECONDS_MAX = 2.0
SERVE_WRITES_MAX = 5.0
DELETE_WRITES_MAX = 6.0
FLAGS = {
    "etcd": ["--quota-backend-bytes=8589934592"],
    # With their defaults of 20 and 50 requests a second, they would be all that the clock shows.
    "kube-controller-manager": ["--kube-api-qps=1000", "--kube-api-burst=2000"],
    "kube-scheduler": ["--kube-api-qps=1000", "--kube-api-burst=2000"],
}


class Passage(NamedTuple):
    """One phase of all endpoints, as a contestant has gone through it."""

    seconds: float
    server_cpu_seconds: float
    operator_cpu_seconds: float = 0.0
    reads: int = 0
    writes: int = 0


class Result(NamedTuple):
    """Figures of one contestant."""

    serve: Passage
    available_seconds: float
    """Seconds until all Deployments were available."""
    lags: tuple[float, ...] = ()
    delete: Passage | None = None


class _Status(msgspec.Struct):
    phase: str = ""
    available_replicas: int = msgspec.field(default=0, name="availableReplicas")


class _Object(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def spec() -> Json:
    """One replica without a route, whose requests are not waited for."""
    return {"model": {"source": "hf://org/repo/model.gguf"}, "deletion": {"drainSeconds": 0}}


class Watched:
    """The moments at which objects of a kind first were as wanted, by name."""

    def __init__(self, client: Client, resource: Resource, holds: Callable[[_Status], bool]) -> None:
        self.informer = Informer(client, resource, rng=random.Random(0), namespace=NAMESPACE)
        self.informer.add_handler(self._seen)
        self.since: dict[str, float] = {}
        self._holds = holds

    def _seen(self, change: Change) -> None:
        if change.new is not None and self._holds(change.new.decode_as(_Object).status):
            self.since.setdefault(change.new.meta.name, time.monotonic())


@contextlib.asynccontextmanager
async def following(*watched: Watched) -> AsyncIterator[None]:
    """Informers that run inside ``async with``."""
    tasks = [asyncio.create_task(each.informer.run()) for each in watched]
    try:
        for each in watched:
            await each.informer.synced.wait()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Meters:
    """CPU of the API server and the operator, and the requests of the operator, since `reset`."""

    def __init__(self, cluster: Cluster, process: psutil.Process | None) -> None:
        self._cluster = cluster
        self._server = _api_server()
        self._operator = process
        self.reset()

    def reset(self) -> None:
        """Start again from now."""
        self._mark = self._cluster.audit_mark()
        self._started = time.monotonic()
        self._server_cpu, self._operator_cpu = _cpu(self._server), _cpu(self._operator)

    def passage(self) -> Passage:
        """Figures since `reset`."""
        requests = self._cluster.audit(since=self._mark, user=NAMESPACE) if self._operator is not None else []
        reads = sum(request.verb in READS for request in requests)
        return Passage(
            time.monotonic() - self._started,
            _cpu(self._server) - self._server_cpu,
            _cpu(self._operator) - self._operator_cpu,
            reads,
            len(requests) - reads,
        )


def _api_server() -> psutil.Process:
    """The one that this process has started, through the supervisor of the control plane."""
    below = psutil.Process().children(recursive=True)
    return next(each for each in below if each.cmdline()[:1] and each.cmdline()[0].endswith("kube-apiserver"))


def _cpu(process: psutil.Process | None) -> float:
    if process is None:
        return 0.0
    times = process.cpu_times()
    return float(times.user + times.system)


async def with_operator(cluster: Cluster, process: psutil.Process, count: int, *, delete: bool) -> Result:
    """Create endpoints, wait until all serve; delete them, wait until nothing of them is left."""
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench-user") as client:
        serving = Watched(client, ENDPOINTS, lambda status: status.phase == "Serving")
        available = Watched(client, DEPLOYMENTS, lambda status: status.available_replicas > 0)
        async with following(serving, available):
            meters = Meters(cluster, process)
            started = time.monotonic()
            await _create(
                client, ENDPOINTS, [{"metadata": {"name": object_name(n)}, "spec": spec()} for n in range(count)]
            )
            await _until(lambda: len(serving.since) == count)
            serve = meters.passage()
            lags = [serving.since[name.removesuffix("-1")] - moment for name, moment in available.since.items()]
            until = max(available.since.values()) - started
            gone = await _delete(client, serving, meters) if delete else None
        return Result(serve, until, tuple(lags), gone)


async def _create(client: Client, resource: Resource, bodies: list[Json]) -> None:
    async def create(number: int) -> None:
        await client.create(resource, bodies[number], namespace=NAMESPACE)

    await in_parallel(create, range(len(bodies)), CONCURRENCY)


async def _delete(client: Client, endpoints: Watched, meters: Meters) -> Passage:
    objects = [*endpoints.informer.store.list()]

    async def delete(number: int) -> None:
        meta = objects[number].meta
        key = ObjectKey(NAMESPACE, meta.name)
        await client.delete(ENDPOINTS, key, uid=meta.uid, propagation=Propagation.BACKGROUND)

    say("scale: delete")
    meters.reset()
    await in_parallel(delete, range(len(objects)), CONCURRENCY)
    await _until(lambda: not len(endpoints.informer.store))
    passage = meters.passage()
    for resource in (*MADE_BY_US, PODS):
        left = (await client.list(resource, NAMESPACE, labels=LABEL_ENDPOINT_UID, metadata_only=True)).items
        if left:
            raise RuntimeError(f"{len(left)} {resource.plural} are left")
    return passage


async def alone(cluster: Cluster, parts: list[tuple[Resource, Json]], count: int) -> Result:
    """Create the Deployments and Services themselves; wait until all Deployments are available."""
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench-user") as client:
        available = Watched(client, DEPLOYMENTS, lambda status: status.available_replicas > 0)
        async with following(available):
            meters = Meters(cluster, None)

            async def create(number: int) -> None:
                for resource, body in parts:
                    await client.create(resource, _named(body, object_name(number)), namespace=NAMESPACE)

            await in_parallel(create, range(count), CONCURRENCY)
            await _until(lambda: len(available.since.keys() - {"sample-1"}) == count)
            return Result(passage := meters.passage(), passage.seconds)


async def sample_parts(cluster: Cluster) -> list[tuple[Resource, Json]]:
    """The parts that the operator has made for one endpoint, as they would be sent; the endpoint is named "sample"."""
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench-user") as client:
        serving = Watched(client, ENDPOINTS, lambda status: status.phase == "Serving")
        async with following(serving):
            await _create(client, ENDPOINTS, [{"metadata": {"name": "sample"}, "spec": spec()}])
            await _until(lambda: len(serving.since) == 1)
        found = []
        for resource in (SERVICES, DEPLOYMENTS):
            body = (await client.get(resource, ObjectKey(NAMESPACE, "sample-1"))).to_dict()
            labels = body["metadata"].get("labels", {})
            for field in ("clusterIP", "clusterIPs"):
                body["spec"].pop(field, None)
            found.append((resource, {"metadata": {"name": "sample-1", "labels": labels}, "spec": body["spec"]}))
        return found


def _named(body: Json, name: str) -> Json:
    """The same for another endpoint: its name, and its uid in the selector, differ for each."""
    text = json.dumps(body)
    uid = body["metadata"]["labels"].get(LABEL_ENDPOINT_UID, "sample")
    named: Json = json.loads(text.replace("sample", name).replace(uid, f"{name}-uid"))
    return named


async def _until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not done():  # noqa: ASYNC110 - informers tell by callbacks, and 0.1 s is fine enough here
            await asyncio.sleep(POLL_SECONDS)


# The contestants


@contextlib.contextmanager
def _cluster_with_kinds() -> Iterator[Cluster]:
    with Cluster(flags=FLAGS) as cluster:
        everything = {"apiVersion": "v1", "kind": "List", "items": [*crds(), _namespace("pilotage-system")]}
        cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(everything))
        cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{crd['metadata']['name']}" for crd in crds()))
        cluster.request("POST", "/api/v1/namespaces", _namespace(NAMESPACE))
        cluster.wait_for_service_account(NAMESPACE)
        yield cluster


def _namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@contextlib.contextmanager
def _operator(cluster: Cluster, checkout: Path | None) -> Iterator[psutil.Process]:
    """The operator of this checkout, or of another one, once it watches."""
    kubeconfig = str(cluster.user(NAMESPACE, groups=["system:masters"]))
    since = cluster.audit_mark()
    with operator("pilotage_endpoints", kubeconfig, NAMESPACE, checkout=checkout) as process:
        wait_for(
            "watch by the operator",
            lambda: cluster.audit(since=since, user=NAMESPACE, verb="watch", resource=ENDPOINTS.plural),
        )
        yield psutil.Process(process.pid)


def run_operator(count: int, checkout: Path | None = None) -> Result:
    """One operator on a control plane of its own."""
    say(f"scale: {checkout or PILOTAGE}: create {count:,}")
    steadiness.sample()
    with _cluster_with_kinds() as cluster, _operator(cluster, checkout) as process:
        return asyncio.run(with_operator(cluster, process, count, delete=True))


def run_alone(count: int) -> Result:
    """The controllers of Kubernetes on a control plane of their own, without an operator."""
    say(f"scale: {ALONE}: create {count:,}")
    with _cluster_with_kinds() as cluster:
        with _operator(cluster, None):
            parts = asyncio.run(sample_parts(cluster))
        steadiness.sample()
        return asyncio.run(alone(cluster, parts, count))


def section(results: dict[str, Result], count: int) -> Section:
    """The table, and the goals that it decides."""
    found = Section("scale", f"{count:,} endpoints without a route, until all serve; and until all are gone")

    def add(measure: str, unit: str, value: Callable[[Result], float | None]) -> None:
        values = {name: value(result) for name, result in results.items()}
        found.add(measure, unit, {name: each for name, each in values.items() if each is not None})

    add("all Deployments available", "s", lambda each: each.available_seconds)
    add("all endpoints Serving", "s", lambda each: each.serve.seconds)
    add("lag, median", "s", lambda each: statistics.median(each.lags) if each.lags else None)
    add("lag, longest", "s", lambda each: max(each.lags) if each.lags else None)
    add("CPU of kube-apiserver, to serve", "s", lambda each: each.serve.server_cpu_seconds)
    add("CPU of the operator, to serve", "s", lambda each: each.serve.operator_cpu_seconds if each.lags else None)
    add("reads each, to serve", "", lambda each: each.serve.reads / count if each.lags else None)
    add("writes each, to serve", "", lambda each: each.serve.writes / count if each.lags else None)
    add("all gone", "s", lambda each: each.delete.seconds if each.delete else None)
    add("CPU of kube-apiserver, to delete", "s", lambda each: each.delete.server_cpu_seconds if each.delete else None)
    add("CPU of the operator, to delete", "s", lambda each: each.delete.operator_cpu_seconds if each.delete else None)
    add("reads each, to delete", "", lambda each: each.delete.reads / count if each.delete else None)
    add("writes each, to delete", "", lambda each: each.delete.writes / count if each.delete else None)
    ours, floor = results[PILOTAGE], results.get(ALONE)
    if floor is not None:
        ratio = ours.serve.seconds / floor.serve.seconds
        found.goals.append(Goal("time until all serve, in times of the controllers alone", ratio, RATIO_MAX, ""))
    assert ours.delete is not None
    found.goals += [
        Goal("median lag", statistics.median(ours.lags), LAG_SECONDS_MAX, "s"),
        Goal("writes each, to serve", ours.serve.writes / count, SERVE_WRITES_MAX, ""),
        Goal("writes each, to delete", ours.delete.writes / count, DELETE_WRITES_MAX, ""),
    ]
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__.splitlines()[0])
    parser.add_argument("endpoints", nargs="?", type=int, default=1_000, metavar="N", help="default: 1,000")
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="another checkout, with its environment in .venv"
    )
    parser.add_argument("--only-operator", action="store_true", help="leave out the controllers alone")
    args = parser.parse_args()
    results = {PILOTAGE: run_operator(args.endpoints)}
    if args.before is not None:
        results[BEFORE] = run_operator(args.endpoints, args.before)
    if not args.only_operator:
        results[ALONE] = run_alone(args.endpoints)
    print(f"\n{section(results, args.endpoints)}\n\nsteadiness: {steadiness.verdict()}")


if __name__ == "__main__":
    try:
        main()
    except (NoControlPlane, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
