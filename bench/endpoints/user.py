"""Creates and deletes ServingEndpoints, and waits until their operator has done with each of them what it should."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Self

import msgspec

from bench.driver import QUIET_SECONDS
from bench.peers import object_name
from bench.peers.parallel import in_parallel
from bench.teardown.bundles import GROWN, until
from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID
from pilotage.controllers.caches import MADE_BY_US
from pilotage.kube import Client, Json, ObjectKey, Propagation, load_config
from pilotage.runtime.informer import Change, Informer

CONCURRENCY = 16
POLL_SECONDS = 0.1


class _Status(msgspec.Struct):
    phase: str = ""


class _Endpoint(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def spec(name: str) -> Json:
    """One replica behind an Ingress, whose requests are not waited for."""
    return {
        "model": {"source": "hf://org/repo/model.gguf"},
        "route": {"kind": "Ingress", "host": f"{name}.example.com"},
        "deletion": {"drainSeconds": 0},
    }


class User:
    """Owner of endpoints. Each action returns when the operator has answered it for all of them, and is idle."""

    def __init__(self, client: Client, namespace: str, endpoints: int) -> None:
        self._client = client
        self._informer = Informer(client, ENDPOINTS, rng=random.Random(0), namespace=namespace)
        self._informer.add_handler(self._seen)
        self._keys = [ObjectKey(namespace, object_name(number)) for number in range(endpoints)]
        self._serving: set[ObjectKey] = set()
        self._changed_at = 0.0

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, kubeconfig: str, namespace: str, endpoints: int) -> AsyncIterator[Self]:
        async with Client.connect(load_config(kubeconfig=kubeconfig), name="bench-user") as client:
            user = cls(client, namespace, endpoints)
            follow = asyncio.create_task(user._informer.run())
            await user._informer.synced.wait()
            try:
                yield user
            finally:
                follow.cancel()
                await asyncio.gather(follow, return_exceptions=True)

    async def create(self) -> None:
        """All endpoints; answered when all serve."""

        async def create(number: int) -> None:
            key = self._keys[number]
            body = {"metadata": {"name": key.name}, "spec": spec(key.name)}
            await self._client.create(ENDPOINTS, body, namespace=key.namespace)

        await in_parallel(create, range(len(self._keys)), min(CONCURRENCY, len(self._keys)))
        await self._until(lambda: len(self._serving) == len(self._keys))

    async def delete(self) -> None:
        """All; answered when they are gone, and everything that was made for them."""

        async def delete(number: int) -> None:
            endpoint = self._informer.store.get(self._keys[number])
            assert endpoint is not None
            await self._client.delete(
                ENDPOINTS, endpoint.key, uid=endpoint.meta.uid, propagation=Propagation.BACKGROUND
            )

        await in_parallel(delete, range(len(self._keys)), min(CONCURRENCY, len(self._keys)))
        await self._until(lambda: not len(self._informer.store))
        await until(self._nothing_left)

    def _seen(self, change: Change) -> None:
        self._changed_at = asyncio.get_running_loop().time()
        if change.new is not None and change.new.decode_as(_Endpoint).status.phase == "Serving":
            self._serving.add(change.new.key)
        else:
            self._serving.discard(change.object.key)

    async def _nothing_left(self) -> bool:
        namespace = self._keys[0].namespace
        for resource in (*MADE_BY_US, *GROWN):
            if (await self._client.list(resource, namespace, labels=LABEL_ENDPOINT_UID, metadata_only=True)).items:
                return False
        return True

    async def _until(self, done: Callable[[], bool]) -> None:
        """Wait until it is done and nothing has changed for a while: an operator may have more to write."""
        loop = asyncio.get_running_loop()
        while not (  # noqa: ASYNC110 - that nothing happens is no event
            done() and loop.time() - self._changed_at > QUIET_SECONDS
        ):
            await asyncio.sleep(POLL_SECONDS)
