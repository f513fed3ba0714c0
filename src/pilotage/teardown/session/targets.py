"""The objects that a request means: names first, then the objects of a world, and those of them that stay."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pilotage.catalogue.kind import Keep
from pilotage.kube import GroupKind
from pilotage.teardown.planning.arguments import find_kind, parse, parse_selector
from pilotage.teardown.session import Session
from pilotage.teardown.session.request import RequestError, RequestProblem, RequestRefused, TeardownRequest
from pilotage.teardown.snapshot.world import Item, Name, World

if TYPE_CHECKING:
    from pilotage.teardown.planning.ledger import Policy


async def names_in(session: Session, request: TeardownRequest) -> tuple[list[Name], list[Name]]:
    """The names in a request; and those of manifests that cannot be there, because their kind is not served."""
    here = request.namespace or session.client.namespace
    names: list[Name] = []
    absent: list[Name] = []
    parsed = parse(request.words)
    if parsed.kinds and not request.selector:
        raise RequestRefused(RequestProblem.NAME_MISSING, parsed.kinds[0])
    for word, name in parsed.named:
        resource = await find_kind(session.discovery, word)
        names.append(Name(resource.group, resource.kind, here if resource.namespaced else "", name))
    if request.files:
        written, absent = await _written(session, request, here)
        names += written
    return list(dict.fromkeys(names)), absent


async def _written(session: Session, request: TeardownRequest, here: str) -> tuple[list[Name], list[Name]]:
    """The names in manifests: those that may be there, and those whose kind is not served."""

    from pilotage.teardown.planning.targets import served_kind
    from pilotage.teardown.snapshot.dump import manifests

    names: list[Name] = []
    absent: list[Name] = []
    for document in await asyncio.to_thread(manifests, request.files):
        group, kind, meta = document["apiVersion"].rpartition("/")[0], document["kind"], document["metadata"]
        if not meta.get("name"):
            raise RequestRefused(RequestProblem.NAME_GENERATED, kind)
        served = await served_kind(session.discovery, group, kind)
        place = meta.get("namespace") or here
        if request.namespace and place != request.namespace and served is not None and served.namespaced:
            named = f"{kind.lower()}/{meta['name']}"
            raise RequestRefused(RequestProblem.NAMESPACE_DIFFERS, named, place, request.namespace)
        if served is None:
            absent.append(Name(group, kind, meta.get("namespace", ""), meta["name"]))
        else:
            names.append(Name(group, kind, place if served.namespaced else "", meta["name"]))
    return names, absent


async def find(
    session: Session, world: World, request: TeardownRequest, names: Iterable[Name]
) -> tuple[list[Item], list[Name]]:
    """The objects that are meant and the names that are absent, by a world; what it could not show is read by name."""
    client, discovery = session.client, session.discovery
    here = request.namespace or client.namespace
    if request.selector:
        kinds = await _kinds_named(session, request.words)
        matches = parse_selector(request.selector).matches
        return [
            item
            for item in world
            if matches(item.meta.labels)
            and (item.meta.namespace == here or (kinds and not item.meta.namespace))
            and (not kinds or item.group_kind in kinds)
        ], []
    if request.everything:
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


async def selects_cluster_scoped(session: Session, request: TeardownRequest) -> bool:
    """Whether a selector names cluster-scoped kinds as well: their parts may be in any namespace."""
    if not request.selector:
        return False
    kinds = await _kinds_named(session, request.words)
    served = [each.resource for each in (await session.discovery.surface()).resources]
    return any(not each.namespaced and GroupKind(each.group, each.kind) in kinds for each in served)


async def _kinds_named(session: Session, words: Iterable[str]) -> set[GroupKind]:
    """The kinds that words mean: ``deploy,svc``, ``all``."""
    surface = await session.discovery.surface()
    kinds: set[GroupKind] = set()
    for word in (each for joined in words for each in joined.split(",") if each):
        members = {
            GroupKind(each.resource.group, each.resource.kind)
            for each in surface.resources
            if word.lower() in each.categories
        }
        resource = None if members else await find_kind(session.discovery, word)
        kinds |= members or ({GroupKind(resource.group, resource.kind)} if resource else set())
    return kinds


async def policy_of(session: Session, world: World, request: TeardownRequest) -> Policy:
    """The policy of a request: what is kept, and how long is waited."""
    from pilotage.teardown.planning.ledger import Policy

    families = {keep.value: keep for keep in Keep}
    keep, uids = set(), set()
    here = request.namespace or session.client.namespace
    for word in request.keep:
        if word in families:
            keep.add(families[word])
        elif "/" in word:
            kind, name = word.split("/", 1)
            resource = await find_kind(session.discovery, kind)
            item = world.find(resource.group, resource.kind, here if resource.namespaced else "", name)
            if item is None:
                raise RequestRefused(RequestProblem.KEEPS_ABSENT, word)
            uids.add(item.uid)
        else:
            raise RequestError(RequestProblem.KEEPS_UNKNOWN, word)
    return Policy(
        keep=frozenset(keep),
        keep_uids=frozenset(uids),
        timeout_seconds=request.timeout,
        drain_seconds=request.drain,
    )
