"""The scale subresource: how many replicas something has and should have, whatever kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pilotage.kube.selectors import LabelSelector, SelectorError
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.field_errors import invalid
from pilotage_harbor.schema.gotext import plain, type_name

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind

GROUP, VERSION, KIND = "autoscaling", "v1", "Scale"
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_MAX = 2**31 - 1


def scale_of(kind: Kind, obj: Json) -> Json:
    """An object's Scale."""
    spec_path, status_path, selector_path = kind.scale
    meta = obj["metadata"]
    status: Json = {"replicas": at(obj, status_path) or 0}
    selector = _selector(at(obj, selector_path)) if selector_path else ""
    if selector:
        status["selector"] = selector
    replicas = at(obj, spec_path)
    return {
        "kind": KIND,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {name: meta[name] for name in _KEPT if name in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def replicas_of(kind: Kind, name: str, scale: Json) -> int:
    """Number of replicas that a Scale asks for; 422 if it is none."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, int) and not isinstance(replicas, bool) and replicas >= 0:
        return replicas
    if kind.custom and isinstance(replicas, int):
        cause = invalid(kind.scale[0], replicas, "should be a non-negative integer")
        raise errors.invalid(kind.group, kind.kind, name, [cause])
    words = f"Invalid value: {replicas}: must be greater than or equal to 0"
    raise errors.invalid(GROUP, KIND, name, [errors.StatusCause("spec.replicas", "FieldValueInvalid", words)])


def patch_of(kind: Kind, replicas: int) -> Json:
    """The merge patch that gives an object so many replicas."""
    patch: Any = replicas
    for name in reversed(_names(kind.scale[0])):
        patch = {name: patch}
    return {**patch}


def with_replicas(kind: Kind, obj: Json, replicas: int) -> Json:
    """A copy of an object that has so many replicas."""
    copy: Json = msgspec.json.decode(msgspec.json.encode(obj))
    *names, last = _names(kind.scale[0])
    place = copy
    for name in names:
        place = place.setdefault(name, {})
    place[last] = replicas
    return copy


def at(obj: Json, path: str) -> Any:  # noqa: ANN401 - JSON
    """The value at a path such as ``.spec.replicas``, or None."""
    value: Any = obj
    for name in _names(path):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def number_problems(obj: Json, path: str) -> list[StatusCause]:
    """Problems of a number of replicas in a custom resource, if there is one."""
    found, why = _found(obj, path, int, "int64")
    if why:
        return [invalid(path, 0, why)]
    if found is not None and found < 0:
        return [invalid(path, found, "should be a non-negative integer")]
    if found is not None and found > _MAX:
        return [invalid(path, found, f"should be less than or equal to {_MAX}")]
    return []


def text_problems(obj: Json, path: str) -> list[StatusCause]:
    """Problems of the selector in a custom resource, if there is one."""
    _, why = _found(obj, path, str, "string")
    return [invalid(path, "", why)] if why else []


def _found(obj: Json, path: str, wanted: type, name: str) -> tuple[Any, str]:
    """The value at a path, and why it cannot be read, in Go's words."""
    value: Any = obj
    names = _names(path)
    for index, step in enumerate(names):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            return None, _wrong(names[: index + 1], value, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    if type(value) is not wanted:
        return None, _wrong(names, value, name)
    return value, ""


def _wrong(names: list[str], value: Any, expected: str) -> str:  # noqa: ANN401 - JSON
    where = ".".join(["", *names])
    return f"{where} accessor error: {plain(value)} is of the type {type_name(value)}, expected {expected}"


def _selector(value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    try:
        as_selector = value if {"matchLabels", "matchExpressions"} & set(value) else {"matchLabels": value}
        return str(LabelSelector.from_object(as_selector))
    except SelectorError:
        return ""


def _names(path: str) -> list[str]:
    return path.strip(".").split(".")
