"""The conditions of a CustomResourceDefinition."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json

_APPROVAL = "api-approved.kubernetes.io"
_POLICY = "https://github.com/kubernetes/enhancements/pull/1111"


def set_condition(definition: Json, type_: str, value: str, reason: str, message: str, now: str) -> None:
    """Add a condition, or change it; its time is that of the last change of its status."""
    status = definition.setdefault("status", {})
    conditions: list[Json] = status.get("conditions") or []
    status["conditions"] = conditions
    condition = next((each for each in conditions if each["type"] == type_), None)
    if condition is None:
        condition = {"type": type_, "status": "", "lastTransitionTime": now}
        conditions.append(condition)
    if condition["status"] != value:
        condition["lastTransitionTime"] = now
    condition.update(status=value, reason=reason, message=message)


def mark_pending(definition: Json, now: str) -> None:
    """Say that its deletion has begun: part of the delete itself."""
    words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(definition, "Terminating", "True", "InstanceDeletionPending", words, now)


def approval(definition: Json) -> tuple[str, str, str, str] | None:
    """The condition that says whether a definition in one of Kubernetes' own groups was approved."""
    group = definition["spec"]["group"]
    if not any(group == own or group.endswith(f".{own}") for own in ("k8s.io", "kubernetes.io")):
        return None
    type_ = "KubernetesAPIApprovalPolicyConformant"
    text = (definition["metadata"].get("annotations") or {}).get(_APPROVAL, "")
    needed = f'protected groups must have approval annotation "{_APPROVAL}"'
    if not text:
        return type_, "False", "MissingAnnotation", f"{needed}, see {_POLICY}"
    if text.startswith("unapproved"):
        return type_, "False", "UnapprovedAnnotation", f'not approved: "{text}"'
    url = urlsplit(text)
    if url.scheme and url.netloc:
        return type_, "True", "ApprovedAnnotation", f"approved in {text}"
    words = f'{needed} with either a URL or a reason starting with "unapproved", see {_POLICY}'
    return type_, "False", "InvalidAnnotation", words


def condition_of(definition: Json, type_: str) -> Json:
    """One condition; an empty one if it is not there."""
    conditions: list[Json] = (definition.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), {})


def is_true(definition: Json, type_: str) -> bool:
    """Whether a condition is there, and true."""
    return bool(condition_of(definition, type_).get("status") == "True")


def has(definition: Json, type_: str, value: str, reason: str, message: str) -> bool:
    """Whether a condition says just that."""
    found = condition_of(definition, type_)
    return (found.get("status"), found.get("reason"), found.get("message")) == (value, reason, message)
