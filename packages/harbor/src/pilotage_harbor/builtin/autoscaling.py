"""HorizontalPodAutoscalers: autoscaling/v2, which is stored, and v1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    each_invalid,
    forbidden,
    invalid,
    nonnegative,
    not_supported,
    required,
)
from pilotage_harbor.apimachinery.names import path_segment
from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.builtin.quantity import parse
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_SOURCES = ("object", "external", "pods", "resource", "containerResource")
_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_FIELD_OF = {name[0].upper() + name[1:]: name for name in _SOURCES}
_TARGET_VERSION = "spec.scaleTargetRef.apiVersion"
_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _cpu(percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


class AutoscalerStrategy(Builtin):
    """autoscaling/v2."""

    go_type = "autoscaling.HorizontalPodAutoscaler"

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            spec["metrics"] = [_cpu(80)]
        if (behavior := spec.get("behavior")) is not None:
            for name, rules in (("scaleUp", _UP), ("scaleDown", _DOWN)):
                own = behavior.setdefault(name, {})
                for key, value in rules.items():
                    own.setdefault(key, [dict(each) for each in value] if isinstance(value, list) else value)

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        return autoscaler_problems(obj["spec"])

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its counts."""
        status = obj.get("status", {})
        problems = nonnegative("status.currentReplicas", status.get("currentReplicas"))
        return problems + nonnegative("status.desiredReplicas", status.get("desiredReplicas"))


def autoscaler_problems(spec: Json) -> list[StatusCause]:
    """Problems of the spec of an autoscaling/v2 object."""
    problems: list[StatusCause] = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < 1:
        problems.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        problems.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        problems.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        problems.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    for name in ("kind", "name"):
        value, field = spec["scaleTargetRef"].get(name), f"spec.scaleTargetRef.{name}"
        problems += each_invalid(field, value, path_segment(value)) if value else [required(field)]
    version = spec["scaleTargetRef"].get("apiVersion", "")
    if version.count("/") > 1:
        problems.append(invalid(_TARGET_VERSION, version, f"unexpected GroupVersion string: {version}"))
    elif "/" not in version:
        problems.append(invalid(_TARGET_VERSION, version, "apiVersion must specify API group"))
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        problems += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        problems.append(forbidden("spec.metrics", why))
    for name in ("scaleUp", "scaleDown"):
        if rules := path(spec, "behavior", name):
            problems += _rules(rules, f"spec.behavior.{name}")
    return problems


def _metric(metric: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    type_ = metric.get("type", "")
    if not type_:
        problems.append(required(f"{field}.type", "must specify a metric source type"))
    if type_ not in _TYPES:
        problems.append(not_supported(f"{field}.type", type_, _TYPES))
    present = [name for name in _SOURCES if metric.get(name) is not None]
    if present:
        problems += _source(present[0], metric[present[0]], f"{field}.{present[0]}")
    expected = _FIELD_OF.get(type_)
    if expected is None:
        problems.append(not_supported(f"{field}.type", type_, _TYPES))
    elif expected not in present:
        problems.append(required(f"{field}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        why = "must populate the given metric source only"
        problems += [forbidden(f"{field}.{name}", why) for name in present if name != expected]
    return problems


def _source(kind_: str, source: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if kind_ in ("resource", "containerResource") and not source.get("name"):
        problems.append(required(f"{field}.name", "must specify a resource name"))
    if kind_ in ("pods", "object", "external") and not path(source, "metric", "name"):
        problems.append(required(f"{field}.metric.name", "must specify a metric name"))
    target = source.get("target") or {}
    problems += _target(target, f"{field}.target")
    utilization, average = target.get("averageUtilization"), target.get("averageValue")
    if kind_ in ("resource", "containerResource"):
        if utilization is None and average is None:
            why = "must set either a target raw value or a target utilization"
            problems.append(required(f"{field}.target.averageUtilization", why))
        if utilization is not None and average is not None:
            why = "may not set both a target raw value and a target utilization"
            problems.append(forbidden(f"{field}.target.averageValue", why))
    return problems


def _target(target: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    type_ = target.get("type", "")
    if not type_:
        problems.append(required(f"{field}.type", "must specify a metric target type"))
    if type_ not in ("Utilization", "Value", "AverageValue"):
        problems.append(invalid(f"{field}.type", type_, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        amount = None if target.get(name) is None else parse(target[name])
        if amount is not None and amount <= 0:
            problems.append(invalid(f"{field}.{name}", target[name], "must be positive"))
    if (percent := target.get("averageUtilization")) is not None and percent < 1:
        problems.append(invalid(f"{field}.averageUtilization", percent, "must be greater than 0"))
    return problems


def _rules(rules: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        problems.append(invalid(f"{field}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > 3600:
        problems.append(invalid(f"{field}.stabilizationWindowSeconds", window, "must be less than or equal to 3600"))
    if (select := rules.get("selectPolicy")) not in (None, "Disabled", "Max", "Min"):
        problems.append(not_supported(f"{field}.selectPolicy", select, ("Disabled", "Max", "Min")))
    policies = rules.get("policies") or []
    if not policies:
        problems.append(required(f"{field}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        here = f"{field}.policies[{index}]"
        if policy["type"] not in ("Percent", "Pods"):
            problems.append(not_supported(f"{here}.type", policy["type"], ("Percent", "Pods")))
        small = (name for name in ("value", "periodSeconds") if policy[name] <= 0)
        problems += [invalid(f"{here}.{name}", policy[name], "must be greater than zero") for name in small]
        if policy["periodSeconds"] > 1800:
            why = "must be less than or equal to 1800"
            problems.append(invalid(f"{here}.periodSeconds", policy["periodSeconds"], why))
    return problems


class AutoscalerV1Strategy(Builtin):
    """autoscaling/v1: knows the utilization of the processor only."""

    go_type = "autoscaling1.HorizontalPodAutoscaler"

    def fill(self, obj: Json) -> None:
        """Defaults."""
        obj["spec"].setdefault("minReplicas", 1)
        obj["spec"].setdefault("targetCPUUtilizationPercentage", 80)

    def check(self, obj: Json) -> list[StatusCause]:
        """Check it as the stored form."""
        return autoscaler_problems(to_v2(obj)["spec"])


def to_v2(obj: Json) -> Json:
    """The stored form of an autoscaling/v1 object."""
    spec = dict(obj["spec"])
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        spec["metrics"] = [_cpu(percent)]
    status = dict(obj.get("status", {}))
    current = status.pop("currentCPUUtilizationPercentage", None)
    status["currentMetrics"] = None
    if current is not None:
        metric = {"name": "cpu", "current": {"averageUtilization": current}}
        status["currentMetrics"] = [{"type": "Resource", "resource": metric}]
    return obj | {"apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def to_v1(obj: Json) -> Json:
    """The autoscaling/v1 form of a stored object. What v1 has no words for is left out."""
    spec = {name: value for name, value in obj["spec"].items() if name not in ("metrics", "behavior")}
    for metric in obj["spec"].get("metrics") or ():
        if path(metric, "resource", "name") == "cpu":
            percent = path(metric, "resource", "target", "averageUtilization")
            if percent is not None:
                spec["targetCPUUtilizationPercentage"] = percent
    status = {
        name: value for name, value in obj.get("status", {}).items() if name not in ("currentMetrics", "conditions")
    }
    status.setdefault("currentReplicas", 0)
    for metric in obj.get("status", {}).get("currentMetrics") or ():
        if path(metric, "resource", "name") == "cpu":
            status["currentCPUUtilizationPercentage"] = path(metric, "resource", "current", "averageUtilization")
    return obj | {"apiVersion": "autoscaling/v1", "spec": spec, "status": status}


def _metrics(obj: Json) -> str:
    specs = obj["spec"].get("metrics") or []
    statuses = path(obj, "status", "currentMetrics") or []
    shown = [_shown(metric, statuses[index] if index < len(statuses) else {}) for index, metric in enumerate(specs)]
    if not shown:
        return "<none>"
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more


def _shown(metric: Json, status: Json) -> str:
    field = _FIELD_OF.get(metric.get("type", ""), "")
    source, current = metric.get(field) or {}, path(status, field, "current") or {}
    target = source.get("target") or {}
    unknown = "<unknown>"
    if field in ("resource", "containerResource"):
        if target.get("averageValue") is not None:
            return f"{source['name']}: {current.get('averageValue', unknown)}/{target['averageValue']}"
        now, want = current.get("averageUtilization"), target.get("averageUtilization")
        percent = unknown if now is None else f"{now}%"
        return f"{source['name']}: {percent}/{'<auto>' if want is None else f'{want}%'}"
    if target.get("averageValue") is not None:
        suffix = "" if field == "pods" else " (avg)"
        return f"{current.get('averageValue', unknown)}/{target['averageValue']}{suffix}"
    return f"{current.get('value', unknown)}/{target.get('value', '')}"


def _columns(*, v1: bool) -> tuple[object, ...]:
    def metrics(obj: Json) -> str:
        return _metrics(to_v2(obj) if v1 else obj)

    return (
        NAME,
        text("Reference", lambda obj: "{kind}/{name}".format(**obj["spec"]["scaleTargetRef"])),
        text("Targets", metrics),
        text("MinPods", lambda obj: str(obj["spec"].get("minReplicas", "<unset>"))),
        text("MaxPods", at("spec", "maxReplicas", default=0)),
        text("Replicas", at("status", "currentReplicas", default=0)),
        AGE,
    )


def kinds() -> list[Kind]:
    """The kinds of this family."""
    common = {"short": "hpa", "categories": "all", "subresources": "status"}
    plural, name = "horizontalpodautoscalers", "HorizontalPodAutoscaler"
    return [
        kind("autoscaling/v2", plural, name, AutoscalerStrategy(), _columns(v1=False), **common),  # type: ignore[arg-type]
        kind(
            "autoscaling/v1",
            plural,
            name,
            AutoscalerV1Strategy(),
            _columns(v1=True),  # type: ignore[arg-type]
            to_storage=to_v2,
            from_storage=to_v1,
            **common,
        ),
    ]
