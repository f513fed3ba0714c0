"""Preparation of a plan: find the objects that are meant, read what may have to do with them, make the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pilotage.catalogue.groups import is_built_in
from pilotage.kube.discovery import as_served
from pilotage.teardown.session import Session
from pilotage.teardown.session.reading import add_appliers, add_finalizer_owners, check_namespace, read_for_teardown
from pilotage.teardown.session.relation_files import related_graph
from pilotage.teardown.session.request import TeardownRequest
from pilotage.teardown.session.targets import find, names_in, policy_of, selects_cluster_scoped
from pilotage.teardown.snapshot.world import Name, World

if TYPE_CHECKING:
    from pilotage.teardown.diagnosis.hazards import Hazard
    from pilotage.teardown.planning.ledger import Ledger
    from pilotage.teardown.snapshot.graph import Graph

_NAMESPACE = ("", "Namespace")
_RUN_CONTROLLERS = frozenset({_NAMESPACE, ("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "StatefulSet")})
"""The built-in kinds that a controller runs in, or may be in."""
_NAMES_MAX = 4


class Prepared(NamedTuple):
    """A teardown that could begin: its ledger, and what will stand in its way."""

    world: World
    ledger: Ledger
    hazards: list[Hazard]
    absent: list[Name]
    """Objects that were named and are not there: they need no deleting."""
    no_namespace: str = ""
    """Namespace that was named and is not there: probably a typing error."""


async def plan(session: Session, request: TeardownRequest) -> Prepared:
    """Read the cluster, find what is meant, and make the ledger. Changes nothing. Raises TargetError, ApiError."""
    request.check()
    return await as_served(session.discovery, lambda: _plan(session, request))


async def _plan(session: Session, request: TeardownRequest) -> Prepared:
    surface = await session.discovery.surface()
    names, absent = await names_in(session, request)
    here = request.namespace or session.client.namespace
    namespaces: list[str] = []
    if not await selects_cluster_scoped(session, request):
        namespaces = namespaces_of(names) if names else [here]
    world = await read_for_teardown(session, surface, namespaces, controllers=_may_run_controllers(request, names))
    if request.selector or request.everything:
        check_namespace(world, here)
    found, gone = await find(session, world, request, names)
    await add_finalizer_owners(session, world)
    await add_appliers(session, world)
    policy = await policy_of(session, world, request)

    def make(world: World, graph: Graph) -> Ledger:
        from pilotage.teardown.planning.plan import make_ledger

        return make_ledger(world, graph, found, policy, adopt=request.adopt, **finalizer_questions())

    searched = request.selector or request.everything or any(item.group_kind == _NAMESPACE for item in found)
    prepared = await foresee(session, world, make, unread_kinds(world) if searched else (), absent + gone)
    return prepared._replace(no_namespace=_no_namespace(world, request, gone))


async def foresee(
    session: Session,
    world: World,
    make: Callable[[World, Graph], Ledger],
    unread: tuple[str, ...],
    absent: list[Name],
) -> Prepared:
    """The ledger that `make` makes of a world, with all the answers it asks for, and the predicted hazards."""

    from pilotage.teardown.diagnosis.hazards import predict
    from pilotage.teardown.snapshot.resolve import until_resolved

    graph = await until_resolved(session.client, world, related_graph)
    ledger = await until_resolved(session.client, world, lambda world: make(world, graph))
    remarks = tuple(dict.fromkeys((*ledger.remarks, *_not_searched(world))))
    ledger = msgspec.structs.replace(ledger, unread=unread, remarks=remarks)
    hazards = await until_resolved(session.client, world, lambda world: predict(world, graph, ledger))
    return Prepared(world, ledger, hazards, absent)


def finalizer_questions() -> dict[str, Any]:
    """Answers about finalizers that planning asks for: the workload of the owner, its name, whether it is abandoned."""
    from pilotage.teardown.diagnosis.finalizer_owners import abandoned, finalizer_owner

    return {
        "owner_of_finalizer": lambda world, item, finalizer: finalizer_owner(world, item, finalizer).workload,
        "who_keeps": lambda world, item, finalizer: finalizer_owner(world, item, finalizer).who,
        "is_abandoned": abandoned,
    }


def namespaces_of(names: Iterable[Name]) -> list[str]:
    """The namespaces to read for these objects; none, which means all, if one of them has no namespace."""
    namespaces = {name.name if name.group_kind == _NAMESPACE else name.namespace for name in names}
    return [] if "" in namespaces else sorted(namespaces)


def unread_kinds(world: World) -> tuple[str, ...]:
    """The kinds with a namespace, and the API groups, that could not be read."""
    kinds = [str(kind) for kind, reading in world.kinds.items() if reading.problem and reading.resource.namespaced]
    return tuple(sorted(kinds) + sorted(world.unreadable_groups))


def _no_namespace(world: World, request: TeardownRequest, gone: Iterable[Name]) -> str:
    """The namespace that was named for absent objects, if it is not there either."""
    here = request.namespace
    if not here or not request.words or all(name.namespace != here for name in gone):
        return ""
    there = world.find("", "Namespace", "", here) is not None or world.problem("", "Namespace")
    return "" if there else here


def _may_run_controllers(request: TeardownRequest, names: Iterable[Name]) -> bool:
    """Whether the controller of something may be among what goes: in it, or owned by it."""
    return (
        request.everything
        or bool(request.selector)
        or any(name.group_kind in _RUN_CONTROLLERS or not is_built_in(name.group) for name in names)
    )


def _not_searched(world: World) -> list[str]:
    """A remark where other namespaces could not be searched: nothing seen is not nothing there."""
    from pilotage.teardown.snapshot.gather import narrowed_kinds

    names = sorted(map(str, narrowed_kinds(world)))
    if not names:
        return []
    shown = ", ".join(names[:_NAMES_MAX]) + (f" and {len(names) - _NAMES_MAX} more" * (len(names) > _NAMES_MAX))
    where = ", ".join(sorted(world.namespaces))
    unknown = "what of them in other namespaces refers to this, or waits for it, is not known"
    return [f"{shown} could be read in {where} only: {unknown}. Ask for the permission to list them everywhere."]
