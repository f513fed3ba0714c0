"""Runs an operator through the life of many objects, and measures each phase of it from outside."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

import psutil

from bench import steadiness
from bench.driver import QUIET_SECONDS, Driver
from bench.operators import PLURAL
from bench.processes import operator
from bench.progress import say
from controlplane import Cluster
from controlplane.access import wait_for

READS = ("get", "list", "watch")
PHASE_SECONDS_MAX = 900.0


@dataclass(frozen=True, slots=True)
class Phase:
    """Cost of one phase, or of several, to an operator; over all objects."""

    cpu_seconds: float
    wall_seconds: float
    reads: int
    writes: int

    def __add__(self, other: "Phase") -> "Phase":
        return Phase(
            self.cpu_seconds + other.cpu_seconds,
            self.wall_seconds + other.wall_seconds,
            self.reads + other.reads,
            self.writes + other.writes,
        )


@dataclass(frozen=True, slots=True)
class Lives:
    """The phases of one operator, and its memory when it knew all objects."""

    create: Phase
    update: Phase
    delete: Phase
    rss_bytes: int

    @property
    def total(self) -> Phase:
        """Cost from creation to deletion."""
        return self.create + self.update + self.delete


def live(cluster: Cluster, name: str, widgets: int, *, polls: int) -> Lives:
    """Start the operator, take it through all phases, and stop it. Every object's end state is checked."""
    user = f"bench-{name}-{polls}"
    kubeconfig = str(cluster.user(user, groups=["system:masters"]))
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": user}})
    since = cluster.audit_mark()
    with operator(f"{name}_operator", kubeconfig, user, str(polls)) as process:
        wait_for(f"watch by {name}", lambda: cluster.audit(since=since, user=user, verb="watch", resource=PLURAL))
        outside = Outside(cluster, user, psutil.Process(process.pid))
        return asyncio.run(_phases(outside, str(cluster.kubeconfig), user, widgets, f"{name}, {polls} waits"))


async def _phases(outside: "Outside", kubeconfig: str, namespace: str, widgets: int, what: str) -> Lives:
    async with Driver.connect(kubeconfig, namespace, widgets) as driver:
        say(f"lifecycle: {what}: create")
        create = await outside.measure(driver.create)
        rss_bytes: int = outside.process.memory_info().rss
        say(f"lifecycle: {what}: update")
        update = await outside.measure(driver.update)
        say(f"lifecycle: {what}: delete")
        delete = await outside.measure(driver.delete)
    return Lives(create, update, delete, rss_bytes)


class Outside:
    """Measures an operator from outside: CPU and memory of its process, requests of its user."""

    def __init__(self, cluster: Cluster, user: str, process: psutil.Process) -> None:
        self.process = process
        self._cluster = cluster
        self._user = user

    async def measure(
        self, action: Callable[[], Coroutine[None, None, None]], seconds_max: float = PHASE_SECONDS_MAX
    ) -> Phase:
        """Measure from before the action until the operator has answered it and is idle."""
        steadiness.sample()
        since, cpu, started = self._cluster.audit_mark(), self._cpu_seconds(), time.monotonic()
        async with asyncio.timeout(seconds_max):
            await self._unless_it_ends(action)
        wall = time.monotonic() - started - QUIET_SECONDS
        requests = self._cluster.audit(since=since, user=self._user)
        reads = sum(request.verb in READS for request in requests)
        return Phase(self._cpu_seconds() - cpu, wall, reads, len(requests) - reads)

    async def _unless_it_ends(self, action: Callable[[], Coroutine[None, None, None]]) -> None:
        acting = asyncio.create_task(action())
        try:
            while not (await asyncio.wait({acting}, timeout=1))[0]:
                if self.process.status() == psutil.STATUS_ZOMBIE:
                    raise RuntimeError(f"the operator of {self._user} has ended")
        finally:
            acting.cancel()
        await acting

    def _cpu_seconds(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)
