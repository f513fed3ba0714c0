"""A controller keeps a copy of each ConfigMap that asks for one, and takes the copy away before its source goes.

It is the smallest controller with all the difficulties: it holds a finalizer, makes objects of its own, must find them
again after a crash, and must not touch what bears a copy's name and is not its own. At the end every source has its
copy, no copy is left of those that went, and the stranger is as it was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage.kube import Absent, AlreadyExists, ObjectKey, Propagation, Resource, merge_patch, without_finalizer
from pilotage.runtime.manager import Manager
from pilotage_sim.oracles import foreign_writes
from pilotage_sim.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube import Client, Object
    from pilotage.runtime.controller import Context
    from pilotage.runtime.types import Reconcile
    from pilotage_sim.process import Main

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE = "default"
SOURCE = "sim.pilotage.dev/source"
"""The label of what is to be copied, and, with the source's uid, of the copy."""
FINALIZER = "sim.pilotage.dev/copy"
SETTLED_SECONDS = 90.0
PACE_SECONDS = 1.0
"""Pause between two actions of a person, however far the program is."""


class Copier:
    """The controller. Every reconcile looks at what is there and does what is missing, whatever was done before."""

    def __init__(self, context: Context) -> None:
        self.client = context.client
        self.store = context.store

    async def reconcile(self, key: ObjectKey) -> None:
        """Make the copy that is missing, or remove it before its source goes, as `Reconcile` says."""
        source = self.store.get(key)
        if source is None or source.meta.labels.get(SOURCE) != "yes":
            return
        if source.meta.terminating:
            await self.release(source)
        elif FINALIZER not in source.meta.finalizers:
            finalizers = [*source.meta.finalizers, FINALIZER]
            patch = merge_patch({"metadata": {"finalizers": finalizers}}, resource_version=source.meta.resource_version)
            await self.copy(await self.client.patch(CONFIG_MAPS, key, patch))
        else:
            await self.copy(source)

    async def copy(self, source: Object) -> None:
        """Make or mend the copy."""
        key, data = copy_key(source), source.get("data", default={})
        labels = {SOURCE: source.meta.uid}
        copy = self.store.get(key)
        if copy is None:
            metadata = {"namespace": key.namespace, "name": key.name, "labels": labels}
            try:
                await self.client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
            except AlreadyExists:
                if not self.is_mine(source, await self.client.get(CONFIG_MAPS, key)):
                    return  # somebody else's: the source has to do without
        elif self.is_mine(source, copy) and copy.get("data", default={}) != data:
            patch = merge_patch({"data": data}, resource_version=copy.meta.resource_version)
            await self.client.patch(CONFIG_MAPS, key, patch)

    async def release(self, source: Object) -> None:
        """Let the source go once its copy is gone: only a fresh read proves that."""
        if FINALIZER not in source.meta.finalizers:
            return
        if await self.remove_copy(source) and (patch := without_finalizer(source, FINALIZER)) is not None:
            await self.client.patch(CONFIG_MAPS, source.key, patch)

    async def remove_copy(self, source: Object) -> bool:
        """Delete the copy if it is ours; whether there is none any more."""
        key = copy_key(source)
        try:
            copy = await self.client.get(CONFIG_MAPS, key)
            if self.is_mine(source, copy):
                propagation = Propagation.BACKGROUND
                return await self.client.delete(CONFIG_MAPS, key, uid=copy.meta.uid, propagation=propagation) is None
        except Absent:
            pass
        return True

    def is_mine(self, source: Object, copy: Object) -> bool:
        """Whether it was made for exactly this source."""
        return copy.meta.labels.get(SOURCE) == source.meta.uid


def copy_key(source: Object) -> ObjectKey:
    """Key of the copy of a source."""
    return ObjectKey(source.meta.namespace, f"{source.meta.name}-copy")


def source_keys(obj: Object) -> list[ObjectKey]:
    """The mapper from a copy to its source."""
    name = obj.meta.name
    return [ObjectKey(obj.meta.namespace, name.removesuffix("-copy"))] if name.endswith("-copy") else []


class ControllerScenario(Scenario):
    """Copies are made and removed under every fault, and the foreign object stays as it was."""

    lies = False
    same_end = True
    controller: type[Copier] = Copier

    def processes(self) -> Mapping[str, Main]:
        """The controller's manager."""
        return {"subject": self.manage}

    async def manage(self, client: Client) -> None:
        """The program under test."""
        manager = Manager(client, name="copier", seed=1)
        informer = manager.informer(CONFIG_MAPS, namespace=NAMESPACE)
        manager.add("copier", informer, self.make, watches=[(informer, source_keys)])
        await manager.run()

    def make(self, context: Context) -> Reconcile:
        """One controller for each manager."""
        return self.controller(context).reconcile

    async def prepare(self) -> None:
        """A stranger has the name that a copy should have."""
        self.others = self.world.client("others")
        self.stranger = await self._make("c-copy", {})

    async def play(self) -> None:
        """Sources come, change, go, and come again under the same name."""
        await self._make("a")
        await self._make("c")
        await asyncio.sleep(PACE_SECONDS)
        await self._make("b")
        await self.others.patch(CONFIG_MAPS, ObjectKey(NAMESPACE, "a"), merge_patch({"data": {"n": "2"}}))
        await asyncio.sleep(PACE_SECONDS)
        await self._unmake("b")
        await asyncio.sleep(PACE_SECONDS)
        await self._unmake("c")
        await self.world.until(lambda: self.world.find(CONFIG_MAPS, ObjectKey(NAMESPACE, "b")) is None)
        await self._make("b")
        await self.after_faults(0.0)
        await self.world.settle(SETTLED_SECONDS)

    def problems(self) -> list[str]:
        """Nothing of a stranger's was touched."""
        return foreign_writes(self.world.trace, "subject", lambda write: write.uid != self.stranger)

    async def _make(self, name: str, labels: Mapping[str, str] | None = None) -> str:
        metadata = {"namespace": NAMESPACE, "name": name, "labels": {SOURCE: "yes"} if labels is None else labels}
        return (await self.others.create(CONFIG_MAPS, {"metadata": metadata, "data": {"n": "1"}})).meta.uid

    async def _unmake(self, name: str) -> None:
        key = ObjectKey(NAMESPACE, name)
        uid = (await self.others.get(CONFIG_MAPS, key)).meta.uid
        await self.others.delete(CONFIG_MAPS, key, uid=uid, propagation=Propagation.BACKGROUND)
