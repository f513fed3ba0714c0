"""Guards of pods, such as disruption budgets: they refuse evictions, never a DELETE.

Reported as a note, so that nobody takes one for the cause of a delete that does not finish.
"""

from collections.abc import Iterator

from pilotage.catalogue.kind import Guard
from pilotage.catalogue.registry import guards
from pilotage.catalogue.relation import Relation
from pilotage.teardown.diagnosis.remedies import LOOK, delete_by_hand
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import dig
from pilotage.teardown.snapshot.world import Item


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """The guards that would refuse an eviction of this pod now."""
    if item.group_kind != ("", "Pod") or item.terminating or not context.asked_about(item):
        return
    known = {row.group_kind: row.guard for row in guards()}
    for edge in context.graph.into(item.uid):
        guard = known.get(edge.source.group_kind)
        if guard is None or not guard.disruptions_allowed or edge.relation is not Relation.PROTECTS:
            continue
        body = context.body(edge.source)
        allowed = _at(body, guard.disruptions_allowed)
        if body is None or (isinstance(allowed, int) and allowed > 0):
            continue
        yield StuckCause(
            CauseCode.BUDGET_REFUSES_EVICTION,
            edge.source,
            f"blocks eviction of {item} (429). A DELETE is unaffected.",
            tuple(_evidence(guard, body)),
            remedies=(
                delete_by_hand(
                    item,
                    "Delete the pod, or better its workload, instead of evicting it",
                    "It goes at once, whatever the budget says. Fewer pods than it asks for may then run.",
                    LOOK,
                ),
            ),
        )


def _evidence(guard: Guard, body: object) -> Iterator[str]:
    name = guard.disruptions_allowed.rpartition(".")[2]
    count = ""
    if guard.healthy and guard.healthy_wanted:
        count = f": {_at(body, guard.healthy) or 0} of {_at(body, guard.healthy_wanted) or 0} needed pods are healthy"
    yield f"{name} is 0{count}"
    for path in guard.settings:
        value = _at(body, path)
        if isinstance(value, int | str) and value != "":
            yield f"it asks for {path.rpartition('.')[2]} {value}"
            return


def _at(body: object, path: str) -> object:
    return dig(body, *path.split(".")) if path else None
