"""Watches of the kinds that a teardown waits for, each begun when it is needed, and single reads beside them.

Nothing is watched that nobody waits for. A watch goes on from what was gathered for the plan, where that is the same
collection, and so costs no list of its own.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from functools import partial

from pilotage.kube import Client, GroupKind, Resource
from pilotage.runtime.informer import Change, Informer
from pilotage.teardown.planning.ledger import Entry
from pilotage.teardown.snapshot.world import World

Unfinished = Callable[[GroupKind], list[Entry]]
"""The entries of a kind that are not known to be gone."""


LOOK_SECONDS = 2.0
"""Interval at which an object is read that cannot be watched."""
NAMESPACES_ONE_BY_ONE_MAX = 3
"""A kind in more namespaces than this is watched in all of them at once."""


class Watches:
    """The watches of one teardown. `take` gets every change, `read` reads one entry afresh."""

    def __init__(
        self,
        client: Client,
        rng: random.Random,
        world: World | None,
        *,
        unfinished: Unfinished,
        take: Callable[[Resource, Change], None],
        read: Callable[[Entry], Awaitable[None]],
    ) -> None:
        self._client = client
        self._rng = rng
        self._world = world
        self._unfinished = unfinished
        self._take = take
        self._read = read
        self._watched: dict[tuple[GroupKind, str], Informer] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def problem(self) -> str:
        """Why the API server tells nothing at the moment; empty if it does."""
        problems = (informer.problem for informer in self._watched.values())
        return next((problem.message for problem in problems if problem is not None), "")

    def has(self, entry: Entry) -> bool:
        """Whether its kind is watched where it is."""
        kind = entry.group_kind
        return (kind, entry.namespace) in self._watched or (kind, "") in self._watched

    def begin(self, entry: Entry) -> None:
        """Watch the kind of an entry from now on."""
        if self.has(entry):
            return
        kind = entry.group_kind
        namespaces = {each.namespace for each in self._unfinished(kind)}
        place = entry.namespace if len(namespaces) <= NAMESPACES_ONE_BY_ONE_MAX else ""
        informer = Informer(self._client, entry.resource, rng=self._rng, namespace=place, metadata_only=True)
        self._seed(informer, entry.resource, place)
        informer.add_handler(partial(self._take, entry.resource))
        self._watched[kind, place] = informer
        self._tasks.append(asyncio.create_task(self._keep(informer, kind, place), name=f"watch {kind} {place}"))

    async def close(self) -> None:
        """Watch nothing any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _seed(self, informer: Informer, resource: Resource, place: str) -> None:
        world = self._world
        reading = world.kinds.get(resource.group_kind) if world is not None else None
        if world is None or reading is None or reading.problem or not reading.resource_version:
            return
        if world.namespaces == ({place} if place else frozenset()):
            items = world.of(resource.group, resource.kind, place or None)
            informer.seed([item.object for item in items], reading.resource_version)

    async def _keep(self, informer: Informer, kind: GroupKind, place: str) -> None:
        """The informer, and single reads where it tells nothing.

        Of what the first list lacks no event will come. And who may not list may still be allowed to look.
        """
        running = asyncio.create_task(informer.run())
        compared = False
        try:
            while not running.done():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await informer.synced.wait()
                if informer.problem is not None or (informer.synced.is_set() and not compared):
                    compared = informer.synced.is_set()
                    await asyncio.gather(*map(self._read, self._not_shown(informer, kind, place)))
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def _not_shown(self, informer: Informer, kind: GroupKind, place: str) -> list[Entry]:
        """The unfinished entries that the cache of their kind does not have, or may have wrong."""
        shown = set() if informer.problem is not None else {obj.meta.uid for obj in informer.store.list()}
        return [
            entry
            for entry in self._unfinished(kind)
            if entry.uid not in shown and (not place or entry.namespace == place)
        ]
