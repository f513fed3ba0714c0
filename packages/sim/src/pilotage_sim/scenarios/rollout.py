"""A rollout in steps behind the gateway: promoted, and the next one aborted, whatever goes wrong for the operator.

In every state the weights add up to 100, a Service with a weight has its object and the replicas that its share needs,
a step is noted only after the gateway has acknowledged its weight, and what was aborted is tried once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pilotage.api.names import ENDPOINTS, TEARDOWNS
from pilotage.kube import Propagation, merge_patch
from pilotage_sim.scenarios.endpoint import KEY, SETTLED_SECONDS, STEP_SECONDS_MAX, SUBJECT
from pilotage_sim.scenarios.endpoint_gateway import EndpointBehindGateway
from pilotage_sim.scenarios.teardown_oracles import nothing_early
from pilotage_sim.scenarios.traffic_oracles import WatchedTraffic

if TYPE_CHECKING:
    from pilotage.kube import Json
    from pilotage_harbor.storage.store import Event

REPLICAS = 2
WEIGHT = 50
STEPS: tuple[dict[str, object], ...] = ({"setWeight": WEIGHT}, {"pause": {"duration": "5s"}}, {"pause": {}})
PAUSED = 3
RETRY_SECONDS = 700.0
"""Time in which an aborted spec is not tried again."""


class EndpointRollout(EndpointBehindGateway):
    """Promoted, aborted and deleted."""

    drain_seconds = 30

    async def prepare(self) -> None:
        """Prepare the endpoint and the gateway, and watch every state."""
        self.traffic = WatchedTraffic(self.world, REPLICAS)
        await super().prepare()
        self.world.core.store.listen_to_all(self._check)

    async def play(self) -> None:
        """A person promotes one revision, aborts the next one, and deletes."""
        canary: Json = {"steps": list(STEPS), "surge": 1, "former": {"keepSeconds": 0}}
        spec: Json = {
            "model": {"source": "pvc://weights/model.gguf"},
            "route": self.route,
            "replicas": REPLICAS,
            "strategy": {"type": "Canary", "canary": canary},
            "deletion": {"drainSeconds": self.drain_seconds},
        }
        metadata = {"namespace": KEY.namespace, "name": KEY.name}
        await self.others.create(ENDPOINTS, {"metadata": metadata, "spec": spec})
        await self.world.until(lambda: self._serves("chat-1"), STEP_SECONDS_MAX)
        await self._change("--verbose")
        await self.world.until(lambda: self._is_in("chat-2", "Pausing"), STEP_SECONDS_MAX)
        await self._annotate("promote", f"chat-2/{PAUSED}")
        await self.world.until(lambda: self._serves("chat-2") and not self._parts("chat-1"), STEP_SECONDS_MAX)
        await self._change("--more-verbose")
        await self.world.until(lambda: self._is_in("chat-3", "Pausing"), STEP_SECONDS_MAX)
        await self._annotate("abort", "chat-3")
        await self.world.until(lambda: self._is_in("chat-3", "Aborted") and not self._parts("chat-3"), STEP_SECONDS_MAX)
        await self.after_faults(RETRY_SECONDS)
        self._expect_one_try()
        found = await self.others.get(ENDPOINTS, KEY)
        await self.others.delete(ENDPOINTS, KEY, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        await self.world.until(lambda: self.world.find(ENDPOINTS, KEY) is None, STEP_SECONDS_MAX)
        await self.world.settle(SETTLED_SECONDS)

    async def _change(self, argument: str) -> None:
        await self.others.patch(ENDPOINTS, KEY, merge_patch({"spec": {"runtime": {"args": [argument]}}}))

    async def _annotate(self, name: str, value: str) -> None:
        annotations = {f"pilotage.dev/{name}": value}
        await self.others.patch(ENDPOINTS, KEY, merge_patch({"metadata": {"annotations": annotations}}))

    def _rollout(self) -> Json:
        found: Json = (self.world.find(ENDPOINTS, KEY) or {}).get("status", {}).get("rollout", {})
        return found

    def _is_in(self, revision: str, phase: str) -> bool:
        found = self._rollout()
        return (found.get("revision"), found.get("phase"), found.get("step")) == (revision, phase, PAUSED)

    def _expect_one_try(self) -> None:
        history = (self.world.find(ENDPOINTS, KEY) or {"status": {"history": []}})["status"]["history"]
        states = [(past["number"], past["state"]) for past in history]
        if states != [(1, "Previous"), (2, "Current"), (3, "Aborted")]:
            self.early.append(f"after an abort the history is {states}")

    # Every state

    def _check(self, event: Event) -> None:
        if event.type == "DELETED":
            return
        body: Json = msgspec.json.decode(event.entry.raw)
        if event.storage == f"{ENDPOINTS.plural}.{ENDPOINTS.group}" and "status" in body:
            self._check_step(body["status"].get("rollout", {}))

    def _check_step(self, rollout: Json) -> None:
        """The note of the step after the weight follows its proof."""
        candidate = rollout.get("revision", "")
        noted = rollout.get("phase") == "Pausing" and rollout.get("step", 0) > 1
        if noted and self.traffic.programmed.get(candidate) != WEIGHT:
            self.early.append(f"step {rollout['step']} was noted with {self.traffic.programmed}")

    def problems(self) -> list[str]:
        """All oracles."""
        found = [f"{part} is left" for part in self._parts()] + self.early + self.traffic.problems
        records = self.world.objects(TEARDOWNS)
        for record in records:
            result = record.get("status", {}).get("receipt", {}).get("result")
            if result != "complete":
                found.append(f"teardown/{record['metadata']['name']} has no complete receipt, but {result}")
        reasons = {record["spec"]["reason"] for record in records}
        found += [f"there is no record of what was {each}" for each in ("Aborted", "Deleted") if each not in reasons]
        for name in ("chat-1", "chat-2", "chat-3"):
            bundle = {made.uid for made in self.history.made.values() if made.name == name}
            bundle |= {below for uid in bundle for below in self.history.below(uid)}
            found += nothing_early(self.world.trace, self.history, SUBJECT, sorted(bundle))
        return found
