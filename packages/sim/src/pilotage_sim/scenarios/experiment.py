"""Experiments on an endpoint behind the gateway, whatever goes wrong for the operator: one ends, two are deleted.

In every state, whatever a proxy may send requests or copies to can answer (`traffic_oracles`). An Experiment runs once
the gateway has acknowledged all of it; it has ended, and may go, once no part of a variant is left; and each variant
has one receipt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pilotage.api.names import ENDPOINTS, EXPERIMENT_FINALIZER, EXPERIMENTS, TEARDOWNS
from pilotage.kube import ObjectKey, Propagation
from pilotage.serving.resources import DEPLOYMENTS, SERVICES
from pilotage_sim.scenarios.endpoint import KEY, SETTLED_SECONDS, STEP_SECONDS_MAX, SUBJECT
from pilotage_sim.scenarios.endpoint_gateway import EndpointBehindGateway
from pilotage_sim.scenarios.teardown_oracles import nothing_early
from pilotage_sim.scenarios.traffic_oracles import WatchedTraffic

if TYPE_CHECKING:
    from pilotage.kube import Json, Resource
    from pilotage_harbor.storage.store import Event

SERVING = "chat-1"
ENDS, DELETED, HASTY = (ObjectKey("default", name) for name in ("ends", "deleted", "hasty"))
SHARED: Json = {"name": "shared", "weight": 10, "overrides": {"runtime": {"args": ["--verbose"]}}}
COPIED: Json = {"name": "copied", "mirror": {"percent": 20}, "same": True}
MATCH: Json = {"headers": [{"name": "x-tester", "exact": "yes"}]}
STORY: dict[ObjectKey, Json] = {
    ENDS: {"variants": [SHARED, COPIED], "duration": "1m"},
    DELETED: {"variants": [SHARED], "match": MATCH},
    HASTY: {"variants": [COPIED]},
}
VARIANTS = {"chat-2": 10, "chat-3": 20, "chat-4": 10, "chat-5": 20}
"""Shares of the variants of all, in the order of their revisions."""


def _storage(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _is_held(experiment: Json) -> bool:
    return EXPERIMENT_FINALIZER in experiment.get("metadata", {}).get("finalizers", ())


class EndpointExperiment(EndpointBehindGateway):
    """An experiment that ends, one that is deleted while it enters, and one that is as soon as it has a part."""

    drain_seconds = 30

    async def prepare(self) -> None:
        """Prepare the endpoint and the gateway, and watch every state."""
        self.traffic = WatchedTraffic(self.world, replicas=1)
        await super().prepare()
        self.world.core.store.listen_to_all(self._check)

    async def play(self) -> None:
        """A person waits for the end of one experiment, deletes the next ones, and then the endpoint."""
        spec: Json = {
            "model": {"source": "pvc://weights/model.gguf"},
            "route": self.route,
            "deletion": {"drainSeconds": self.drain_seconds},
        }
        metadata = {"namespace": KEY.namespace, "name": KEY.name}
        await self.others.create(ENDPOINTS, {"metadata": metadata, "spec": spec})
        await self.world.until(lambda: self._serves(SERVING), STEP_SECONDS_MAX)
        await self._begin(ENDS)
        await self.world.until(lambda: self._experiment(ENDS).get("phase") == "Ended", STEP_SECONDS_MAX)
        await self._begin(DELETED)
        await self.world.until(lambda: self.traffic.share("chat-4"), STEP_SECONDS_MAX)
        await self._delete(EXPERIMENTS, DELETED)
        await self._begin(HASTY)
        await self.world.until(lambda: self._parts("chat-5"), STEP_SECONDS_MAX)
        for resource, key in ((EXPERIMENTS, HASTY), (EXPERIMENTS, ENDS), (ENDPOINTS, KEY)):
            await self._delete(resource, key)
        await self.after_faults(0.0)
        await self.world.settle(SETTLED_SECONDS)

    async def _begin(self, key: ObjectKey) -> None:
        metadata = {"namespace": key.namespace, "name": key.name}
        spec = {"endpoint": {"name": KEY.name}, **STORY[key]}
        await self.others.create(EXPERIMENTS, {"metadata": metadata, "spec": spec})

    async def _delete(self, resource: Resource, key: ObjectKey) -> None:
        found = await self.others.get(resource, key)
        await self.others.delete(resource, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        await self.world.until(lambda: self.world.find(resource, key) is None, STEP_SECONDS_MAX)

    def _experiment(self, key: ObjectKey) -> Json:
        found: Json = (self.world.find(EXPERIMENTS, key) or {}).get("status", {})
        return found

    # Every state

    def _check(self, event: Event) -> None:
        if event.storage == _storage(EXPERIMENTS):
            body: Json = msgspec.json.decode(event.entry.raw)
            old: Json = msgspec.json.decode(event.old.raw) if event.old is not None else {}
            self._check_start(body.get("status", {}), old.get("status", {}))
            self._check_end(event.entry.name, body.get("status", {}), old.get("status", {}))
            if event.type == "DELETED" or _is_held(old) > _is_held(body):
                self._expect_no_variant(f"{event.entry.name} was let go")
        elif event.storage in (_storage(DEPLOYMENTS), _storage(SERVICES)) and event.type == "ADDED":
            self._check_part(event.entry.name)

    def _check_start(self, new: Json, old: Json) -> None:
        """The note that all of it is programmed follows its proof."""
        if "started" not in new or "started" in old:
            return
        named = {each["revision"]: VARIANTS[each["revision"]] for each in new["variants"]}
        programmed = {name: self.traffic.programmed.get(name) for name in named}
        if programmed != named:
            self.early.append(f"an experiment has started with {programmed}")

    def _check_end(self, name: str, new: Json, old: Json) -> None:
        if new.get("phase") == "Ended" and "ended" not in old:
            self._expect_no_variant(f"{name} has ended")
        elif "ended" in old and new["phase"] != "Ended":
            self.early.append(f"{name} had ended, and is {new['phase']}")

    def _expect_no_variant(self, after: str) -> None:
        """There are no parts of variants, of whichever experiment: there is one at a time."""
        if left := [part for name in VARIANTS for part in self._parts(name)]:
            self.early.append(f"{after}, and there is {', '.join(left)}")

    def _check_part(self, name: str) -> None:
        found = [each.get("status", {}).get("phase") for each in self.world.objects(EXPERIMENTS)]
        if name in VARIANTS and all(phase == "Ended" for phase in found):
            self.early.append(f"{name} was made for no experiment")

    def problems(self) -> list[str]:
        """All oracles."""
        found = [f"{part} is left" for part in self._parts()] + self.early + self.traffic.problems
        records = self.world.objects(TEARDOWNS)
        for record in records:
            result = record.get("status", {}).get("receipt", {}).get("result")
            if result != "complete":
                found.append(f"teardown/{record['metadata']['name']} has no complete receipt, but {result}")
        reasons = sorted(record["spec"]["reason"] for record in records)
        if reasons != ["Deleted", *["Ended"] * len(VARIANTS)]:
            found.append(f"the records are {reasons}, and there were {len(VARIANTS)} variants")
        for name in (SERVING, *VARIANTS):
            bundle = {made.uid for made in self.history.made.values() if made.name == name}
            bundle |= {below for uid in bundle for below in self.history.below(uid)}
            found += nothing_early(self.world.trace, self.history, SUBJECT, sorted(bundle))
        return found
