"""An informer follows a few ConfigMaps that others create, change, delete and make anew.

At the end it knows what is true, and everybody who listens to it was told of every deletion.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from pilotage.kube import Object, ObjectKey, Propagation, Resource, merge_patch
from pilotage.runtime.informer import Change, Informer
from pilotage_sim.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube import Client
    from pilotage_sim.process import Main

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE = "default"
STEP_SECONDS = 0.5
CONVERGED_SECONDS_MAX = 150.0
"""The informer waits at most a minute before it tries again; twice that, and the last list."""


class Mirror:
    """The events of a handler, and their rules: each must follow from those before."""

    def __init__(self) -> None:
        self.known: dict[ObjectKey, Object] = {}
        self.seen: set[str] = set()
        self.deleted: set[str] = set()
        self.problems: list[str] = []

    def __call__(self, change: Change) -> None:
        """A handler."""
        key, known = change.object.key, self.known.get(change.object.key)
        uid = known.meta.uid if known is not None else ""
        if change.new is None:
            assert change.old is not None
            if uid != change.old.meta.uid:
                self.problems.append(f"{key}: told that {change.old.meta.uid} is deleted, but knew {uid or 'none'}")
            self.known.pop(key, None)
            self.deleted.add(change.old.meta.uid)
            return
        if change.old is None and known is not None:
            self.problems.append(f"{key}: told twice that it is new")
        if change.old is not None and uid != change.new.meta.uid:
            self.problems.append(f"{key}: told that it changed, but it is another object")
        self.known[key] = change.new
        self.seen.add(change.new.meta.uid)


class InformerScenario(Scenario):
    """An informer follows ConfigMaps, and ends with the state of the server."""

    def processes(self) -> Mapping[str, Main]:
        """The informer."""
        self.mirror = Mirror()
        return {"subject": self.follow}

    async def follow(self, client: Client) -> None:
        """The program under test."""
        informer = Informer(client, CONFIG_MAPS, rng=random.Random(1), namespace=NAMESPACE)  # noqa: S311 - jitter
        self.informer = informer
        informer.add_handler(self.mirror)
        await informer.run()

    async def prepare(self) -> None:
        """One object is there before, and one is gone before."""
        self.others = self.world.client("others")
        await self._make("a")
        await self._make("gone")
        await self._unmake("gone")

    async def play(self) -> None:
        """Everything that can happen to an object happens once, while the informer watches."""
        await asyncio.sleep(STEP_SECONDS)
        for step in (
            self._make("b"),
            self._change("a", "2"),
            self._unmake("b"),
            self._make("b"),
            self._change("b", "2"),
            self._unmake("a"),
            self._make("c"),
            self._unmake("c"),
        ):
            await step
            await asyncio.sleep(STEP_SECONDS)
        await self.after_faults(CONVERGED_SECONDS_MAX)

    def problems(self) -> list[str]:
        """The cache is the truth, its listeners know it, and no deletion was kept from them."""
        truth = {
            ObjectKey(NAMESPACE, obj["metadata"]["name"]): obj["metadata"]["resourceVersion"]
            for obj in self.world.objects(CONFIG_MAPS, NAMESPACE)
        }
        cached = {key: obj.meta.resource_version for key, obj in self.informer.store.items()}
        told = {key: obj.meta.resource_version for key, obj in self.mirror.known.items()}
        problems = list(self.mirror.problems)
        if cached != truth:
            problems.append(f"the cache has {_text(cached)}, and true is {_text(truth)}")
        if told != truth:
            problems.append(f"listeners know {_text(told)}, and true is {_text(truth)}")
        alive = {obj["metadata"]["uid"] for obj in self.world.objects(CONFIG_MAPS, NAMESPACE)}
        problems += [f"nobody was told that {uid} is gone" for uid in self.mirror.seen - alive - self.mirror.deleted]
        return problems

    async def _make(self, name: str) -> None:
        await self.others.create(CONFIG_MAPS, {"metadata": {"namespace": NAMESPACE, "name": name}, "data": {"n": "1"}})

    async def _change(self, name: str, value: str) -> None:
        await self.others.patch(CONFIG_MAPS, ObjectKey(NAMESPACE, name), merge_patch({"data": {"n": value}}))

    async def _unmake(self, name: str) -> None:
        key = ObjectKey(NAMESPACE, name)
        uid = (await self.others.get(CONFIG_MAPS, key)).meta.uid
        await self.others.delete(CONFIG_MAPS, key, uid=uid, propagation=Propagation.BACKGROUND)


def _text(versions: Mapping[ObjectKey, str]) -> str:
    return ", ".join(f"{key.name}@{version}" for key, version in sorted(versions.items())) or "nothing"
