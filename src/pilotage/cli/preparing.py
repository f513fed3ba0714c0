"""From what was typed to a ledger: what `plan` and `delete` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

import click

from pilotage.cli.connecting import files_option
from pilotage.cli.importing import import_meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Literal

    from pilotage.cli.connecting import Connection
    from pilotage.kube import Resource, Surface
    from pilotage.teardown.graph import Graph
    from pilotage.teardown.hazards import Hazard
    from pilotage.teardown.ledger import Ledger
    from pilotage.teardown.policy import Policy
    from pilotage.teardown.world import GroupKind, Item, Name, World

P = ParamSpec("P")
R = TypeVar("R")


class Asked(NamedTuple):
    """What a person wants to be gone, and how."""

    words: tuple[str, ...]
    namespace: str
    everything: bool
    files: tuple[Path | Literal["-"], ...]
    selector: str
    keep: tuple[str, ...]
    adopt: bool
    timeout: float = 600.0
    drain: float = 0.0


class Prepared(NamedTuple):
    """What came of it."""

    world: World
    ledger: Ledger
    hazards: list[Hazard]
    absent: list[Name]
    """What was named and is not there: it needs no deleting."""


def target_options(command: Callable[P, R]) -> Callable[P, R]:
    """KIND/NAME…, ``-n``, ``--all``, ``-f``, ``-l``, ``--keep`` and ``--adopt``."""
    for option in (
        click.option(
            "--adopt",
            is_flag=True,
            help="Take along what refers to it and to nothing else (routes, Services, autoscalers, budgets), the "
            "configuration that only it mounts, and the parts of an owner that is stuck in deletion.",
        ),
        click.option(
            "--keep",
            metavar="WHAT",
            multiple=True,
            help="What stays: volumes, secrets, configs, or KIND/NAME. Can be given several times.",
        ),
        click.option("-l", "--selector", metavar="SELECTOR", default="", help="All objects with these labels."),
        files_option("All objects in these manifests: files, folders, or - for stdin."),
        click.option("--all", "everything", is_flag=True, help="All objects of the namespace given with -n."),
        click.option("-n", "--namespace", metavar="NAME", default="", help="The namespace instead of the context's."),
        click.argument("words", metavar="[KIND/NAME]...", nargs=-1),
    ):
        command = option(command)
    return command


def can_look_twice(asked: Asked) -> bool:
    """Whether it can be prepared again from the start: what came from stdin is there only once."""
    return "-" not in asked.files


def check(asked: Asked) -> None:
    """Refuse what means nothing, or could mean too much."""
    ways = [bool(asked.words) and not asked.selector, asked.everything, bool(asked.files), bool(asked.selector)]
    if sum(ways) == 0:
        raise click.UsageError("Say what is meant: KIND/NAME, -f FILE, -l SELECTOR, or -n NAMESPACE --all.")
    if asked.selector and any("/" in word for word in asked.words):
        raise click.UsageError("A name and -l exclude each other: give kinds with -l, or names without it.")
    if sum(ways) > 1 and (asked.everything or asked.selector):
        raise click.UsageError("--all and -l stand alone: they cannot be mixed with names, files or each other.")
    if asked.everything and not asked.namespace:
        raise click.UsageError("--all needs -n NAMESPACE: it would be too easy to mean another one.")


_MODULES = (
    "pilotage.teardown.gather",
    "pilotage.teardown.relations",
    "pilotage.teardown.hazards",
    "pilotage.teardown.asking",
    "pilotage.teardown.keepers",
    "pilotage.teardown.plan",
    "pilotage.teardown.drive",
    "pilotage.teardown.receipt",
    "pilotage.cli.carrying_out",
)


async def prepare(connection: Connection, asked: Asked) -> Prepared:
    """Look at the cluster, find what is meant, and make the ledger. Changes nothing."""
    from pilotage.kube.discovery import as_served

    import_meanwhile(_MODULES)
    return await as_served(connection.discovery, lambda: _prepare(connection, asked))


async def _prepare(connection: Connection, asked: Asked) -> Prepared:
    client, discovery = connection.client, connection.discovery
    surface = await discovery.surface()
    names, absent = await _names(connection, asked)
    places = _places(names, asked.namespace or client.namespace)
    world = await read_world(connection, surface, places)
    found, gone = await _find(connection, world, asked, names)
    await see_keepers(connection, world)
    policy = await _policy(connection, world, asked)

    def plan(world: World, graph: Graph) -> Ledger:
        from pilotage.teardown.plan import make_ledger

        return make_ledger(
            world,
            graph,
            found,
            policy,
            adopt=asked.adopt,
            keeper_of=workload_of,
            who_keeps=who_keeps,
            is_abandoned=is_abandoned,
        )

    return await foresee(connection, world, plan, _unread(world, asked, found), absent + gone)


async def read_world(connection: Connection, surface: Surface, places: list[str]) -> World:
    """All that may have to do with a teardown in these namespaces; none: everywhere."""
    from pilotage.teardown.gather import gather
    from pilotage.teardown.in_full import HAZARDS, related

    client, discovery = connection.client, connection.discovery
    full = related(surface.resources) | HAZARDS
    kinds = _kinds(surface, full) if places else None
    return await gather(client, discovery, namespaces=places, full=full, kinds=kinds)


async def foresee(
    connection: Connection,
    world: World,
    plan: Callable[[World, Graph], Ledger],
    unread: tuple[str, ...],
    absent: list[Name],
) -> Prepared:
    """What `plan` makes of a world, with all the answers it asks for, and what will stand in its way."""
    import msgspec

    from pilotage.teardown.asking import settle
    from pilotage.teardown.hazards import predict
    from pilotage.teardown.relations import relate

    graph = await settle(connection.client, world, relate)
    ledger = await settle(connection.client, world, lambda world: plan(world, graph))
    ledger = msgspec.structs.replace(ledger, unread=unread)
    hazards = await settle(connection.client, world, lambda world: predict(world, graph, ledger))
    return Prepared(world, ledger, hazards, absent)


def workload_of(world: World, item: Item, finalizer: str) -> Item | None:
    """What runs the controller that keeps a finalizer."""
    from pilotage.teardown.keepers import keeper

    return keeper(world, item, finalizer).workload


def who_keeps(world: World, item: Item, finalizer: str) -> str:
    """The controller that keeps a finalizer, as a person calls it."""
    from pilotage.teardown.keepers import keeper

    return keeper(world, item, finalizer).who


def is_abandoned(world: World, item: Item, finalizer: str) -> bool:
    """Whether nobody is going to take a finalizer off."""
    from pilotage.teardown.keepers import abandoned

    return abandoned(world, item, finalizer)


def _unread(world: World, asked: Asked, found: Iterable[Item]) -> tuple[str, ...]:
    """The kinds that had to be searched for what is meant, and could not be read."""
    searched = asked.selector or asked.everything or any(item.group_kind == ("", "Namespace") for item in found)
    if not searched:
        return ()
    kinds = [str(kind) for kind, reading in world.kinds.items() if reading.problem and reading.resource.namespaced]
    return tuple(sorted(kinds) + sorted(world.unreadable_groups))


def _kinds(surface: Surface, full: frozenset[GroupKind]) -> frozenset[GroupKind]:
    """The kinds to read for targets with a namespace: all that have one, and of the others those that point somewhere.

    What has a namespace cannot own what has none.
    """
    from pilotage.teardown.gather import readable
    from pilotage.teardown.world import GroupKind

    listed = readable(surface, None, full)
    kinds = {GroupKind(each.group, each.kind): each.namespaced for each in listed}
    return frozenset(kind for kind, namespaced in kinds.items() if namespaced or kind in full) | {
        GroupKind("", "Namespace")
    }


async def _names(connection: Connection, asked: Asked) -> tuple[list[Name], list[Name]]:
    """What was named, and of that what cannot be there, because its kind is not served."""
    from pilotage.teardown.words import TargetError, parse
    from pilotage.teardown.world import Name

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

    from pilotage.teardown.dump import manifests
    from pilotage.teardown.targets import served_kind
    from pilotage.teardown.words import TargetError
    from pilotage.teardown.world import Name

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


def _places(names: Iterable[Name], here: str) -> list[str]:
    """Where to look; nowhere in particular, which is everywhere, if something without a namespace is meant."""
    places = set()
    for name in names:
        place = name.name if name.group_kind == ("", "Namespace") else name.namespace
        if not place:
            return []
        places.add(place)
    return sorted(places) or [here]


async def _find(
    connection: Connection, world: World, asked: Asked, names: Iterable[Name]
) -> tuple[list[Item], list[Name]]:
    """The objects that are meant, out of what was gathered; what that could not show is asked for by name."""
    from pilotage.teardown.words import parse_selector

    client, discovery = connection.client, connection.discovery
    here = asked.namespace or client.namespace
    if asked.selector or asked.everything:
        check_namespace(world, here)
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
        from pilotage.teardown.closure import contents

        return contents(world, here), []
    found: list[Item] = []
    absent: list[Name] = []
    for name in names:
        item = world.find(*name)
        if item is None and world.problem(name.group, name.kind, name.namespace):
            from pilotage.teardown.targets import resolve

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


def check_namespace(world: World, name: str) -> None:
    """Refuse to search a namespace that is not there: it is a typing error, or its work is done already."""
    from pilotage.teardown.words import TargetError

    if world.find("", "Namespace", "", name) is None and not world.problem("", "Namespace"):
        raise TargetError(f"There is no namespace {name}. `kubectl get namespaces` lists those there are.")


async def _kinds_named(connection: Connection, words: Iterable[str]) -> set[GroupKind]:
    """The kinds that words mean: ``deploy,svc``, ``all``."""
    from pilotage.teardown.world import GroupKind

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


async def see_keepers(connection: Connection, world: World) -> None:
    """Who keeps the finalizers of custom resources usually lives in another namespace: see what runs there, too."""
    from pilotage.teardown.gather import gather
    from pilotage.teardown.keepers import FULL
    from pilotage.teardown.phases import WORKLOADS, is_built_in
    from pilotage.teardown.world import GroupKind

    kept = any(item.meta.finalizers and not is_built_in(item.resource.group) for item in world)
    if world.namespaces and kept:
        kinds = (WORKLOADS - {GroupKind("", "Pod")}) | FULL
        for item in await gather(connection.client, connection.discovery, kinds=kinds, full=kinds):
            if world.get(item.uid) is None:
                world.add(item)


async def _policy(connection: Connection, world: World, asked: Asked) -> Policy:
    from pilotage.teardown.policy import Keep, Policy
    from pilotage.teardown.words import TargetError

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
    from pilotage.teardown.words import TargetError, unknown_kind

    try:
        return (await connection.discovery.find(word)).resource
    except UnknownKind:
        raise TargetError(unknown_kind(word, await connection.discovery.surface())) from None
