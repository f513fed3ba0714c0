"""``pilotage delete --resume``: what a receipt took, what of it is left, and what has appeared since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pilotage.cli.errors import BadTarget
from pilotage.cli.preparing import (
    Prepared,
    foresee,
    is_abandoned,
    read_world,
    see_keepers,
    who_keeps,
    workload_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pilotage.cli.connection import Connection
    from pilotage.teardown.engine.receipt import Receipt
    from pilotage.teardown.planning.ledger import Entry, Ledger
    from pilotage.teardown.snapshot.graph import Graph
    from pilotage.teardown.snapshot.world import World

SHOWN_MAX = 20


class Resumed(NamedTuple):
    """A teardown that goes on."""

    origin: str
    """Which receipt it goes on from, and at which server, for the person who is asked."""
    prepared: Prepared
    """With the whole ledger: what the receipt has, and what was added."""
    added: tuple[Entry, ...]
    """What has appeared since, and goes along."""
    gone: tuple[Entry, ...]
    """What was to go, and is not there any more."""
    replaced: tuple[str, ...]
    """Of those, what has been made anew: other objects, which stay."""


async def resume(connection: Connection, path: Path, timeout: float) -> Resumed:
    """Look at the cluster again and make the plan anew. Nothing of the saved one is lost. Changes nothing."""
    from pilotage.teardown.engine.saved import LedgerRefused, as_served, check_seen

    surface = await connection.discovery.surface()
    saved = await _saved(connection, path, timeout)
    try:
        saved = as_served(saved, (each.resource for each in surface.resources))
        world = await read_world(connection, surface, _places(saved))
        await see_keepers(connection, world)
        check_seen(saved, world)
    except LedgerRefused as error:
        raise BadTarget(
            f"{path}: this receipt cannot be used: {error}. Nothing was done; name what is to go instead."
        ) from error

    def plan(world: World, graph: Graph) -> Ledger:
        from pilotage.teardown.planning.plan import plan_again

        return plan_again(saved, world, graph, keeper_of=workload_of, who_keeps=who_keeps, is_abandoned=is_abandoned)

    prepared = await foresee(connection, world, plan, _unread(saved, world), [])
    return _told(f"{path} at {connection.server}", prepared, saved)


async def _saved(connection: Connection, path: Path, timeout: float) -> Ledger:
    """The ledger of a receipt, if it is one of this cluster."""
    from pilotage.cli.carrying_out import identity
    from pilotage.teardown.engine.receipt import ReceiptError, load

    try:
        receipt = load(path)
    except ReceiptError as error:
        raise BadTarget(f"{error}. Give a file that `pilotage delete` has written.") from error
    if not _is_of(receipt, await identity(connection), connection.server):
        raise BadTarget(
            f"{path} is the receipt of a teardown on another cluster ({receipt.server}): here everything of it would "
            "look gone. Choose that cluster with --kubeconfig or --context."
        )
    policy = msgspec.structs.replace(receipt.ledger.policy, timeout_seconds=timeout)
    return msgspec.structs.replace(receipt.ledger, policy=policy)


def _is_of(receipt: Receipt, cluster: str, server: str) -> bool:
    return receipt.cluster == cluster if receipt.cluster and cluster else receipt.server == server


def _places(saved: Ledger) -> list[str]:
    """Where to look; nowhere in particular, which is everywhere, if something goes that has no namespace."""
    places = set()
    for entry in saved.going:
        place = entry.name if entry.group_kind == ("", "Namespace") else entry.namespace
        if not place:
            return []
        places.add(place)
    return sorted(places)


def _unread(saved: Ledger, world: World) -> tuple[str, ...]:
    """The kinds that could not be searched. A namespace is searched again; a selector is not: what has its labels by
    now may be somebody else's.
    """
    if not any(entry.group_kind == ("", "Namespace") for entry in saved.going):
        return saved.unread
    kinds = [str(kind) for kind, reading in world.kinds.items() if reading.problem and reading.resource.namespaced]
    return tuple(sorted(kinds) + sorted(world.unreadable_groups))


def _told(origin: str, prepared: Prepared, saved: Ledger) -> Resumed:
    from pilotage.teardown.snapshot.world import State

    known = saved.by_uid()
    states = {entry: prepared.world.state(entry.full_name, entry.uid) for entry in saved.going}
    return Resumed(
        origin,
        prepared,
        tuple(entry for entry in prepared.ledger.going if entry.uid not in known),
        tuple(entry for entry, state in states.items() if state in (State.GONE, State.FOREIGN)),
        tuple(str(entry) for entry, state in states.items() if state is State.FOREIGN),
    )


def resumed_lines(resumed: Resumed) -> list[str]:
    """Where it goes on, what is gone, what was added, and what only has the name of something that is gone."""
    total = len(resumed.prepared.ledger.going) - len(resumed.added)
    number = len(resumed.added)
    count = "nothing was" if not number else f"{number} {'was' if number == 1 else 'were'}"
    lines = [f"Resumes {resumed.origin}: {_where(left_of(resumed).ledger)}."]
    lines += [f"Of {total} objects {len(resumed.gone)} are gone already; {count} added since."]
    lines += (f"added    {entry}  ({entry.reason})" for entry in resumed.added[:SHOWN_MAX])
    lines += [f"added    … and {number - SHOWN_MAX} more"] if number > SHOWN_MAX else []
    lines += (f"note     {name} is another object by now, and stays" for name in resumed.replaced[:SHOWN_MAX])
    return lines


def _where(left: Ledger) -> str:
    """How much is left to delete, and in which namespaces: all of them, however long the plan is."""
    places = sorted({entry.namespace for entry in left.going} - {""})
    without = sum(not entry.namespace for entry in left.going)
    words = [f"namespace {place}" for place in places] + ([f"{without} without a namespace"] if without else [])
    number = len(left.going)
    return f"deletes {number} object{'s' * (number != 1)}" + (f" ({', '.join(words)})" if words else "")


def left_of(resumed: Resumed) -> Prepared:
    """The plan without what is gone: to be shown. What is driven, and proven, is the whole."""
    gone = {entry.uid for entry in resumed.gone}
    ledger = resumed.prepared.ledger
    left = tuple(entry for entry in ledger.entries if entry.uid not in gone)
    return resumed.prepared._replace(ledger=msgspec.structs.replace(ledger, entries=left))


def resumed_to_json(resumed: Resumed) -> dict[str, Any]:
    """What scripts want to know besides the plan."""
    return {
        "resumes": resumed.origin,
        "added": [entry.uid for entry in resumed.added],
        "gone": [entry.uid for entry in resumed.gone],
        "replaced": list(resumed.replaced),
    }
