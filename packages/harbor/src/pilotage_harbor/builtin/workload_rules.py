"""Validation of the fields that workloads share: selector and template, counts, and shares of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import forbidden, invalid, nonnegative, not_supported, required
from pilotage_harbor.apimachinery.metadata_rules import selector_matches, selector_problems
from pilotage_harbor.apimachinery.names import PERCENT_PROBLEM, dns_label, is_percent
from pilotage_harbor.builtin.pod_rules import template_problems

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json


def percent_problems(value: int | str, field: str) -> list[StatusCause]:
    """A whole number that is not negative, or a percentage."""
    if isinstance(value, str):
        return [] if is_percent(value) else [invalid(field, value, PERCENT_PROBLEM)]
    return nonnegative(field, value)


def over_100_percent(value: int | str, field: str) -> list[StatusCause]:
    """A percentage that is more than everything."""
    if isinstance(value, str) and is_percent(value) and int(value[:-1]) > 100:
        return [invalid(field, value, "must not be greater than 100%")]
    return []


def as_number(value: int | str | None) -> int:
    """The number, or that before the percent sign."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isdigit() else 0
    return value or 0


def selected_template_problems(spec: Json, empty: str, unsupported: str) -> list[StatusCause]:
    """Problems of a selector and a pod template that belong together."""
    problems: list[StatusCause] = []
    chosen = spec.get("selector")
    if chosen is None:
        problems.append(required("spec.selector"))
    else:
        wrong = selector_problems(chosen, "spec.selector")
        problems += wrong
        if not chosen:
            problems.append(invalid("spec.selector", chosen, f"empty selector is invalid for {empty}"))
        if any(".matchExpressions" in each.field for each in wrong):
            return [*problems, invalid("spec.selector", chosen, "invalid label selector")]
    return problems + always_template_problems(spec, chosen, unsupported)


def always_template_problems(spec: Json, chosen: Json | None, unsupported: str) -> list[StatusCause]:
    """Problems of the template of something that keeps its pods running. No selector selects nothing."""
    problems: list[StatusCause] = []
    template = spec["template"]
    found = template["metadata"].get("labels")
    if chosen is None or (chosen and not selector_matches(chosen, found)):
        problems.append(mismatch("spec.template", found))
    problems += template_problems(template, "spec.template")
    if template["spec"]["restartPolicy"] != "Always":
        supported = ("Always",)
        problems.append(not_supported("spec.template.spec.restartPolicy", template["spec"]["restartPolicy"], supported))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {unsupported} is not Supported"
        problems.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))
    return problems


def mismatch(field: str, found: Json | None) -> StatusCause:
    """A template whose pods its selector would not find."""
    found = dict(sorted(found.items())) if found else found
    return invalid(f"{field}.metadata.labels", found, "`selector` does not match template `labels`")


def name_warnings(obj: Json, old: Json | None) -> list[str]:
    """A new workload whose pods could not have its name in theirs and as host names."""
    if old is not None or not (why := dns_label(obj["metadata"].get("name", ""))):
        return []
    words = (
        "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended"
    )
    return [f"metadata.name: {words}: [{' '.join(why)}]"]


def replica_status_problems(
    obj: Json, counts: tuple[str, ...], parts: tuple[str, ...], ready: str
) -> list[StatusCause]:
    """Problems of a workload's counts of replicas: each is one, and none is more than there are."""
    status = obj.get("status", {})
    problems: list[StatusCause] = []
    for name in counts:
        problems += nonnegative(f"status.{name}", status.get(name))
    total = status.get("replicas", 0)
    for name in parts:
        if status.get(name, 0) > total:
            why = "cannot be greater than status.replicas"
            problems.append(invalid(f"status.{name}", status.get(name, 0), why))
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        why = f"cannot be greater than {ready}"
        problems.append(invalid("status.availableReplicas", status["availableReplicas"], why))
    return problems
