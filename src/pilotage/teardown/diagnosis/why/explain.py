"""Explanation of an object: all causes, the verdict, what still serves, and what could not be read.

It never fails, whatever the world holds, and always ends in a cause, in "not stuck", or in "unknown" with what could
not be read.
"""

from collections.abc import Iterable, Iterator

from pilotage.catalogue.names import FOREGROUND
from pilotage.catalogue.registry import known
from pilotage.teardown.diagnosis.why.codes import NOTES, STAYS, UNCERTAIN, UNFINISHED, UNREADY
from pilotage.teardown.diagnosis.why.context import COLLECTOR_SECONDS, WhyContext
from pilotage.teardown.diagnosis.why.families import FAMILIES
from pilotage.teardown.diagnosis.why.model import Explanation, StuckCause, StuckVerdict, roots_of
from pilotage.teardown.snapshot.fields import seconds_since, span
from pilotage.teardown.snapshot.graph import Edges
from pilotage.teardown.snapshot.world import Item, State, World

SERVING_MAX = 200


def explain(world: World, graph: Edges, item: Item) -> Explanation:
    """Why this object does not go away. Asks the world for what it lacks: call it again once that is answered."""
    item = world.get(item.uid) or item
    context = WhyContext(world, graph, FAMILIES)
    causes = context.causes_of(item)
    state = world.state(item.name, item.uid)
    if state in (State.GONE, State.FOREIGN):
        return Explanation(item, StuckVerdict.NOT_STUCK, "is gone", causes, unread=context.all_unread)
    verdict = _verdict(context, item, causes)
    serving = tuple(still_serving(world, item)) if item.terminating else ()
    return Explanation(item, verdict, _headline(context, item, verdict, causes), causes, serving, context.all_unread)


def still_serving(world: World, item: Item) -> Iterator[Item]:
    """Objects below a deleted one that still run or take traffic: by ownership, or in the namespace."""
    below: Iterable[Item]
    if item.group_kind == ("", "Namespace"):
        below = (each for each in world if each.meta.namespace == item.meta.name)
    else:
        below = world.descendants(item)
    found = 0
    for each in below:
        if known(each.group_kind).serves and not each.terminating and found < SERVING_MAX:
            found += 1
            yield each


def _verdict(context: WhyContext, item: Item, causes: tuple[StuckCause, ...]) -> StuckVerdict:
    codes = {root.code for root in roots_of(causes)}
    if codes - NOTES - UNCERTAIN:
        return StuckVerdict.STUCK
    if codes & UNCERTAIN:
        return StuckVerdict.UNKNOWN
    if item.terminating and not context.world.live and context.all_unread:
        return StuckVerdict.UNKNOWN  # a dump is not asked again: what it lacks may be the cause
    if (
        codes
        or not item.terminating
        or context.deleted_seconds_ago(item) < COLLECTOR_SECONDS + _grace_left(context, item)
    ):
        return StuckVerdict.NOT_STUCK
    return StuckVerdict.UNKNOWN


def _grace_left(context: WhyContext, item: Item) -> float:
    """Seconds until its grace ends; 0 where that is over, or where it has none."""
    since = seconds_since(context.now, item.meta.deletion_timestamp)
    return 0.0 if since is None else max(0.0, -since)


def _headline(context: WhyContext, item: Item, verdict: StuckVerdict, causes: tuple[StuckCause, ...]) -> str:
    if not item.terminating:
        if any(cause.code in UNREADY for cause in causes):
            return "is not being deleted, and is not ready"
        if any(cause.code in UNFINISHED for cause in causes):
            return "is not being deleted, and does not finish"
        if verdict is StuckVerdict.STUCK:
            stays = all(root.code in NOTES | UNCERTAIN | STAYS for root in roots_of(causes))
            return "present; nothing collects it" if stays else "present; a delete would not go through"
        return "is not being deleted"
    left = _grace_left(context, item)
    if verdict is StuckVerdict.NOT_STUCK and left > 0:
        return f"not stuck: {span(left)} of grace left"
    text = f"terminating for {span(context.deleted_seconds_ago(item))}"
    if FOREGROUND in item.meta.finalizers:
        text += " (foreground)"
    if verdict is StuckVerdict.NOT_STUCK:
        return f"{text}, not stuck"
    if verdict is StuckVerdict.UNKNOWN and not causes:
        return f"{text}; nothing that could be read holds it"
    return text
