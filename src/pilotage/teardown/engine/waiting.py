"""Waits until objects are proven gone: the uids are fixed at the start, and only a fresh, consistent read proves it.

A watch tells when to read again; it proves nothing by itself. An error that passes is waited out. One that does not,
such as a permission that is missing, is raised: what cannot be read is never gone.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pilotage.kube import Absent, ApiError, Client, ErrorClass, Expired, Forbidden, KindNotServed, Resource
from pilotage.teardown.snapshot.world import Item

PAUSE_SECONDS = (0.2, 5.0)
"""First and longest pause after a transient error."""
POLL_SECONDS = 1.0
"""Interval of reads where a watch is not allowed."""
WATCH_SECONDS = 300
_TRANSIENT = (ErrorClass.UNAVAILABLE, ErrorClass.UNCERTAIN, ErrorClass.THROTTLED)


class ProvenGone(NamedTuple):
    """One object that is proven gone."""

    item: Item
    request: str
    """The read that proved it."""
    successor: str = ""
    """The uid of another object that has its name by now."""


async def wait_gone(client: Client, items: Iterable[Item], on_gone: Callable[[ProvenGone], None]) -> None:
    """Return when all of them are gone, and tell of each as soon as it is. Raises an ApiError that does not pass."""
    places: dict[tuple[Resource, str], list[Item]] = {}
    for item in items:
        places.setdefault((item.resource, item.meta.namespace), []).append(item)
    try:
        async with asyncio.TaskGroup() as group:
            for (resource, namespace), there in places.items():
                group.create_task(_Place(client, resource, namespace, there, on_gone).wait())
    except ExceptionGroup as errors:  # not `except*`: what is raised there, some 3.11 put into a group again
        raise errors.exceptions[0] from None


class _Place:
    """Objects of one kind in one namespace."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespace: str,
        items: list[Item],
        on_gone: Callable[[ProvenGone], None],
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._pending = {item.uid: item for item in items}
        self._on_gone = on_gone

    async def wait(self) -> None:
        pause, longest = PAUSE_SECONDS
        while True:
            try:
                version = await self._read()
                if not self._pending:
                    return
                pause = PAUSE_SECONDS[0]
                await self._watch(version)
            except Expired:
                continue
            except ApiError as error:
                if error.error_class not in _TRANSIENT or isinstance(error, KindNotServed):
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)

    async def _read(self) -> str:
        """Read them afresh and tell of those that are gone; returns the version to watch from."""
        if len(self._pending) > 1:
            listed = await self._client.list(self._resource, self._namespace, metadata_only=True)
            self._conclude(
                f"LIST {self._resource.path(self._namespace)}", {obj.meta.name: obj.meta.uid for obj in listed.items}
            )
            return listed.resource_version
        (item,) = self._pending.values()
        request = f"GET {self._resource.path(self._namespace, item.meta.name)}"
        try:
            found = await self._client.get(self._resource, item.object.key, metadata_only=True)
        except Absent:
            self._conclude(request, {})
            return ""
        self._conclude(request, {found.meta.name: found.meta.uid})
        return found.meta.resource_version

    def _conclude(self, request: str, uids: dict[str, str]) -> None:
        for uid, item in list(self._pending.items()):
            found = uids.get(item.meta.name, "")
            if found != uid:
                del self._pending[uid]
                self._on_gone(ProvenGone(item, request, found))

    async def _watch(self, version: str) -> None:
        """Return when one of them seems to be gone, or after a while."""
        alone = next(iter(self._pending.values())).meta.name if len(self._pending) == 1 else ""
        try:
            async with self._client.watch(
                self._resource,
                self._namespace,
                resource_version=version,
                fields=f"metadata.name={alone}" if alone else "",
                metadata_only=True,
                seconds=WATCH_SECONDS,
            ) as watch:
                async for event in watch:
                    if event.type == "DELETED" and event.object.meta.uid in self._pending:
                        return
        except Forbidden:
            await asyncio.sleep(POLL_SECONDS)
