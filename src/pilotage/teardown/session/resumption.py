"""A teardown that was cut off, planned anew from its receipt: what is left of it, and what has appeared since."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotage.teardown.planning.arguments import TargetError
from pilotage.teardown.session import Session
from pilotage.teardown.session.preparation import Prepared, finalizer_questions, foresee, namespaces_of, unread_kinds
from pilotage.teardown.session.reading import add_appliers, add_finalizer_owners, cluster_uid, read_for_teardown
from pilotage.teardown.session.request import RequestProblem, RequestRefused
from pilotage.teardown.snapshot.world import State, World

if TYPE_CHECKING:
    from pilotage.teardown.engine.receipt import Receipt
    from pilotage.teardown.planning.ledger import Entry, Ledger
    from pilotage.teardown.snapshot.graph import Graph


class Resumed(NamedTuple):
    """A teardown that goes on."""

    origin: str
    """Its receipt, and the server, for the person who has to agree."""
    prepared: Prepared
    """Prepared teardown with the whole ledger: that of the receipt, and the newcomers."""
    added: tuple[Entry, ...]
    """Objects that have appeared since, and go along."""
    gone: tuple[Entry, ...]
    """Objects of the receipt that are not there any more."""
    replaced: tuple[str, ...]
    """Names of gone entries that another object has by now: it stays."""

    @property
    def left(self) -> Prepared:
        """The plan without what is gone: to be shown. What is executed, and proven, is the whole."""
        gone = {entry.uid for entry in self.gone}
        ledger = self.prepared.ledger
        left = tuple(entry for entry in ledger.entries if entry.uid not in gone)
        return self.prepared._replace(ledger=msgspec.structs.replace(ledger, entries=left))


async def resume(session: Session, path: Path, timeout: float) -> Resumed:
    """Read the cluster again and make the plan anew; nothing of the saved one is lost. Changes nothing.

    Raises ReceiptError for a file that is no receipt, TargetError for one of another cluster, and ApiError.
    """
    from pilotage.teardown.engine.saved import LedgerRefused, as_served, check_seen

    surface = await session.discovery.surface()
    saved = await _saved(session, path, timeout)
    try:
        saved = as_served(saved, (each.resource for each in surface.resources))
        namespaces = namespaces_of(entry.full_name for entry in saved.going)
        world = await read_for_teardown(session, surface, namespaces)
        await add_finalizer_owners(session, world)
        await add_appliers(session, world)
        check_seen(saved, world)
    except LedgerRefused as error:
        raise TargetError(
            f"{path}: this receipt cannot be used: {error}. Nothing was done; name what is to go instead."
        ) from error

    def make(world: World, graph: Graph) -> Ledger:
        from pilotage.teardown.planning.plan import plan_again

        return plan_again(saved, world, graph, **finalizer_questions())

    # A namespace is searched again; a selector is not: what has its labels by now may be somebody else's.
    searched = any(entry.group_kind == ("", "Namespace") for entry in saved.going)
    prepared = await foresee(session, world, make, unread_kinds(world) if searched else saved.unread, [])
    return _compared(f"{path} at {session.server}", prepared, saved)


async def _saved(session: Session, path: Path, timeout: float) -> Ledger:
    """The ledger of a receipt, if it is one of this cluster."""
    from pilotage.teardown.engine.receipt import load

    receipt = load(path)
    if not _is_of(receipt, await cluster_uid(session), session.server):
        raise RequestRefused(RequestProblem.RECEIPT_FOREIGN, path, receipt.server)
    policy = msgspec.structs.replace(receipt.ledger.policy, timeout_seconds=timeout)
    return msgspec.structs.replace(receipt.ledger, policy=policy)


def _is_of(receipt: Receipt, cluster: str, server: str) -> bool:
    return receipt.cluster == cluster if receipt.cluster and cluster else receipt.server == server


def _compared(origin: str, prepared: Prepared, saved: Ledger) -> Resumed:
    known = saved.by_uid()
    states = {entry: prepared.world.state(entry.full_name, entry.uid) for entry in saved.going}
    return Resumed(
        origin,
        prepared,
        tuple(entry for entry in prepared.ledger.going if entry.uid not in known),
        tuple(entry for entry, state in states.items() if state in (State.GONE, State.FOREIGN)),
        tuple(str(entry) for entry, state in states.items() if state is State.FOREIGN),
    )
