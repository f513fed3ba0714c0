"""Two managers want the same Lease; whoever has it writes its name into a ConfigMap, again and again.

Nobody writes who does not hold the Lease, or who has not renewed it in time; and once the faults are over, somebody
writes again.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pilotage.kube import LEASES, ObjectKey, Resource, merge_patch
from pilotage.kube.wire import parse_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.leader import Election, LeaseLost
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import Result
from pilotage_sim.scenario import Scenario
from pilotage_sim.world import NotSettled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilotage.kube import Client
    from pilotage.runtime.controller import Context
    from pilotage.runtime.types import Reconcile
    from pilotage_harbor.storage.store import Event
    from pilotage_sim.process import Main

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
RECORD = ObjectKey("default", "record")
LEASE = ObjectKey("default", "writers")
LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 6.0, 4.0, 1.0
WRITE_SECONDS = 1.5
PLAY_SECONDS = 6.0
SLACK_SECONDS = 0.05
"""Latency of a write, in seconds: it was allowed when it was sent."""
LEADER_SECONDS_MAX = 45.0
"""A Lease runs out, and a cache that could not be read is tried again after at most half a minute."""


class LeaderScenario(Scenario):
    """Two managers compete for a Lease; only its holder writes."""

    ends = (LeaseLost,)
    manager: type[Manager] = Manager

    def processes(self) -> Mapping[str, Main]:
        """Two candidates."""
        self.starts = 0
        self.last_write = -1.0
        self.found: list[str] = []
        self.world.core.store.listen("configmaps", self._written)
        return {"a": self.manage, "b": self.manage}

    async def manage(self, client: Client) -> None:
        """The program under test."""
        self.starts += 1
        identity = f"{client.name}-{self.starts}"
        election = Election(LEASE, identity, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS)
        manager = self.manager(client, name="writer", seed=self.starts, election=election)
        manager.add("writer", manager.informer(CONFIG_MAPS, namespace="default"), self.writer(identity))
        await manager.run()

    def writer(self, identity: str) -> Callable[[Context], Reconcile]:
        """Writes its name, for ever."""

        def make(context: Context) -> Reconcile:
            async def reconcile(key: ObjectKey) -> Result:
                now = f"{asyncio.get_running_loop().time():.6f}"
                await context.client.patch(CONFIG_MAPS, key, merge_patch({"data": {"by": identity, "at": now}}))
                return Result(requeue_after=WRITE_SECONDS)

            return reconcile

        return make

    async def prepare(self) -> None:
        """The record that is written to."""
        metadata = {"namespace": RECORD.namespace, "name": RECORD.name}
        await self.world.client("others").create(CONFIG_MAPS, {"metadata": metadata})

    async def play(self) -> None:
        """They compete; then there is time to recover."""
        await asyncio.sleep(PLAY_SECONDS)
        await self.after_faults(0.0)
        healed = asyncio.get_running_loop().time()
        await self.world.until(lambda: self.last_write > healed, LEADER_SECONDS_MAX)
        # Two who both write wake each other for ever: to see it once is enough. As a rule nothing is found until then.
        with contextlib.suppress(NotSettled):
            await self.world.until(lambda: self.found, 2 * LEASE_SECONDS)

    def problems(self) -> list[str]:
        """The findings of `_written`, and whether somebody leads."""
        silent = asyncio.get_running_loop().time() - self.last_write
        found = list(dict.fromkeys(self.found))
        if silent > 2 * WRITE_SECONDS:
            found.append(f"nobody leads: the last write was {silent:.1f} s ago")
        return found

    def _written(self, event: Event) -> None:
        """Check each write as it happens: its writer holds the Lease, and has renewed it not too long ago."""
        data = (self.world.find(CONFIG_MAPS, RECORD) or {}).get("data")
        if event.entry.name != RECORD.name or not data:
            return
        loop = asyncio.get_running_loop()
        self.last_write = loop.time()
        lease = self.world.find(LEASES, LEASE)
        spec = lease["spec"] if lease else {}
        if spec.get("holderIdentity") != data["by"]:
            self.found.append(f"{data['by']} wrote while the Lease was held by {spec.get('holderIdentity')!r}")
            return
        age = (utc_now() - parse_time(spec["renewTime"])).total_seconds()
        if age > RENEW_SECONDS + SLACK_SECONDS:
            self.found.append(f"{data['by']} wrote {age:.1f} s after it had last renewed the Lease")
