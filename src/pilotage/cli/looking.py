"""Common parts of the commands that explain: a world, and the objects that are meant."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from pilotage.cli.relating import kinds_in_full

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pilotage.cli.connection import Connection
    from pilotage.kube import GroupKind
    from pilotage.teardown.snapshot.dump import Source
    from pilotage.teardown.snapshot.world import Item, World


class Seen(NamedTuple):
    """A world, and the objects in it that were named."""

    world: World
    items: list[Item]


async def look(connection: Connection, words: Sequence[str], namespace: str, full: Iterable[GroupKind] = ()) -> Seen:
    """The cluster, and the objects that were named, which must be there. Raises TargetError, ApiError."""
    from pilotage.kube.discovery import as_served

    return await as_served(connection.discovery, lambda: _look(connection, words, namespace, full))


async def _look(connection: Connection, words: Sequence[str], namespace: str, full: Iterable[GroupKind]) -> Seen:
    from pilotage.teardown.planning.targets import resolve

    await connection.discovery.surface()
    looking = asyncio.create_task(look_around(connection, (), full))  # while it is found out what is meant
    try:
        found = (await resolve(connection.client, connection.discovery, words, namespace=namespace)).found
        world = await looking
    finally:
        looking.cancel()
    places = [place(item) for item in found]
    if any(places) and _is_forbidden(world):
        world = await look_around(connection, places, full, everywhere=False)
    for item in found:
        if world.get(item.uid) is None:  # its kind could not be listed, or it is younger than the list
            world.add(item)
    return Seen(world, [world.get(item.uid) or item for item in found])


async def look_around(
    connection: Connection, namespaces: Iterable[str], full: Iterable[GroupKind] = (), *, everywhere: bool = True
) -> World:
    """All there is. `everywhere`: in all namespaces, because causes and references come from there as well; who may
    not read those gets `namespaces` alone.
    """
    from pilotage.teardown.snapshot.gather import gather

    client, discovery = connection.client, connection.discovery
    surface = await discovery.surface()
    in_full = kinds_in_full(surface.resources) | frozenset(full)
    places = [each for each in dict.fromkeys(namespaces) if each]
    if everywhere:
        world = await gather(client, discovery, full=in_full)
        if not places or not _is_forbidden(world):
            return world
    return await gather(client, discovery, namespaces=places, full=in_full)


def _is_forbidden(world: World) -> bool:
    """Whether one may not look into all namespaces."""
    from pilotage.kube import ErrorClass, GroupKind

    pods = world.kinds.get(GroupKind("", "Pod"))
    return pods is not None and pods.error_class is ErrorClass.FORBIDDEN


def look_into(files: Iterable[Source], words: Sequence[str], namespace: str) -> Seen:
    """The same from a dump. Raises DumpError, TargetError."""
    from pilotage.teardown.planning.targets_in_dump import resolve_in
    from pilotage.teardown.snapshot.dump import load_dump

    world = load_dump(files)
    return Seen(world, resolve_in(world, words, namespace=namespace).found)


def place(item: Item) -> str:
    """The namespace that an object is in, or is."""
    return item.meta.name if item.group_kind == ("", "Namespace") else item.meta.namespace
