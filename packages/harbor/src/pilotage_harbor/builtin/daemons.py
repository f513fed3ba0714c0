"""DaemonSets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import immutable, invalid, nonnegative, not_supported, required
from pilotage_harbor.apimachinery.metadata_rules import selector_matches, selector_problems
from pilotage_harbor.builtin.base import Builtin
from pilotage_harbor.builtin.pod_defaults import fill_template
from pilotage_harbor.builtin.workload_rules import (
    always_template_problems,
    as_number,
    mismatch,
    over_100_percent,
    percent_problems,
)

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, View


class DaemonSetStrategy(Builtin):
    """A DaemonSet. Its template's generation is an annotation that the server keeps."""

    go_type = "apps.DaemonSet"
    counts = ("spec",)
    _TEMPLATE = "deprecated.daemonset.template.generation"

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        update = spec["updateStrategy"]
        if update.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = update.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        fill_template(spec["template"])

    def prepare_create(self, obj: Json, view: View) -> None:
        """The template starts at 1, unless it says otherwise."""
        super().prepare_create(obj, view)
        found = obj["metadata"].setdefault("annotations", {})
        if not str(found.get(self._TEMPLATE, "")).isdigit() or found[self._TEMPLATE] == "0":
            found[self._TEMPLATE] = "1"

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Count the template's changes."""
        super().prepare_update(obj, old, view)
        before = int((old["metadata"].get("annotations") or {}).get(self._TEMPLATE, "0"))
        changed = obj["spec"]["template"] != old["spec"]["template"]
        obj["metadata"].setdefault("annotations", {})[self._TEMPLATE] = str(before + 1 if changed else before)

    def check(self, obj: Json) -> list[StatusCause]:
        """The whole spec."""
        spec, chosen = obj["spec"], obj["spec"].get("selector")
        template = spec["template"]
        problems = selector_problems(chosen, "spec.selector")
        if not problems and (chosen is None or not selector_matches(chosen, template["metadata"].get("labels"))):
            problems.append(mismatch("spec.template", template["metadata"].get("labels")))
        if chosen is not None and not chosen:
            problems.append(invalid("spec.selector", chosen, "empty selector is invalid for daemonset"))
        problems += always_template_problems(spec, {}, "DaemonSet")
        problems += nonnegative("spec.minReadySeconds", spec.get("minReadySeconds"))
        problems += self._update_strategy(spec["updateStrategy"])
        return problems + nonnegative("spec.revisionHistoryLimit", spec["revisionHistoryLimit"])

    def _update_strategy(self, update: Json) -> list[StatusCause]:
        field, rolling = "spec.updateStrategy", update.get("rollingUpdate")
        if update["type"] == "OnDelete":
            return []
        if update["type"] != "RollingUpdate":
            shown = {"Type": update["type"], "RollingUpdate": rolling}
            return [not_supported(field, shown, ("RollingUpdate", "OnDelete"))]
        problems: list[StatusCause] = []
        for check in (percent_problems, over_100_percent):
            for name in ("maxUnavailable", "maxSurge"):
                problems += check(update["rollingUpdate"][name], f"{field}.rollingUpdate.{name}")
        unavailable, surge = (as_number(update["rollingUpdate"][name]) for name in ("maxUnavailable", "maxSurge"))
        if unavailable and surge:
            why = "may not be set when maxUnavailable is non-zero"
            problems.append(invalid(f"{field}.rollingUpdate.maxSurge", update["rollingUpdate"]["maxSurge"], why))
        elif not unavailable and not surge:
            problems.append(required(f"{field}.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The selector stays."""
        stays = immutable("spec.selector", obj["spec"].get("selector"), old["spec"].get("selector"))
        return stays + self.check(obj)

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its counts."""
        problems: list[StatusCause] = []
        for name in (
            "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
            "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
        ):  # fmt: skip
            problems += nonnegative(f"status.{name}", obj.get("status", {}).get(name))
        return problems
