"""PodDisruptionBudgets and PriorityClasses: what guards pods, and which of them matter more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import forbidden, immutable, invalid, nonnegative, not_supported
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.builtin.base import Builtin, kind
from pilotage_harbor.builtin.cells import at, number, text
from pilotage_harbor.builtin.workload_rules import over_100_percent, percent_problems
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_HIGHEST = 1000000000
_SYSTEM = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


class BudgetStrategy(Builtin):
    """A PodDisruptionBudget."""

    go_type = "policy.PodDisruptionBudget"
    counts = ("spec",)
    unconditional_update = False
    qualified_finalizers = False

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        spec = obj["spec"]
        problems: list[StatusCause] = []
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            shown = {
                "MinAvailable": least,
                "Selector": spec.get("selector"),
                "MaxUnavailable": most,
                "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
            }
            problems.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
        for name, value in (("minAvailable", least), ("maxUnavailable", most)):
            if value is not None:
                problems += percent_problems(value, f"spec.{name}") + over_100_percent(value, f"spec.{name}")
        problems += selector_problems(spec.get("selector"), "spec.selector")
        if (policy := spec.get("unhealthyPodEvictionPolicy")) not in (None, "AlwaysAllow", "IfHealthyBudget"):
            supported = ("AlwaysAllow", "IfHealthyBudget")
            problems.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, supported))
        return problems

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Counts are counts."""
        problems: list[StatusCause] = []
        for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
            problems += nonnegative(f"status.{name}", obj.get("status", {}).get(name))
        return problems


class PriorityClassStrategy(Builtin):
    """A PriorityClass: its value never changes."""

    go_type = "scheduling.PriorityClass"
    status = False

    def fill(self, obj: Json) -> None:
        """Defaults."""
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_create(self, obj: Json, view: View) -> None:
        """Set the generation, which never moves."""
        obj["metadata"]["generation"] = 1

    def check(self, obj: Json) -> list[StatusCause]:
        """A new one."""
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        problems: list[StatusCause] = []
        if name.startswith("system-"):
            if name not in _SYSTEM:
                why = f"{name} is not a known system priority class"
            elif _SYSTEM[name] != value:
                why = f"value of {name} PriorityClass must be {_SYSTEM[name]}"
            else:
                why = ""
            if why:
                words = "priority class names with 'system-' prefix are reserved for system use only. error: "
                problems.append(forbidden("metadata.name", words + why))
        elif value > _HIGHEST:
            why = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            problems.append(forbidden("value", why))
        if obj["preemptionPolicy"] not in ("PreemptLowerPriority", "Never"):
            supported = ("PreemptLowerPriority", "Never")
            problems.append(not_supported("preemptionPolicy", obj["preemptionPolicy"], supported))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a changed PriorityClass: its value and preemptionPolicy are immutable."""
        problems: list[StatusCause] = []
        if obj.get("value", 0) != old.get("value", 0):
            problems.append(forbidden("value", "may not be changed in an update."))
        return problems + immutable("preemptionPolicy", obj.get("preemptionPolicy"), old.get("preemptionPolicy"))


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "policy/v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            BudgetStrategy(),
            (
                NAME,
                text("Min Available", lambda obj: str(obj["spec"].get("minAvailable", "N/A"))),
                text("Max Unavailable", lambda obj: str(obj["spec"].get("maxUnavailable", "N/A"))),
                number("Allowed Disruptions", "status", "disruptionsAllowed"),
                AGE,
            ),
            short="pdb",
            subresources="status",
        ),
        kind(
            "scheduling.k8s.io/v1",
            "priorityclasses",
            "PriorityClass",
            PriorityClassStrategy(),
            (
                NAME,
                number("Value", "value"),
                text("Global-Default", at("globalDefault", default=False), type_="boolean"),
                AGE,
                text("PreemptionPolicy", at("preemptionPolicy")),
            ),
            namespaced=False,
            short="pc",
        ),
    ]
