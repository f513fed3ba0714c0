"""Leftovers of our own teardowns: our finalizer, of one that was cut off, and objects of a receipt that are there."""

from collections.abc import Iterator
from typing import NamedTuple

from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity, delete
from pilotage.teardown.planning.ledger import HOLD, UNDER_WAY_SECONDS, Ledger
from pilotage.teardown.snapshot.fields import entries, mapping, seconds_since, span, text
from pilotage.teardown.snapshot.world import Item, State, World


def leaks(survey: LeakSurvey) -> Iterator[Leak]:
    """Objects that we hold, and have not let go of for longer than a teardown takes."""
    for item in survey.world:
        if HOLD not in item.meta.finalizers:
            continue
        held = _held_seconds(survey.world, item)
        if held is None or held < UNDER_WAY_SECONDS:
            continue
        yield Leak(
            LeakCode.HOLD_LEFT,
            item,
            f"has been held for {span(held)} by a teardown of Pilotage that was not finished",
            Severity.MEDIUM,
            "It cannot go while it is held."
            if item.terminating
            else "A delete of it hangs until the hold is taken off.",
            delete(item),
            "Goes on with the teardown: takes down what is left of its parts, and releases it. Give --resume RECEIPT "
            "instead where the receipt of that teardown is at hand.",
            (f"it has the finalizer {HOLD}",),
        )


def _held_seconds(world: World, item: Item) -> float | None:
    """Seconds since our finalizer was written, or else since it is being deleted. None: not known."""
    for entry in entries(item.read(), "metadata", "managedFields"):
        if f'v:"{HOLD}"' in mapping(entry, "fieldsV1", "f:metadata", "f:finalizers"):
            return seconds_since(world.now, text(entry, "time"))
    since = item.meta.deletion_timestamp
    return seconds_since(world.now, since) if since else None


class LeftOver(NamedTuple):
    """Objects of a ledger that still exist."""

    leaks: list[Leak]
    unread: dict[str, str]
    """Objects of it, by name, that could not be read, with why: these may live on, too."""


def left_over(world: World, ledger: Ledger) -> LeftOver:
    """Compare a ledger with a world. Objects are told apart by uid: a successor of the same name is none of ours."""
    found: list[Leak] = []
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
            found.append(
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
                found.append(
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
    return LeftOver(found, unread)
