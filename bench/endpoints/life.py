"""Runs one operator through the life of many endpoints."""

import asyncio
from dataclasses import dataclass

import psutil

from bench.endpoints.user import User
from bench.lives import Outside, Phase
from bench.processes import operator
from bench.progress import say
from controlplane import Cluster
from controlplane.access import wait_for
from pilotage.api.names import ENDPOINTS

SECONDS_MAX = 3600.0
"""Timeout of a phase, generous enough for a machine that is busy with other work."""


@dataclass(frozen=True, slots=True)
class Life:
    """The phases of one operator, how many of its writes were Events, and its memory when all endpoints served."""

    create: Phase
    delete: Phase
    events: int
    rss_bytes: int

    @property
    def total(self) -> Phase:
        """Cost from creation to deletion."""
        return self.create + self.delete


def live(cluster: Cluster, name: str, endpoints: int) -> Life:
    """Start the operator, have a number of endpoints made ready and deleted, and stop it."""
    user = f"bench-endpoints-{name}"
    kubeconfig = str(cluster.user(user, groups=["system:masters"]))
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": user}})
    cluster.wait_for_service_account(user)
    since = cluster.audit_mark()
    with operator(f"{name}_endpoints", kubeconfig, user) as process:
        plural = ENDPOINTS.plural
        wait_for(f"watch by {name}", lambda: cluster.audit(since=since, user=user, verb="watch", resource=plural))
        outside = Outside(cluster, user, psutil.Process(process.pid))
        create, delete, rss_bytes = asyncio.run(_phases(outside, str(cluster.kubeconfig), user, endpoints, name))
    events = cluster.audit(since=since, user=user, resource="events")
    return Life(create, delete, len(events), rss_bytes)


async def _phases(
    outside: Outside, kubeconfig: str, namespace: str, endpoints: int, name: str
) -> tuple[Phase, Phase, int]:
    async with User.connect(kubeconfig, namespace, endpoints) as user:
        say(f"endpoints: {name}: create {endpoints:,}")
        create = await outside.measure(user.create, SECONDS_MAX)
        rss_bytes: int = outside.process.memory_info().rss
        say(f"endpoints: {name}: delete (created in {create.wall_seconds:.0f} s)")
        delete = await outside.measure(user.delete, SECONDS_MAX)
    return create, delete, rss_bytes
