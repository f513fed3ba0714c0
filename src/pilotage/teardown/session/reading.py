"""The part of a cluster that a question needs: read live, or taken from a dump."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from pilotage.teardown.session.relation_files import kinds_in_full, kinds_that_reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pilotage.kube import GroupKind, Surface
    from pilotage.teardown.session import Session
    from pilotage.teardown.snapshot.dump import Source
    from pilotage.teardown.snapshot.world import Item, World


class NamedObjects(NamedTuple):
    """A world, and the objects in it that were named."""

    world: World
    items: list[Item]


async def read_named(
    session: Session, words: Sequence[str], namespace: str, full: Iterable[GroupKind] = ()
) -> NamedObjects:
    """The cluster, and the objects that were named, which must be there. Raises TargetError, ApiError.

    `full`: kinds to read whole, besides those that the relations need.
    """
    from pilotage.kube.discovery import as_served

    return await as_served(session.discovery, lambda: _read_named(session, words, namespace, full))


async def _read_named(
    session: Session, words: Sequence[str], namespace: str, full: Iterable[GroupKind]
) -> NamedObjects:
    from pilotage.teardown.planning.targets import resolve

    await session.discovery.surface()
    reading = asyncio.create_task(read_world(session, (), full))  # side by side with finding out what is meant
    try:
        found = (await resolve(session.client, session.discovery, words, namespace=namespace)).found
        world = await reading
    finally:
        reading.cancel()
    namespaces = [item.home for item in found]
    if any(namespaces) and _is_forbidden(world):
        world = await read_world(session, namespaces, full, everywhere=False)
    for item in found:
        if world.get(item.uid) is None:  # its kind could not be listed, or it is younger than the list
            world.add(item)
    return NamedObjects(world, [world.get(item.uid) or item for item in found])


def read_named_in_dump(files: Iterable[Source], words: Sequence[str], namespace: str) -> NamedObjects:
    """The same from a dump. Raises DumpError, TargetError."""
    from pilotage.teardown.planning.targets import resolve_in
    from pilotage.teardown.snapshot.dump import load_dump

    world = load_dump(files)
    return NamedObjects(world, resolve_in(world, words, namespace=namespace).found)


async def read_world(
    session: Session, namespaces: Iterable[str], full: Iterable[GroupKind] = (), *, everywhere: bool = True
) -> World:
    """All kinds. `everywhere`: in all namespaces, because causes and references come from there as well; a user who
    may not read those gets `namespaces` alone.
    """
    from pilotage.teardown.snapshot.gather import gather

    client, discovery = session.client, session.discovery
    surface = await discovery.surface()
    in_full = kinds_in_full(surface.resources) | frozenset(full)
    places = [each for each in dict.fromkeys(namespaces) if each]
    if everywhere:
        world = await gather(client, discovery, full=in_full)
        if not places or not _is_forbidden(world):
            return world
    return await gather(client, discovery, namespaces=places, full=in_full)


async def read_for_teardown(
    session: Session, surface: Surface, namespaces: list[str], *, controllers: bool = True
) -> World:
    """All that may have to do with a teardown in these namespaces; none means in all of them.

    From other namespaces comes what can point into these, and, where `controllers` may go, what may wait for one.
    """
    from pilotage.catalogue.reading import FOR_HAZARDS
    from pilotage.teardown.snapshot.gather import gather

    client, discovery = session.client, session.discovery
    full = kinds_in_full(surface.resources) | FOR_HAZARDS
    if not namespaces:
        return await gather(client, discovery, full=full)
    kinds, everywhere = _kinds_to_read(surface, full, controllers=controllers)
    return await gather(client, discovery, namespaces=namespaces, full=full, kinds=kinds, everywhere=everywhere)


def _kinds_to_read(
    surface: Surface, full: frozenset[GroupKind], *, controllers: bool
) -> tuple[frozenset[GroupKind], frozenset[GroupKind]]:
    """The kinds to read for targets with a namespace, and those of them to read in all namespaces.

    All that have a namespace, and of the others those that point somewhere: an object with a namespace cannot own one
    without. Where `controllers` may go, all custom kinds, and their definitions, which tell whose they are.
    """
    from pilotage.catalogue.groups import is_built_in
    from pilotage.kube import GroupKind
    from pilotage.teardown.snapshot.gather import readable

    listed = {GroupKind(each.group, each.kind): each.namespaced for each in readable(surface, None, full)}
    custom = frozenset(kind for kind in listed if controllers and not is_built_in(kind.group))
    kinds = {kind for kind, namespaced in listed.items() if namespaced or kind in full or kind in custom}
    kinds.add(GroupKind("", "Namespace"))
    if custom:
        kinds.add(GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"))
    return frozenset(kinds), kinds_that_reach(surface.resources) | custom


async def add_finalizer_owners(session: Session, world: World) -> None:
    """Read the workloads of other namespaces too, if finalizers of this world are removed by a controller there."""
    from pilotage.catalogue.reading import FOR_FINALIZERS
    from pilotage.catalogue.registry import workloads
    from pilotage.kube import GroupKind
    from pilotage.teardown.diagnosis.hazards.finalizers import others_matter
    from pilotage.teardown.snapshot.gather import gather

    if others_matter(world):
        kinds = (workloads() - {GroupKind("", "Pod")}) | FOR_FINALIZERS
        elsewhere = await gather(session.client, session.discovery, kinds=kinds, full=kinds)
        world.everywhere |= {kind for kind, reading in elsewhere.kinds.items() if not reading.problem}
        for item in elsewhere:
            if world.get(item.uid) is None:
                world.add(item)


async def add_appliers(session: Session, world: World) -> None:
    """Read the objects of GitOps tools in other namespaces too, if something of this world is marked as theirs."""
    from pilotage.catalogue.names import APPLIERS
    from pilotage.kube import GroupKind
    from pilotage.teardown.diagnosis.hazards.appliers import are_applied
    from pilotage.teardown.snapshot.gather import gather

    served = {
        GroupKind(each.resource.group, each.resource.kind) for each in (await session.discovery.surface()).resources
    }
    kinds = frozenset(APPLIERS) & served
    if kinds and are_applied(world):
        for item in await gather(session.client, session.discovery, kinds=kinds, full=kinds):
            if world.get(item.uid) is None:
                world.add(item)


async def cluster_uid(session: Session, world: World | None = None) -> str:
    """The identity of the cluster. It never changes: if a `world` has shown it, the server is not asked."""
    from pilotage.teardown.engine.receipt import cluster_uid as read

    seen = world.find("", "Namespace", "", "kube-system") if world is not None else None
    return seen.uid if seen is not None else await read(session.client)


def check_namespace(world: World, name: str) -> None:
    """TargetError for a namespace that is not there: it is a typing error, or its work is done already."""
    from pilotage.teardown.planning.arguments import TargetError

    if world.find("", "Namespace", "", name) is None and not world.problem("", "Namespace"):
        raise TargetError(f"There is no namespace {name}. `kubectl get namespaces` lists those there are.")


def _is_forbidden(world: World) -> bool:
    """Whether the user may not read all namespaces."""
    from pilotage.kube import ErrorClass, GroupKind

    pods = world.kinds.get(GroupKind("", "Pod"))
    return pods is not None and pods.error_class is ErrorClass.FORBIDDEN
