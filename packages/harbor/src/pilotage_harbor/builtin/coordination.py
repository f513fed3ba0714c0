"""Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import each_invalid, forbidden, invalid, not_supported
from pilotage_harbor.apimachinery.names import qualified_name
from pilotage_harbor.builtin.base import Builtin, kind
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View


class LeaseStrategy(Builtin):
    """A Lease: a PUT creates it, and must say which version it replaces."""

    go_type = "coordination.Lease"
    status = False
    create_on_update = True
    unconditional_update = False
    qualified_finalizers = False

    def prepare_create(self, obj: Json, view: View) -> None:
        """Drop the fields of coordinated leader election, which is not served."""
        _drop(obj)

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Likewise."""
        _drop(obj)

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        spec = obj["spec"]
        problems: list[StatusCause] = []
        seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if seconds is not None and seconds <= 0:
            problems.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            problems.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        strategy = spec.get("strategy")
        if strategy is not None:
            if "/" in strategy:
                problems += each_invalid("spec.strategy.strategy", strategy, qualified_name(strategy))
            elif strategy != "OldestEmulationVersion":
                problems.append(not_supported("spec.strategy.strategy", strategy, ("OldestEmulationVersion",)))
        if spec.get("preferredHolder") and not strategy:
            why = "may only be specified if `strategy` is defined"
            problems.append(forbidden("spec.preferredHolder", why))
        return problems


def _drop(obj: Json) -> None:
    for name in ("strategy", "preferredHolder"):
        obj["spec"].pop(name, None)


def kinds() -> list[Kind]:
    """The kinds of this family."""
    columns = (NAME, text("Holder", at("spec", "holderIdentity")), AGE)
    return [kind("coordination.k8s.io/v1", "leases", "Lease", LeaseStrategy(), columns)]
