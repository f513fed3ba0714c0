"""What was typed, and what it means: names first, then the objects of a world, and what of them is to stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.cli.connection import Connection
    from pilotage.cli.preparing import Asked
    from pilotage.kube import GroupKind, Resource
    from pilotage.teardown.planning.policy import Policy
    from pilotage.teardown.snapshot.world import Item, Name, World


async def names_in(connection: Connection, asked: Asked) -> tuple[list[Name], list[Name]]:
    """What was named, and of that what cannot be there, because its kind is not served."""
    from pilotage.teardown.planning.arguments import TargetError, parse
    from pilotage.teardown.snapshot.world import Name

    here = asked.namespace or connection.client.namespace
    names: list[Name] = []
    absent: list[Name] = []
    parsed = parse(asked.words)
    if parsed.kinds and not asked.selector:
        raise TargetError(f"Which {parsed.kinds[0]}? Write KIND/NAME, or choose with -l SELECTOR.")
    for word, name in parsed.named:
        resource = await _resource(connection, word)
        names.append(Name(resource.group, resource.kind, here if resource.namespaced else "", name))
    if asked.files:
        written, absent = await _written(connection, asked, here)
        names += written
    return list(dict.fromkeys(names)), absent


async def _written(connection: Connection, asked: Asked, here: str) -> tuple[list[Name], list[Name]]:
    """The same of what stands in manifests."""
    import asyncio

    from pilotage.teardown.planning.arguments import TargetError
    from pilotage.teardown.planning.targets import served_kind
    from pilotage.teardown.snapshot.dump import manifests
    from pilotage.teardown.snapshot.world import Name

    names: list[Name] = []
    absent: list[Name] = []
    for document in await asyncio.to_thread(manifests, asked.files):
        group, kind, meta = document["apiVersion"].rpartition("/")[0], document["kind"], document["metadata"]
        if not meta.get("name"):
            raise TargetError(
                f"A {kind} in a manifest has generateName and no name: what was made of it cannot be told by it. "
                "Use its name, or a selector (-l)."
            )
        served = await served_kind(connection.discovery, group, kind)
        place = meta.get("namespace") or here
        if asked.namespace and place != asked.namespace and served is not None and served.namespaced:
            raise TargetError(f"{kind.lower()}/{meta['name']} is in namespace {place}, and -n says {asked.namespace}.")
        if served is None:
            absent.append(Name(group, kind, meta.get("namespace", ""), meta["name"]))
        else:
            names.append(Name(group, kind, place if served.namespaced else "", meta["name"]))
    return names, absent


async def find(
    connection: Connection, world: World, asked: Asked, names: Iterable[Name]
) -> tuple[list[Item], list[Name]]:
    """The objects that are meant, out of what was gathered; what that could not show is asked for by name."""
    from pilotage.teardown.planning.arguments import parse_selector

    client, discovery = connection.client, connection.discovery
    here = asked.namespace or client.namespace
    if asked.selector:
        kinds = await _kinds_named(connection, asked.words)
        matches = parse_selector(asked.selector).matches
        return [
            item
            for item in world
            if matches(item.meta.labels)
            and (item.meta.namespace == here or (kinds and not item.meta.namespace))
            and (not kinds or item.group_kind in kinds)
        ], []
    if asked.everything:
        from pilotage.teardown.planning.closure import contents

        return contents(world, here), []
    found: list[Item] = []
    absent: list[Name] = []
    for name in names:
        item = world.find(*name)
        if item is None and world.problem(name.group, name.kind, name.namespace):
            from pilotage.teardown.planning.targets import resolve

            word = f"{name.kind}.{name.group}/{name.name}" if name.group else f"{name.kind}/{name.name}"
            read = await resolve(client, discovery, [word], namespace=name.namespace, absent_ok=True)
            item = next(iter(read.found), None)
            if item is not None:
                world.add(item)
        if item is None:
            absent.append(name)
        else:
            found.append(item)
    return found, absent


async def means_what_has_no_namespace(connection: Connection, asked: Asked) -> bool:
    """Whether a selector is for kinds without a namespace as well: their parts may be in any."""
    from pilotage.kube import GroupKind

    if not asked.selector:
        return False
    kinds = await _kinds_named(connection, asked.words)
    served = [each.resource for each in (await connection.discovery.surface()).resources]
    return any(not each.namespaced and GroupKind(each.group, each.kind) in kinds for each in served)


async def _kinds_named(connection: Connection, words: Iterable[str]) -> set[GroupKind]:
    """The kinds that words mean: ``deploy,svc``, ``all``."""
    from pilotage.kube import GroupKind

    surface = await connection.discovery.surface()
    kinds: set[GroupKind] = set()
    for word in (each for joined in words for each in joined.split(",") if each):
        members = {
            GroupKind(each.resource.group, each.resource.kind)
            for each in surface.resources
            if word.lower() in each.categories
        }
        resource = None if members else await _resource(connection, word)
        kinds |= members or ({GroupKind(resource.group, resource.kind)} if resource else set())
    return kinds


async def policy_of(connection: Connection, world: World, asked: Asked) -> Policy:
    """What is to stay, and for how long is waited."""
    from pilotage.catalogue import Keep
    from pilotage.teardown.planning.arguments import TargetError
    from pilotage.teardown.planning.policy import Policy

    families = {keep.value: keep for keep in Keep}
    keep, uids = set(), set()
    here = asked.namespace or connection.client.namespace
    for word in asked.keep:
        if word in families:
            keep.add(families[word])
        elif "/" in word:
            kind, name = word.split("/", 1)
            resource = await _resource(connection, kind)
            item = world.find(resource.group, resource.kind, here if resource.namespaced else "", name)
            if item is None:
                raise TargetError(f"--keep {word}: there is no such object. Nothing was done.")
            uids.add(item.uid)
        else:
            raise click.UsageError(f"--keep {word}: say {', '.join(families)}, or KIND/NAME.")
    return Policy(
        keep=frozenset(keep),
        keep_uids=frozenset(uids),
        timeout_seconds=asked.timeout,
        drain_seconds=asked.drain,
    )


async def _resource(connection: Connection, word: str) -> Resource:
    """The kind a word means."""
    from pilotage.kube import UnknownKind
    from pilotage.teardown.planning.arguments import TargetError, unknown_kind

    try:
        return (await connection.discovery.find(word)).resource
    except UnknownKind:
        raise TargetError(unknown_kind(word, await connection.discovery.surface())) from None
