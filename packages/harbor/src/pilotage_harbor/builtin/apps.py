"""Workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, ControllerRevision, and ReplicationController."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    forbidden,
    immutable,
    invalid,
    nonnegative,
    not_supported,
    required,
)
from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.builtin.cells import at, labels, number, selector, template_columns, text
from pilotage_harbor.builtin.daemons import DaemonSetStrategy
from pilotage_harbor.builtin.pod_defaults import fill_template
from pilotage_harbor.builtin.stateful import StatefulSetStrategy
from pilotage_harbor.builtin.workload_rules import (
    always_template_problems,
    as_number,
    name_warnings,
    over_100_percent,
    percent_problems,
    replica_status_problems,
    selected_template_problems,
)
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View


class DeploymentStrategy(Builtin):
    """A Deployment."""

    go_type = "apps.Deployment"
    kept_by_status = ("labels",)
    reset_fields = {"": ("status",), "status": ("spec", "metadata.labels")}  # noqa: RUF012
    counts = ("spec",)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        strategy = spec["strategy"]
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        fill_template(spec["template"])

    def count(self, obj: Json, old: Json) -> None:
        """Changes of annotations count, too."""
        super().count(obj, old)
        same = obj["metadata"].get("annotations") == old["metadata"].get("annotations")
        if not same and obj["spec"] == old["spec"]:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def check(self, obj: Json) -> list[StatusCause]:
        """The whole spec."""
        spec = obj["spec"]
        problems = nonnegative("spec.replicas", spec["replicas"])
        problems += selected_template_problems(spec, "deployment", "ReplicaSet")
        problems += self._strategy(spec["strategy"])
        ready, deadline = spec.get("minReadySeconds", 0), spec["progressDeadlineSeconds"]
        problems += nonnegative("spec.minReadySeconds", ready)
        problems += nonnegative("spec.revisionHistoryLimit", spec["revisionHistoryLimit"])
        problems += nonnegative("spec.progressDeadlineSeconds", deadline)
        if deadline <= ready:
            problems.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return problems

    def _strategy(self, strategy: Json) -> list[StatusCause]:
        field, rolling = "spec.strategy", strategy.get("rollingUpdate")
        if strategy["type"] == "Recreate":
            if rolling is None:
                return []
            return [forbidden(f"{field}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
        if strategy["type"] != "RollingUpdate":
            shown = {"Type": strategy["type"], "RollingUpdate": rolling}
            return [not_supported(field, shown, ("Recreate", "RollingUpdate"))]
        field += ".rollingUpdate"
        unavailable, surge = strategy["rollingUpdate"]["maxUnavailable"], strategy["rollingUpdate"]["maxSurge"]
        problems = percent_problems(unavailable, f"{field}.maxUnavailable")
        problems += percent_problems(surge, f"{field}.maxSurge")
        if not as_number(unavailable) and not as_number(surge):
            why = "may not be 0 when `maxSurge` is 0"
            problems.append(invalid(f"{field}.maxUnavailable", unavailable, why))
        return problems + over_100_percent(unavailable, f"{field}.maxUnavailable")

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The selector stays."""
        return self.check(obj) + immutable("spec.selector", obj["spec"].get("selector"), old["spec"].get("selector"))

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its counts."""
        counts = (
            "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
            "unavailableReplicas", "terminatingReplicas", "collisionCount",
        )  # fmt: skip
        parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
        return replica_status_problems(obj, counts, parts, "readyReplicas")

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """A name that is no host name."""
        return name_warnings(obj, old)


class ReplicaSetStrategy(Builtin):
    """A ReplicaSet."""

    go_type = "apps.ReplicaSet"
    counts = ("spec",)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        obj["spec"].setdefault("replicas", 1)
        fill_template(obj["spec"]["template"])

    def check(self, obj: Json) -> list[StatusCause]:
        """The whole spec."""
        spec = obj["spec"]
        problems = nonnegative("spec.replicas", spec["replicas"])
        problems += nonnegative("spec.minReadySeconds", spec.get("minReadySeconds"))
        return problems + selected_template_problems(spec, "deployment", "ReplicaSet")

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The selector stays."""
        return self.check(obj) + immutable("spec.selector", obj["spec"].get("selector"), old["spec"].get("selector"))

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        return {"status.replicas": str(obj.get("status", {}).get("replicas", 0))}

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its counts."""
        counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
        return replica_status_problems(obj, counts, counts[1:4], "readyReplicas")

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """A name that is no host name."""
        return name_warnings(obj, old)


class ReplicationControllerStrategy(Builtin):
    """A ReplicationController: as a ReplicaSet, with a plain map as selector."""

    go_type = "core.ReplicationController"
    counts = ("spec",)
    default_propagation = "orphan"

    def fill(self, obj: Json) -> None:
        """Defaults: selector and labels are those of the template."""
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        if template := spec.get("template"):
            fill_template(template)
            if found := template["metadata"].get("labels"):
                spec.setdefault("selector", dict(found))
                obj["metadata"].setdefault("labels", dict(found))

    def check(self, obj: Json) -> list[StatusCause]:
        """The whole spec."""
        spec = obj["spec"]
        problems = nonnegative("spec.minReadySeconds", spec.get("minReadySeconds"))
        if not spec.get("selector"):
            problems.append(required("spec.selector"))
        problems += nonnegative("spec.replicas", spec["replicas"])
        if not spec.get("template"):
            return [*problems, required("spec.template")]
        chosen = {"matchLabels": spec["selector"]} if spec.get("selector") else {}
        return problems + always_template_problems(spec, chosen, "ReplicationController")

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        return {"status.replicas": str(obj.get("status", {}).get("replicas", 0))}


class ControllerRevisionStrategy(Builtin):
    """A ControllerRevision: its data never changes."""

    go_type = "apps.ControllerRevision"
    status = False

    def check(self, obj: Json) -> list[StatusCause]:
        """A new one: there must be data."""
        problems = nonnegative("revision", obj.get("revision"))
        data = obj.get("data")
        if data is None:
            problems.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            problems.append(required("data", "data must be a valid JSON object"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The data stays."""
        problems = nonnegative("revision", obj.get("revision"))
        return problems + immutable("data", obj.get("data"), old.get("data"))


def _ready(obj: Json) -> str:
    return f"{path(obj, 'status', 'readyReplicas') or 0}/{path(obj, 'spec', 'replicas') or 0}"


def _controller(obj: Json) -> str:
    owner = next((each for each in obj["metadata"].get("ownerReferences", ()) if each.get("controller")), None)
    if owner is None:
        return "<none>"
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"


_REPLICAS = (
    NAME,
    number("Desired", "spec", "replicas"),
    number("Current", "status", "replicas"),
    number("Ready", "status", "readyReplicas"),
    AGE,
)


def _select(obj: Json) -> str:
    return selector(path(obj, "spec", "selector"))


def kinds() -> list[Kind]:
    """The kinds of this family."""
    template = template_columns("spec", "template", "spec", select=_select)
    scale = (".spec.replicas", ".status.replicas", ".spec.selector")
    return [
        kind(
            "v1",
            "replicationcontrollers",
            "ReplicationController",
            ReplicationControllerStrategy(),
            (
                *_REPLICAS,
                *template_columns("spec", "template", "spec", select=lambda obj: labels(path(obj, "spec", "selector"))),
            ),
            short="rc",
            categories="all",
            subresources="status scale",
            selectable="status.replicas",
            scale=scale,
        ),
        kind(
            "apps/v1",
            "deployments",
            "Deployment",
            DeploymentStrategy(),
            (
                NAME,
                text("Ready", _ready),
                text("Up-to-date", at("status", "updatedReplicas", default=0)),
                text("Available", at("status", "availableReplicas", default=0)),
                AGE,
                *template,
            ),
            short="deploy",
            categories="all",
            subresources="status scale",
            scale=scale,
        ),
        kind(
            "apps/v1",
            "replicasets",
            "ReplicaSet",
            ReplicaSetStrategy(),
            (*_REPLICAS, *template),
            short="rs",
            categories="all",
            subresources="status scale",
            selectable="status.replicas",
            scale=scale,
        ),
        kind(
            "apps/v1",
            "statefulsets",
            "StatefulSet",
            StatefulSetStrategy(),
            (NAME, text("Ready", _ready), AGE, *template[:2]),
            short="sts",
            categories="all",
            subresources="status scale",
            scale=scale,
        ),
        kind(
            "apps/v1",
            "daemonsets",
            "DaemonSet",
            DaemonSetStrategy(),
            (
                NAME,
                number("Desired", "status", "desiredNumberScheduled"),
                number("Current", "status", "currentNumberScheduled"),
                number("Ready", "status", "numberReady"),
                number("Up-to-date", "status", "updatedNumberScheduled"),
                number("Available", "status", "numberAvailable"),
                text("Node Selector", lambda obj: labels(path(obj, "spec", "template", "spec", "nodeSelector"))),
                AGE,
                *template,
            ),
            short="ds",
            categories="all",
            subresources="status",
        ),
        kind(
            "apps/v1",
            "controllerrevisions",
            "ControllerRevision",
            ControllerRevisionStrategy(),
            (NAME, text("Controller", _controller), text("Revision", at("revision", default=0)), AGE),
        ),
    ]
