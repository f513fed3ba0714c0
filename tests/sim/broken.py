"""Controllers with one bug each, which the simulator has to find. Most of them work as long as there is no fault."""

import asyncio
import random
from collections.abc import Mapping

from pilotage.kube import ApiError, Object, ObjectKey, Propagation, merge_patch, without_finalizer
from pilotage.runtime.informer import Informer
from pilotage.runtime.leader import LeaseLost
from pilotage.runtime.manager import Manager
from pilotage_sim.process import Main
from pilotage_sim.scenarios import ControllerScenario, InformerScenario, LeaderScenario, informer
from pilotage_sim.scenarios.controller import CONFIG_MAPS, FINALIZER, Copier, copy_key


class ForgetsFirst(Copier):
    """Lets the source go before the copy is gone: a crash in between leaves the copy behind."""

    async def release(self, source: Object) -> None:
        patch = without_finalizer(source, FINALIZER)
        if patch is not None:
            await self.client.patch(CONFIG_MAPS, source.key, patch)
            await self.remove_copy(source)


class TakesUnknownForGone(Copier):
    """Believes that what it cannot read is not there."""

    async def remove_copy(self, source: Object) -> bool:
        key = copy_key(source)
        try:
            copy = await self.client.get(CONFIG_MAPS, key)
        except ApiError:
            return True
        if self.is_mine(source, copy):
            propagation = Propagation.BACKGROUND
            await self.client.delete(CONFIG_MAPS, key, uid=copy.meta.uid, propagation=propagation)
        return True


class GivesUp(Copier):
    """Logs an error, and waits for a change that never comes."""

    async def reconcile(self, key: ObjectKey) -> None:
        try:
            await super().reconcile(key)
        except ApiError:
            return


class TakesWhatIsThere(Copier):
    """Identifies its copy by name: deletes any object of that name."""

    def is_mine(self, source: Object, copy: Object) -> bool:
        return True


class Restless(Copier):
    """Writes its status on every pass, and so wakes itself for ever."""

    async def copy(self, source: Object) -> None:
        await super().copy(source)
        copy = self.store.get(copy_key(source))
        if copy is not None and self.is_mine(source, copy):
            count = int(copy.meta.annotations.get("passes", "0")) + 1
            patch = merge_patch({"metadata": {"annotations": {"passes": str(count)}}})
            await self.client.patch(CONFIG_MAPS, copy.key, patch)


class ForgetsFirstScenario(ControllerScenario):
    controller = ForgetsFirst


class TakesUnknownForGoneScenario(ControllerScenario):
    controller = TakesUnknownForGone


class GivesUpScenario(ControllerScenario):
    controller = GivesUp


class TakesWhatIsThereScenario(ControllerScenario):
    controller = TakesWhatIsThere


class RestlessScenario(ControllerScenario):
    controller = Restless


class OnlyEvents(Informer):
    """Ignores that a list can show deletions, too."""

    def _replace(self, version, seen, fresh):
        super()._replace(version, seen | {key for key, _ in self.store.items()}, fresh)


class OnlyEventsScenario(InformerScenario):
    async def follow(self, client):
        self.informer = OnlyEvents(client, informer.CONFIG_MAPS, rng=random.Random(1), namespace=informer.NAMESPACE)
        self.informer.add_handler(self.mirror)
        await self.informer.run()


class Usurper(Manager):
    """Writes on when the Lease is lost."""

    def _may_write(self) -> None:
        pass

    async def _keep_lease(self) -> None:
        await super()._keep_lease()
        await asyncio.Event().wait()


class UsurperScenario(LeaderScenario):
    manager = Usurper


class Quitter(Manager):
    """Does not start again once it has lost the Lease: it just stays, without it."""

    async def run(self) -> None:
        try:
            await super().run()
        except LeaseLost:
            await asyncio.Event().wait()


class LonelyQuitterScenario(LeaderScenario):
    manager = Quitter

    def processes(self) -> Mapping[str, Main]:
        return {"b": super().processes()["b"]}
