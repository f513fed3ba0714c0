"""From what was typed to a ledger: what `plan` and `delete` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

import click

from pilotage.cli.meaning import find, means_what_has_no_namespace, names_in, policy_of
from pilotage.cli.preload import import_meanwhile
from pilotage.cli.relating import kinds_in_full, kinds_that_reach, related_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Literal

    from pilotage.cli.connection import Connection
    from pilotage.kube import GroupKind, Surface
    from pilotage.teardown.diagnosis.hazards import Hazard
    from pilotage.teardown.planning.ledger import Ledger
    from pilotage.teardown.snapshot.graph import Graph
    from pilotage.teardown.snapshot.world import Item, Name, World

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
    "pilotage.teardown.snapshot.gather",
    "pilotage.teardown.relations",
    "pilotage.teardown.diagnosis.hazards",
    "pilotage.teardown.snapshot.resolve",
    "pilotage.teardown.diagnosis.finalizer_owners",
    "pilotage.teardown.planning.plan",
    "pilotage.teardown.engine.drive",
    "pilotage.teardown.engine.receipt",
    "pilotage.cli.carrying_out",
)


_RUN_CONTROLLERS = frozenset(
    {("", "Namespace"), ("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "StatefulSet")}
)
"""Of the kinds of Kubernetes, those that a controller runs in, or may be in."""
_NAMES_MAX = 4


async def prepare(connection: Connection, asked: Asked) -> Prepared:
    """Look at the cluster, find what is meant, and make the ledger. Changes nothing."""
    from pilotage.kube.discovery import as_served

    import_meanwhile(_MODULES)
    return await as_served(connection.discovery, lambda: _prepare(connection, asked))


async def _prepare(connection: Connection, asked: Asked) -> Prepared:
    client, discovery = connection.client, connection.discovery
    surface = await discovery.surface()
    names, absent = await names_in(connection, asked)
    here = asked.namespace or client.namespace
    places = [] if await means_what_has_no_namespace(connection, asked) else _places(names, here)
    world = await read_world(connection, surface, places, controllers=_may_run_controllers(asked, names))
    if asked.selector or asked.everything:
        check_namespace(world, here)
    found, gone = await find(connection, world, asked, names)
    await see_keepers(connection, world)
    policy = await policy_of(connection, world, asked)

    def plan(world: World, graph: Graph) -> Ledger:
        from pilotage.teardown.planning.plan import make_ledger

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


async def read_world(connection: Connection, surface: Surface, places: list[str], *, controllers: bool = True) -> World:
    """All that may have to do with a teardown in these namespaces; none: everywhere.

    From other namespaces comes what can point into these, and, where `controllers` may go, what may wait for one.
    """
    from pilotage.catalogue.reading import FOR_HAZARDS
    from pilotage.teardown.snapshot.gather import gather

    client, discovery = connection.client, connection.discovery
    full = kinds_in_full(surface.resources) | FOR_HAZARDS
    if not places:
        return await gather(client, discovery, full=full)
    kinds, everywhere = _kinds(surface, full, controllers=controllers)
    return await gather(client, discovery, namespaces=places, full=full, kinds=kinds, everywhere=everywhere)


async def foresee(
    connection: Connection,
    world: World,
    plan: Callable[[World, Graph], Ledger],
    unread: tuple[str, ...],
    absent: list[Name],
) -> Prepared:
    """What `plan` makes of a world, with all the answers it asks for, and what will stand in its way."""
    import msgspec

    from pilotage.teardown.diagnosis.hazards import predict
    from pilotage.teardown.snapshot.resolve import settle

    graph = await settle(connection.client, world, related_graph)
    ledger = await settle(connection.client, world, lambda world: plan(world, graph))
    remarks = tuple(dict.fromkeys((*ledger.remarks, *_not_seen(world))))
    ledger = msgspec.structs.replace(ledger, unread=unread, remarks=remarks)
    hazards = await settle(connection.client, world, lambda world: predict(world, graph, ledger))
    return Prepared(world, ledger, hazards, absent)


def workload_of(world: World, item: Item, finalizer: str) -> Item | None:
    """What runs the controller that keeps a finalizer."""
    from pilotage.teardown.diagnosis.finalizer_owners import finalizer_owner

    return finalizer_owner(world, item, finalizer).workload


def who_keeps(world: World, item: Item, finalizer: str) -> str:
    """The controller that keeps a finalizer, as a person calls it."""
    from pilotage.teardown.diagnosis.finalizer_owners import finalizer_owner

    return finalizer_owner(world, item, finalizer).who


def is_abandoned(world: World, item: Item, finalizer: str) -> bool:
    """Whether nobody is going to take a finalizer off."""
    from pilotage.teardown.diagnosis.finalizer_owners import abandoned

    return abandoned(world, item, finalizer)


def _unread(world: World, asked: Asked, found: Iterable[Item]) -> tuple[str, ...]:
    """The kinds that had to be searched for what is meant, and could not be read."""
    searched = asked.selector or asked.everything or any(item.group_kind == ("", "Namespace") for item in found)
    if not searched:
        return ()
    kinds = [str(kind) for kind, reading in world.kinds.items() if reading.problem and reading.resource.namespaced]
    return tuple(sorted(kinds) + sorted(world.unreadable_groups))


def _not_seen(world: World) -> list[str]:
    """That other namespaces could not be searched, for the plan and the receipt: nothing seen is not nothing there."""
    from pilotage.teardown.snapshot.gather import narrowed_kinds

    names = sorted(map(str, narrowed_kinds(world)))
    if not names:
        return []
    shown = ", ".join(names[:_NAMES_MAX]) + (f" and {len(names) - _NAMES_MAX} more" * (len(names) > _NAMES_MAX))
    where = ", ".join(sorted(world.namespaces))
    unknown = "what of them in other namespaces refers to this, or waits for it, is not known"
    return [f"{shown} could be read in {where} only: {unknown}. Ask for the permission to list them everywhere."]


def _kinds(
    surface: Surface, full: frozenset[GroupKind], *, controllers: bool
) -> tuple[frozenset[GroupKind], frozenset[GroupKind]]:
    """The kinds to read for targets with a namespace, and those of them to read in all namespaces.

    All that have a namespace, and of the others those that point somewhere: what has a namespace cannot own what has
    none. Where `controllers` may go, all custom kinds, and their definitions, which tell whose they are.
    """
    from pilotage.catalogue import is_built_in
    from pilotage.kube import GroupKind
    from pilotage.teardown.snapshot.gather import readable

    listed = {GroupKind(each.group, each.kind): each.namespaced for each in readable(surface, None, full)}
    custom = frozenset(kind for kind in listed if controllers and not is_built_in(kind.group))
    kinds = {kind for kind, namespaced in listed.items() if namespaced or kind in full or kind in custom}
    kinds.add(GroupKind("", "Namespace"))
    if custom:
        kinds.add(GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"))
    return frozenset(kinds), kinds_that_reach(surface.resources) | custom


def _may_run_controllers(asked: Asked, names: Iterable[Name]) -> bool:
    """Whether the controller of something may be among what goes: in it, or owned by it."""
    from pilotage.catalogue import is_built_in

    return (
        asked.everything
        or bool(asked.selector)
        or any(name.group_kind in _RUN_CONTROLLERS or not is_built_in(name.group) for name in names)
    )


def _places(names: Iterable[Name], here: str) -> list[str]:
    """Where to look; nowhere in particular, which is everywhere, if something without a namespace is meant."""
    places = set()
    for name in names:
        place = name.name if name.group_kind == ("", "Namespace") else name.namespace
        if not place:
            return []
        places.add(place)
    return sorted(places) or [here]


def check_namespace(world: World, name: str) -> None:
    """Refuse to search a namespace that is not there: it is a typing error, or its work is done already."""
    from pilotage.teardown.planning.arguments import TargetError

    if world.find("", "Namespace", "", name) is None and not world.problem("", "Namespace"):
        raise TargetError(f"There is no namespace {name}. `kubectl get namespaces` lists those there are.")


async def see_keepers(connection: Connection, world: World) -> None:
    """Who keeps the finalizers of a world often lives in another namespace: see what runs there, too, if it matters."""
    from pilotage.catalogue import workloads
    from pilotage.catalogue.reading import FOR_FINALIZERS
    from pilotage.kube import GroupKind
    from pilotage.teardown.diagnosis.hazards.keepers import others_matter
    from pilotage.teardown.snapshot.gather import gather

    if others_matter(world):
        kinds = (workloads() - {GroupKind("", "Pod")}) | FOR_FINALIZERS
        for item in await gather(connection.client, connection.discovery, kinds=kinds, full=kinds):
            if world.get(item.uid) is None:
                world.add(item)
