"""Makes, changes and deletes Widgets, and waits until an operator has done with each of them what it should."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import msgspec

from bench.operators import GROUP, KIND, PLURAL, VERSION
from bench.peers import object_name
from bench.peers.parallel import in_parallel
from pilotage.kube import Client, ObjectKey, Propagation, Resource, load_config, merge_patch
from pilotage.runtime.informer import Change, Informer

WIDGETS = Resource(GROUP, VERSION, PLURAL, KIND)
CONCURRENCY = 16
QUIET_SECONDS = 1.0
POLL_SECONDS = 0.05

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": KIND.lower(), "kind": KIND},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}, "model": {"type": "string"}},
                            },
                            # kopf keeps its progress here, too
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


class _Spec(msgspec.Struct):
    size: int


class _Status(msgspec.Struct):
    size: int = 0


class _Widget(msgspec.Struct):
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


class Driver:
    """The user of an operator. Each action returns when the operator has answered it for every Widget, and is quiet."""

    def __init__(self, client: Client, namespace: str, widgets: int) -> None:
        self._client = client
        self._informer = Informer(client, WIDGETS, rng=random.Random(0), namespace=namespace)
        self._informer.add_handler(self._seen)
        self._keys = [ObjectKey(namespace, object_name(number)) for number in range(widgets)]
        self._answered: set[ObjectKey] = set()
        self._changed_at = 0.0

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, kubeconfig: str, namespace: str, widgets: int) -> AsyncIterator[Self]:
        async with Client.connect(load_config(kubeconfig=kubeconfig), name="bench-driver") as client:
            driver = cls(client, namespace, widgets)
            follow = asyncio.create_task(driver._informer.run())
            await driver._informer.synced.wait()
            try:
                yield driver
            finally:
                follow.cancel()
                await asyncio.gather(follow, return_exceptions=True)

    async def create(self) -> None:
        """All Widgets; answered by a finalizer and a status."""

        async def create(number: int) -> None:
            key = self._keys[number]
            spec = {"size": 1, "model": f"registry.example/models/{key.name}"}
            await self._client.create(WIDGETS, {"metadata": {"name": key.name}, "spec": spec}, namespace=key.namespace)

        await in_parallel(create, range(len(self._keys)), CONCURRENCY)
        await self._until(lambda: len(self._answered) == len(self._keys))

    async def update(self) -> None:
        """The spec of all; answered by the status."""
        self._answered.clear()

        async def update(number: int) -> None:
            await self._client.patch(WIDGETS, self._keys[number], merge_patch({"spec": {"size": 2}}))

        await in_parallel(update, range(len(self._keys)), CONCURRENCY)
        await self._until(lambda: len(self._answered) == len(self._keys))

    async def delete(self) -> None:
        """All; answered by taking the finalizer away."""

        async def delete(number: int) -> None:
            widget = self._informer.store.get(self._keys[number])
            assert widget is not None
            await self._client.delete(WIDGETS, widget.key, uid=widget.meta.uid, propagation=Propagation.BACKGROUND)

        await in_parallel(delete, range(len(self._keys)), CONCURRENCY)
        await self._until(lambda: not len(self._informer.store))

    def _seen(self, change: Change) -> None:
        self._changed_at = asyncio.get_running_loop().time()
        if change.new is None:
            return
        widget = change.new.decode_as(_Widget)
        if change.new.meta.finalizers and widget.status.size == widget.spec.size:
            self._answered.add(change.new.key)
        else:
            self._answered.discard(change.new.key)

    async def _until(self, done: Callable[[], bool]) -> None:
        """Wait until it is done and nothing has changed for a while: an operator may have more to write."""
        loop = asyncio.get_running_loop()
        while not (  # noqa: ASYNC110 - that nothing happens is no event
            done() and loop.time() - self._changed_at > QUIET_SECONDS
        ):
            await asyncio.sleep(POLL_SECONDS)
