"""Disruption budgets: they refuse evictions, never a DELETE. Said so that nobody takes one for the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.teardown.diagnosis.remedies import LOOK, place
from pilotage.teardown.diagnosis.why.codes import Code
from pilotage.teardown.diagnosis.why.model import Cause, Remedy
from pilotage.teardown.diagnosis.why.reading import selects
from pilotage.teardown.snapshot.fields import dig, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.teardown.diagnosis.why.context import Context
    from pilotage.teardown.snapshot.world import Item


def causes(context: Context, item: Item) -> Iterator[Cause]:
    """The budgets that would refuse an eviction of this pod now."""
    if item.group_kind != ("", "Pod") or item.terminating or not context.asked_about(item):
        return
    for budget in context.world.of("policy", "PodDisruptionBudget", item.meta.namespace):
        body = context.body(budget)
        if body is None or not selects(dig(body, "spec", "selector"), item.meta.labels):
            continue
        if number(body, "status", "disruptionsAllowed") > 0:
            continue
        healthy, wanted = number(body, "status", "currentHealthy"), number(body, "status", "desiredHealthy")
        yield Cause(
            Code.BUDGET_REFUSES_EVICTION,
            budget,
            f"lets {item} not be evicted now (a drain gets 429), but a DELETE ignores it: it holds no delete up",
            (f"disruptionsAllowed is 0: {healthy} of {wanted} needed pods are healthy", *_wish(body)),
            remedies=(
                Remedy(
                    "",
                    "Delete the pod, or better its workload, rather than evict it",
                    f"kubectl delete {place(item)}",
                    "It goes at once, whatever the budget says: fewer pods than it asks for may then run.",
                    LOOK,
                    item,
                ),
            ),
        )


def _wish(body: object) -> tuple[str, ...]:
    for field in ("minAvailable", "maxUnavailable"):
        value = dig(body, "spec", field)
        if isinstance(value, int | str):
            return (f"it asks for {field} {value}",)
    return (
        (text(body, "spec", "unhealthyPodEvictionPolicy"),) if text(body, "spec", "unhealthyPodEvictionPolicy") else ()
    )
