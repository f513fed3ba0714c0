"""Adversaries: programs and answers that get in a controller's way in real clusters. None of them is malicious.

The programs run until cancelled (`SimulatedWorld.live`), on a client of their own, in virtual or in real time. The
denying webhook and the dead API are installed in a world; each returns a function that removes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pilotage.kube import Absent, ApiError, Conflict, ObjectKey, Terminating, merge_patch
from pilotage_harbor.access.attributes import attributes_of
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pilotage.kube import Client, Json, Object, Resource
    from pilotage_harbor.apimachinery.calls import Call, ServerResponse
    from pilotage_harbor.core.admission import Admission, AdmissionAttributes
    from pilotage_sim.world import SimulatedWorld

AUTOSCALER_SECONDS = 15.0
GITOPS_SECONDS = 30.0
LOOK_SECONDS = 1.0


async def autoscaler(
    client: Client, resource: Resource, key: ObjectKey, *, least: int, every: float = AUTOSCALER_SECONDS
) -> None:
    """Scales back up whatever was scaled below its minimum, but leaves zero alone, as an HPA does."""
    while True:
        with contextlib.suppress(ApiError):
            scale = await client.get(resource, key, subresource="scale")
            if 0 < scale.get("spec", "replicas", default=0) < least:
                await client.scale(resource, key, least)
        await asyncio.sleep(every)


async def gitops(client: Client, manifests: Sequence[tuple[Resource, Json]], *, every: float = GITOPS_SECONDS) -> None:
    """Applies what is in its repository again and again, also what somebody has just deleted."""
    while True:
        for resource, manifest in manifests:
            with contextlib.suppress(ApiError):
                await client.apply(resource, manifest, force=True)
        await asyncio.sleep(every)


async def recreator(client: Client, resource: Resource, manifest: Json, *, every: float = LOOK_SECONDS) -> None:
    """Makes an object of this name anew as soon as it is gone: same name, other uid."""
    while True:
        with contextlib.suppress(Conflict, Terminating):
            await client.create(resource, manifest)
        await asyncio.sleep(every)


async def finalizer_stripper(
    client: Client, resources: Iterable[Resource], *, patience: float = 10.0, every: float = LOOK_SECONDS
) -> None:
    """Someone who knows how to get rid of what does not go: takes all finalizers away from what waits too long."""
    since: dict[str, float] = {}
    loop = asyncio.get_running_loop()
    kinds = [*resources]
    while True:
        for resource in kinds:
            for obj in (await client.list(resource)).items:
                if not obj.meta.terminating or not obj.meta.finalizers:
                    continue
                if loop.time() - since.setdefault(obj.meta.uid, loop.time()) >= patience:
                    await _strip(client, resource, obj)
        await asyncio.sleep(every)


async def _strip(client: Client, resource: Resource, obj: Object) -> None:
    patch = merge_patch({"metadata": {"finalizers": None, "uid": obj.meta.uid}})
    with contextlib.suppress(Absent, Conflict):
        await client.patch(resource, obj.key, patch)


class DenyingWebhook:
    """An admission webhook that says no to some operations on some kinds; everything else is as before."""

    def __init__(self, inner: Admission, operations: Iterable[str], plurals: Iterable[str], why: str) -> None:
        self.denied = 0
        self._inner = inner
        self._operations = frozenset(operations)
        self._plurals = frozenset(plurals)
        self._why = why

    async def mutate(self, attributes: AdmissionAttributes) -> list[str]:
        """Pass it on."""
        return await self._inner.mutate(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> list[str]:
        """Deny the operations and resources that were given, and pass on the rest."""
        if attributes.operation in self._operations and attributes.scope.kind.plural in self._plurals:
            self.denied += 1
            words = f'admission webhook "deny.sim.pilotage.dev" denied the request: {self._why}'
            raise errors.StatusError(403, "Forbidden", words)
        return await self._inner.validate(attributes)


def denying_webhook(
    world: SimulatedWorld, *, operations: Iterable[str], plurals: Iterable[str], why: str = "not today"
) -> tuple[DenyingWebhook, Callable[[], None]]:
    """Deny CREATE, UPDATE or DELETE of these kinds; returns the webhook, and what takes it away."""
    before = world.core.admission
    webhook = world.core.admission = DenyingWebhook(before, operations, plurals, why)

    def end() -> None:
        world.core.admission = before

    return webhook, end


def dead_api(world: SimulatedWorld, group: str) -> Callable[[], None]:
    """An API group whose server does not answer, as behind a dead APIService: 503 to everything, discovery included."""

    def answer(call: Call) -> ServerResponse | None:
        if not call.path.startswith(f"/apis/{group}/"):
            return None
        wanted = attributes_of(call.method, call.path, call.query)
        words = "the server is currently unable to handle the request"
        return refuse(errors.StatusError(503, "ServiceUnavailable", words, details={"kind": wanted.resource}))

    return world.intercept(answer)
