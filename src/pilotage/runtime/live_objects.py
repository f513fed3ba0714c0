"""Objects of one kind for a program that shows them: an informer whose lasting errors are raised, not just logged."""

import asyncio
import contextlib
import random
from typing import Self

from pilotage.kube import ApiError, Client, ErrorClass, KindNotServed, Object, ObjectList, Resource
from pilotage.runtime.clock import monotonic
from pilotage.runtime.informer import Informer

POLL_SECONDS = 1.0
"""Interval of lists while the watch is interrupted, or not allowed."""
_TRANSIENT = (ErrorClass.UNAVAILABLE, ErrorClass.UNCERTAIN, ErrorClass.THROTTLED)


class LiveObjects:
    """``async with LiveObjects(…) as live``: `live.objects` is what there is, by name. Entering raises ApiError."""

    def __init__(self, client: Client, resource: Resource, namespace: str, *, name: str = "", labels: str = "") -> None:
        """Objects of a kind: one, by its name, or those with some labels."""
        self.problem = ""
        """Why the server tells nothing at the moment; empty if it does."""
        self._client = client
        self._fields = f"metadata.name={name}" if name else ""
        self._namespace = namespace
        self._labels = labels
        self._informer = Informer(
            client,
            resource,
            rng=random.Random(),  # noqa: S311 - it spreads retries
            namespace=namespace,
            labels=labels,
            fields=self._fields,
        )
        self._polled: ObjectList | None = None
        self._polled_at = float("-inf")
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def objects(self) -> dict[str, Object]:
        """Objects by name, as last seen."""
        return {obj.meta.name: obj for obj in self.of_all_namespaces}

    @property
    def of_all_namespaces(self) -> list[Object]:
        """Objects as last seen, where no namespace was given."""
        return [*(self._informer.store.list() if self._polled is None else self._polled.items)]

    async def __aenter__(self) -> Self:
        listed = await self._list()
        self._informer.add_handler(lambda _: self._news.set())
        self._informer.seed(listed.items, listed.resource_version)
        self._task = asyncio.create_task(self._informer.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def changed(self, seconds: float) -> None:
        """Return when something has changed, or after so long. Raises an ApiError that does not pass by itself."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._news.wait()
        self._news.clear()
        if self._informer.problem is None:
            self.problem, self._polled = "", None
        elif monotonic() - self._polled_at >= POLL_SECONDS:
            await self._poll()

    async def _poll(self) -> None:
        """List while the watch tells nothing: who may not watch may be allowed to list."""
        self._polled_at = monotonic()
        try:
            self._polled = await self._list()
            self.problem = ""
        except ApiError as error:
            if error.error_class not in _TRANSIENT or isinstance(error, KindNotServed):
                raise
            self.problem = str(error)

    async def _list(self) -> ObjectList:
        return await self._client.list(
            self._informer.resource, self._namespace, fields=self._fields, labels=self._labels
        )
