"""Models come, fail, recover, are used and go, while everything goes wrong for their controller.

Two share one source, one of them is used by an endpoint; one waits for a file that appears later; one is mended by a
change of its spec; one is read with a Secret; one can never be had. At the end those that stay are ready or have failed
for the right reason, nothing is kept for those that went, and nothing is written about a failure that lasts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.controllers.model.controller import Models
from pilotage.kube import ObjectKey, Propagation, Resource, merge_patch
from pilotage.models import Kept, PermanentError, Reason, Removed, TransientError, WeightsFormat
from pilotage.runtime.manager import Manager
from pilotage_sim.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pilotage.kube import Client, Json
    from pilotage.models import FetchRequest, SourceCredentials
    from pilotage.models.fetch import Progress
    from pilotage_sim.process import Main

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
NAMESPACE = "default"
QUIET_SECONDS = 700.0
"""Longer than two looks at a failed Model are apart."""
HOUR_SECONDS = 3600.0
FETCH_SECONDS, PROGRESS_SECONDS = 12.0, 1.0
"""Duration of a fetch, and the time until its first report of progress, in seconds."""
PACE_SECONDS, PAUSE_SECONDS = 3.0, 20.0
"""Pause between two actions of a person, however far the program is."""
SIZE = 12_000_000


class Outside:
    """State that outlives the controller: the sources, and the disk with fetched weights and their users."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.files: set[str] = set()
        self.users: dict[str, set[str]] = {}
        self.looks = 0


class PlayedKeeping:
    """Stand-in for `pilotage.models.store.ModelStore`, as slow as a real one, and with its failures."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._flaky: set[str] = set()

    async def keep(self, request: FetchRequest, credentials: SourceCredentials, progress: Progress) -> Kept:
        """Every source fails once in passing, then takes some seconds."""
        outside, name = self._outside, str(request.source)
        outside.looks += 1
        outside.users.setdefault(name, set()).add(request.user)
        await asyncio.sleep(0.1)
        if name not in outside.there:
            raise PermanentError(Reason.NOT_FOUND, f"{name} does not exist", "Put it there, or change spec.source")
        if request.audience and credentials.get("token") != "right":
            raise PermanentError(Reason.UNAUTHORIZED, f"{name} was answered with 401", "Give the right token")
        if name not in self._flaky:
            self._flaky.add(name)
            raise TransientError(Reason.TIMED_OUT, f"{name} was not answered in time")
        if name not in outside.files:
            for step in range(round(FETCH_SECONDS / PROGRESS_SECONDS)):
                progress(step * 1_000_000, SIZE)
                await asyncio.sleep(PROGRESS_SECONDS)
            outside.files.add(name)
        return Kept(f"/cache/{name}", SIZE, "", WeightsFormat("GGUF", "llama"), in_place=False)

    async def confirm(self, kept: Kept) -> None:
        """Nobody else writes here."""

    async def release(self, user: str, *, retain: bool | None = None, but: FetchRequest | None = None) -> list[Removed]:
        """Everything that only this user has used goes."""
        told = []
        for name, users in self._outside.users.items():
            if user not in users or (but is not None and name == str(but.source)):
                continue
            users.discard(user)
            if name in self._outside.files and not users and not retain:
                self._outside.files.discard(name)
                told.append(Removed(name, SIZE))
        return told

    async def sweep(self, users: Collection[str]) -> list[Removed]:
        """The same for those that are not there any more."""
        gone = {user for each in self._outside.users.values() for user in each} - set(users)
        return [file for user in sorted(gone) for file in await self.release(user)]


class ModelScenario(Scenario):
    """Models are fetched, fail, recover, are used and deleted."""

    lies = False
    same_end = True
    keeping = PlayedKeeping
    models = Models

    def processes(self) -> Mapping[str, Main]:
        """The controller's manager."""
        return {"subject": self.manage}

    async def manage(self, client: Client) -> None:
        """The program under test."""
        manager = self.manager = Manager(client, name="models", seed=1)
        async with self.models(manager, self.keeping(self.outside)):
            await manager.run()

    async def prepare(self) -> None:
        """The kinds, and what the sources have."""
        self.others = self.world.client("others")
        self.outside = Outside()
        self.outside.there |= {"https://a/shared.gguf", "https://a/right.gguf", "https://a/secret.gguf"}
        self.after: list[str] = []
        for resource in (MODELS, ENDPOINTS):
            await self.others.create(CRDS, definition(resource))
        await self.world.until(lambda: all(self._is_served(each) for each in (MODELS, ENDPOINTS)))
        secret = {"metadata": {"namespace": NAMESPACE, "name": "token"}, "stringData": {"token": "right"}}
        await self.others.create(SECRETS, secret)

    async def play(self) -> None:
        """The users' actions."""
        await self._make("a", "https://a/shared.gguf")
        await self._make("b", "https://a/shared.gguf")
        endpoint = {"metadata": {"namespace": NAMESPACE, "name": "e"}, "spec": {"model": {"name": "a"}}}
        await self.others.create(ENDPOINTS, endpoint)
        await self._make("late", "https://a/late.gguf")
        await self._make("mended", "https://a/wrong.gguf")
        await self._make("never", "https://a/never.gguf")
        await self._make("secret", "https://a/secret.gguf", {"name": "token"})
        await asyncio.sleep(PACE_SECONDS)
        await self._patch("mended", {"spec": {"source": "https://a/right.gguf"}})
        await asyncio.sleep(PAUSE_SECONDS)
        # One that its controller has not seen yet cannot be held: it is gone as soon as it is deleted.
        held = self._finalizers("a")
        await self._unmake(MODELS, "a")
        self.outside.there.add("https://a/late.gguf")
        await asyncio.sleep(PACE_SECONDS)
        if held and not self._finalizers("a"):
            self.after.append("a Model went while an endpoint used it")
        await self._unmake(ENDPOINTS, "e")
        await asyncio.sleep(PACE_SECONDS)
        await self._unmake(MODELS, "b")
        await self.after_faults(0.0)
        await self.world.settle(QUIET_SECONDS)
        await self._watch_for_an_hour()

    def problems(self) -> list[str]:
        """The status of the Models, and the contents of the disk."""
        found = [*self.after]
        expected = {"late": "Ready", "mended": "Ready", "never": "Failed", "secret": "Ready"}
        said = {obj["metadata"]["name"]: obj.get("status", {}).get("phase") for obj in self.world.objects(MODELS)}
        if said != expected:
            found.append(f"the Models are {said}, not {expected}")
        files = {"https://a/late.gguf", "https://a/right.gguf", "https://a/secret.gguf"}
        if self.outside.files != files:
            found.append(f"on the disk is {sorted(self.outside.files)}, not {sorted(files)}")
        uids = {obj["metadata"]["uid"] for obj in self.world.objects(MODELS)}
        kept = {user for users in self.outside.users.values() for user in users}
        if not kept <= uids:
            found.append("something is kept for Models that are gone")
        return found

    async def _watch_for_an_hour(self) -> None:
        """All is well or has failed for good: Models are looked at, and nothing is written."""
        writes, looks, errors = len(self.world.trace.writes), self.outside.looks, self._errors()
        await asyncio.sleep(HOUR_SECONDS)
        written = [write for write in self.world.trace.writes[writes:] if write.who == "subject"]
        looked = (self.outside.looks - looks) / len(self.world.objects(MODELS))
        if written:
            self.after.append(f"{len(written)} writes in an hour in which nothing happened: {written[0]}")
        if not 11.5 <= looked <= 12.5:
            self.after.append(f"each Model was looked at {looked:g} times in an hour, not 12")
        if self._errors() != errors:
            self.after.append(f"{self._errors() - errors:g} reconciles ended with an error in that hour")

    def _errors(self) -> float:
        labels = {"controller": "models", "result": "error"}
        return self.manager.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0.0

    def _finalizers(self, name: str) -> list[str]:
        found: Json = self.world.find(MODELS, ObjectKey(NAMESPACE, name)) or {"metadata": {}}
        finalizers: list[str] = found["metadata"].get("finalizers", [])
        return finalizers

    def _is_served(self, resource: Resource) -> bool:
        return self.world.core.registry.kind(resource.group, resource.version, resource.plural) is not None

    async def _make(self, name: str, source: str, secret: Json | None = None) -> None:
        spec: Json = {"source": source} | ({"secretRef": secret} if secret else {})
        await self.others.create(MODELS, {"metadata": {"namespace": NAMESPACE, "name": name}, "spec": spec})

    async def _patch(self, name: str, changes: Json) -> None:
        await self.others.patch(MODELS, ObjectKey(NAMESPACE, name), merge_patch(changes))

    async def _unmake(self, resource: Resource, name: str) -> None:
        key = ObjectKey(NAMESPACE, name)
        uid = (await self.others.get(resource, key)).meta.uid
        await self.others.delete(resource, key, uid=uid, propagation=Propagation.BACKGROUND)


def definition(resource: Resource) -> Json:
    """A CRD that takes everything: what it refuses is tested elsewhere, and a world is made for each plan."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": open_schema},
    }
    names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
    spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{resource.plural}.{resource.group}"}, "spec": spec}
