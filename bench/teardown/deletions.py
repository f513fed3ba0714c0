"""Every contestant takes down the same endpoints, one contestant after the other, on one control plane."""

import asyncio
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import steadiness
from bench.progress import say
from bench.teardown.bundles import left, until, wait_until_ready
from bench.teardown.contestants import CONTESTANTS, FLOOR, KUBECTL, CommandFailed, Contestant, Task
from bench.teardown.table import columns, cpu_seconds, number, ratio
from controlplane import Cluster
from field import FieldError
from pilotage.kube import Client, load_config

ADMINISTRATORS = ("system:masters",)
SLOW_ENDPOINTS_MAX = 100
SMALL_ENDPOINTS_MAX = 10
ROUNDS_OF_SMALL, ROUNDS_OF_MANY, ROUNDS_OF_VERY_MANY = 9, 5, 2
SETTLE_SECONDS = 2.0
"""Pause after they are ready: controllers still write statuses and events."""
NAMESPACES = "/api/v1/namespaces"


@dataclass(frozen=True, slots=True)
class Deletion:
    """Duration of the deletion of a number of endpoints by one contestant: the median of the rounds."""

    contestant: str
    endpoints: int
    seconds: float
    cpu_seconds: float
    requests_per_endpoint: float
    left_at_exit: float
    """Objects that were still there when it said that it was done."""
    rounds: int


def run(cluster: Cluster, sizes: Sequence[int], only: Sequence[str], *, slow: bool) -> "Outcome":
    """All of them, or only some. Those that are `slow` are left out at large sizes, unless that is asked for."""
    outcome = Outcome([], [])
    chosen = list(_available([each for each in CONTESTANTS if not only or each.name in only], outcome.notes))
    for endpoints in sizes:
        able = [each for each in chosen if slow or not each.slow or endpoints <= SLOW_ENDPOINTS_MAX]
        outcome.notes += [
            f"{each.name} was not asked for {endpoints:,}: --slow does" for each in chosen if each not in able
        ]
        outcome.deletions += _in_turn(cluster, able, endpoints, outcome.notes)
    return outcome


def _in_turn(cluster: Cluster, contestants: Sequence[Contestant], endpoints: int, notes: list[str]) -> list[Deletion]:
    """Rounds in which each has its turn, so that what else the machine does is everybody's."""
    kubeconfigs = {each.name: cluster.user(_user(each), ADMINISTRATORS) for each in contestants}
    results: dict[str, list[tuple[float, float, float, float]]] = {each.name: [] for each in contestants}
    going = {each.name: _rounds(each, endpoints) for each in contestants}
    for turn in range(1, max(going.values(), default=0) + 1):
        for each in contestants:
            if turn > going[each.name]:
                continue
            try:
                results[each.name].append(_once(cluster, each, kubeconfigs[each.name], endpoints, turn))
            except (CommandFailed, TimeoutError) as error:  # the others are worth measuring still
                going[each.name] = 0
                notes.append(f"{each.name} failed with {endpoints:,}: {error}")
                say(notes[-1])
    return [_median(name, endpoints, found) for name, found in results.items() if found]


def _rounds(contestant: Contestant, endpoints: int) -> int:
    if endpoints <= SMALL_ENDPOINTS_MAX:
        return ROUNDS_OF_SMALL
    if contestant.slow:
        return 1
    return ROUNDS_OF_MANY if endpoints <= SLOW_ENDPOINTS_MAX else ROUNDS_OF_VERY_MANY


def _user(contestant: Contestant) -> str:
    return f"bench-{contestant.name.replace(' ', '')}"


def _median(contestant: str, endpoints: int, results: Sequence[tuple[float, float, float, float]]) -> Deletion:
    seconds, cpu, requests, remaining = (statistics.median(each) for each in zip(*results, strict=True))
    return Deletion(contestant, endpoints, seconds, cpu, requests / endpoints, remaining, len(results))


def _available(contestants: Iterable[Contestant], notes: list[str]) -> Iterator[Contestant]:
    for each in contestants:
        try:
            each.get()
        except FieldError as error:
            notes.append(f"{each.name} was left out: {error}")
            say(notes[-1])
        else:
            yield each


def _once(
    cluster: Cluster, contestant: Contestant, kubeconfig: Path, endpoints: int, turn: int
) -> tuple[float, float, float, float]:
    """Seconds, those of its CPU, requests, and objects that were left."""
    user = _user(contestant)
    namespace = f"{user}-{endpoints}-{turn}"
    cluster.request("POST", NAMESPACES, {"metadata": {"name": namespace}})
    cluster.wait_for_service_account(namespace)
    folder = cluster.folder / namespace
    folder.mkdir()
    task = Task(kubeconfig, namespace, endpoints, folder)
    say(f"{contestant.name}: making {endpoints:,} endpoints")
    contestant.make(task)
    asyncio.run(_ready(cluster, namespace, endpoints))
    assert task.manifests.exists()  # written before the clock starts
    time.sleep(SETTLE_SECONDS)
    steadiness.sample()
    mark = cluster.audit_mark()
    used, started = cpu_seconds(), time.perf_counter()
    contestant.delete(task)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - used
    remaining = asyncio.run(_left(cluster, namespace))
    requests = len(cluster.audit(since=mark, user=user))
    say(f"{contestant.name}: {endpoints:,} deleted in {seconds:.2f} s, {requests} requests, {remaining} left at exit")
    return seconds, cpu, requests, remaining


async def _ready(cluster: Cluster, namespace: str, endpoints: int) -> None:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench") as client:
        await wait_until_ready(client, namespace, endpoints)


async def _left(cluster: Cluster, namespace: str) -> int:
    """Number of objects left; returns when there are none, so that the next contestant is not disturbed."""
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench") as client:
        at_exit = sum((await left(client, namespace)).values())

        async def gone() -> bool:
            return not await left(client, namespace)

        await until(gone)
    return at_exit


@dataclass(slots=True)
class Outcome:
    """Result, as text or as data."""

    deletions: list[Deletion]
    notes: list[str]

    def as_data(self) -> dict[str, Any]:
        """Result for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        title = "Deletion of endpoints: ConfigMap, Deployment (one pod), Service, HPA and Ingress each"
        rows = [
            ["endpoints", "", "rounds", "seconds", "× floor", "× kubectl", "CPU s", "requests each", "left at exit"]
        ]
        rows += [
            [
                f"{each.endpoints:,}",
                each.contestant,
                str(each.rounds),
                number(each.seconds),
                ratio(each.seconds, self._seconds(FLOOR, each.endpoints)),
                ratio(each.seconds, self._seconds(KUBECTL, each.endpoints)),
                number(each.cpu_seconds),
                number(each.requests_per_endpoint),
                f"{each.left_at_exit:,.0f}",
            ]
            for each in self.deletions
        ]
        return "\n".join([title, "=" * len(title), *columns(rows), "medians of rounds in turn", *self.notes])

    def _seconds(self, contestant: str, endpoints: int) -> float | None:
        found = [
            each.seconds for each in self.deletions if (each.contestant, each.endpoints) == (contestant, endpoints)
        ]
        return found[0] if found else None
