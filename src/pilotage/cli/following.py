"""Objects of one kind, kept current by a watch for the time of a block: what live progress looks at."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self

from pilotage.kube import ApiError, ErrorClass, Expired, Forbidden, KindNotServed

if TYPE_CHECKING:
    from pilotage.kube import Client, Object, Resource

PAUSE_SECONDS = (0.2, 5.0)
"""The first and the longest pause after an error that passes."""
POLL_SECONDS = 1.0
"""How often what may not be watched is read."""
_PASSING = (ErrorClass.UNAVAILABLE, ErrorClass.UNCERTAIN, ErrorClass.THROTTLED)


class Following:
    """``async with Following(…) as seen``: `seen.objects` is what there is, by name."""

    def __init__(self, client: Client, resource: Resource, namespace: str, *, name: str = "", labels: str = "") -> None:
        """Of one object only, by its name, or of those with some labels."""
        self.objects: dict[str, Object] = {}
        self.problem = ""
        """Why nothing is heard at the moment."""
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._fields = f"metadata.name={name}" if name else ""
        self._labels = labels
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        version = await self._list()
        self._task = asyncio.create_task(self._run(version))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ApiError):
            await self._task

    async def changed(self, seconds: float) -> None:
        """Return when something has changed, or after so long. Raises an ApiError that does not pass by itself."""
        assert self._task is not None
        if self._task.done():
            self._task.result()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._news.wait()
        self._news.clear()

    async def _run(self, version: str) -> None:
        pause, longest = PAUSE_SECONDS
        while True:
            try:
                await self._watch(version)
                version = await self._list()
                pause = PAUSE_SECONDS[0]
            except Expired:
                version = await self._list()
            except ApiError as error:
                if error.error_class not in _PASSING or isinstance(error, KindNotServed):
                    self._news.set()
                    raise
                self.problem = str(error)
                self._news.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)

    async def _list(self) -> str:
        listed = await self._client.list(self._resource, self._namespace, fields=self._fields, labels=self._labels)
        self.objects = {obj.meta.name: obj for obj in listed.items}
        self.problem = ""
        self._news.set()
        return listed.resource_version

    async def _watch(self, version: str) -> None:
        """Until the server ends it."""
        try:
            async with self._client.watch(
                self._resource,
                self._namespace,
                resource_version=version,
                fields=self._fields,
                labels=self._labels,
            ) as watch:
                async for event in watch:
                    if event.type == "BOOKMARK":
                        continue
                    if event.type == "DELETED":
                        self.objects.pop(event.object.meta.name, None)
                    else:
                        self.objects[event.object.meta.name] = event.object
                    self._news.set()
        except Forbidden:
            await asyncio.sleep(POLL_SECONDS)
