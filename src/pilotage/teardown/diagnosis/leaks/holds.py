"""Our own finalizer, left on an object by a teardown that was cut off."""

from collections.abc import Iterator

from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, Severity, delete
from pilotage.teardown.diagnosis.leaks.survey import LeakSurvey
from pilotage.teardown.planning.ledger import HOLD
from pilotage.teardown.snapshot.fields import entries, mapping, seconds_since, span, text
from pilotage.teardown.snapshot.world import Item, World

UNDER_WAY_SECONDS = 900
"""A teardown may be under way for so long, which is more than the time it is given by default."""


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
    """Since when we hold it: since our finalizer was written, or else since it is being deleted. None: not known."""
    for entry in entries(item.read(), "metadata", "managedFields"):
        if f'v:"{HOLD}"' in mapping(entry, "fieldsV1", "f:metadata", "f:finalizers"):
            return seconds_since(world.now, text(entry, "time"))
    since = item.meta.deletion_timestamp
    return seconds_since(world.now, since) if since else None
