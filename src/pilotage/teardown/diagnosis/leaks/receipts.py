"""Objects that a receipt says are gone, and are there; and what they owned, and stayed."""

from typing import NamedTuple

from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, Severity, delete
from pilotage.teardown.planning.ledger import Ledger
from pilotage.teardown.snapshot.world import State, World


class LeftOver(NamedTuple):
    """Objects of a ledger that still exist."""

    leaks: list[Leak]
    unread: dict[str, str]
    """Objects of it, by name, that could not be read, with why: these may live on, too."""


def left_over(world: World, ledger: Ledger) -> LeftOver:
    """Compare a ledger with a world. Objects are told apart by uid: a successor of the same name is none of ours."""
    leaks: list[Leak] = []
    unread: dict[str, str] = {}
    known = {entry.uid for entry in ledger.entries}
    for entry in ledger.going:
        name = entry.full_name
        state = world.state(name, entry.uid)
        if state is State.UNKNOWN:
            unread[str(entry)] = world.problem(name.group, name.kind, name.namespace)
        item = world.get(entry.uid)
        if item is not None:
            leaving = ", though its deletion has begun" if item.terminating else ""
            leaks.append(
                Leak(
                    LeakCode.LIVES_ON,
                    item,
                    f"is listed in the receipt as to be deleted ({entry.reason}), and is still there{leaving}",
                    Severity.MEDIUM,
                    "It was meant to be gone.",
                    f"pilotage why {delete(item).removeprefix('pilotage delete ')}" if leaving else delete(item),
                    "Says what it waits for." if leaving else "Deletes it, with what it owns.",
                )
            )
        for child in world.children(entry.uid):
            if child.uid not in known and not child.terminating and item is None and state is not State.UNKNOWN:
                known.add(child.uid)
                leaks.append(
                    Leak(
                        LeakCode.OWNED_BY_THE_GONE,
                        child,
                        f"is owned by {entry}, which the receipt took down, and is in no ledger",
                        Severity.MEDIUM,
                        "It was created, or found, too late to be deleted with the rest.",
                        delete(child),
                        "Deletes it, with what it owns.",
                    )
                )
    return LeftOver(leaks, unread)
