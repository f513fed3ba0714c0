"""Validation of metadata and of selectors inside objects: apimachinery's rules, with its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.field_errors import (
    each_invalid,
    forbidden,
    go_json,
    immutable,
    invalid,
    nonnegative,
    required,
    too_long,
)
from pilotage_harbor.apimachinery.names import dns_label, is_label_value, is_qualified, label_value, qualified_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pilotage_harbor.apimachinery.errors import StatusCause

Json = dict[str, Any]

ANNOTATIONS_BYTES_MAX = 256 * 1024


def label_problems(labels: Mapping[str, str] | None, field: str) -> list[StatusCause]:
    """Problems of a map of labels."""
    problems: list[StatusCause] = []
    for key, value in (labels or {}).items():
        if not (len(key) < 64 and is_qualified(key)):
            problems += each_invalid(field, key, qualified_name(key))
        if len(value) > 63 or not is_label_value(value):
            problems += each_invalid(field, value, label_value(value))
    return problems


def annotation_problems(annotations: Mapping[str, str] | None, field: str) -> list[StatusCause]:
    """Problems of a map of annotations."""
    problems: list[StatusCause] = []
    size = 0
    for key, value in (annotations or {}).items():
        if why := qualified_name(key.lower()):
            problems += each_invalid(field, key, why)
        size += len(key) + len(value)
    if size > ANNOTATIONS_BYTES_MAX // 4:  # characters; bytes are counted only where it may matter
        size = sum(len(key.encode()) + len(value.encode()) for key, value in (annotations or {}).items())
        if size > ANNOTATIONS_BYTES_MAX:
            problems.append(too_long(field, ANNOTATIONS_BYTES_MAX))
    return problems


def owner_problems(owners: Sequence[Json] | None, field: str) -> list[StatusCause]:
    """Problems of ownerReferences."""
    problems: list[StatusCause] = []
    controller = ""
    for owner in owners or ():
        version = owner.get("apiVersion") or ""
        if not version.rpartition("/")[2]:
            problems.append(invalid(f"{field}.apiVersion", version, "version must not be empty"))
        missing = (name for name in ("kind", "name", "uid") if not owner.get(name))
        problems += [invalid(f"{field}.{name}", "", "must not be empty") for name in missing]
        if (version, owner.get("kind")) == ("v1", "Event"):
            problems.append(invalid(field, _owner(owner), "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                why = f'Only one reference can have Controller set to true. Found "true" in references for {controller}'
                problems.append(invalid(field, [_owner(each) for each in owners or ()], f"{why} and {name}"))
            else:
                controller = name
    return problems


def _owner(owner: Json) -> Json:
    names = ("apiVersion", "kind", "name", "uid")
    shown = {name: owner.get(name, "") for name in names}
    return shown | {name: owner[name] for name in ("controller", "blockOwnerDeletion") if owner.get(name) is not None}


def finalizer_problems(finalizers: Sequence[str] | None, field: str) -> list[StatusCause]:
    """Problems of finalizers."""
    problems: list[StatusCause] = []
    for finalizer in finalizers or ():
        problems += each_invalid(field, finalizer, qualified_name(finalizer))
    if finalizers and "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        problems.append(invalid(field, list(finalizers), why))
    return problems


def metadata_problems(
    meta: Json, *, namespaced: bool, name_problems: Callable[..., list[str]], field: str = "metadata"
) -> list[StatusCause]:
    """Problems of a new object's metadata. A name has been generated already where one was to be."""
    problems: list[StatusCause] = []
    if prefix := meta.get("generateName"):
        problems += each_invalid(f"{field}.generateName", prefix, name_problems(prefix, prefix=True))
    if name := meta.get("name"):
        problems += each_invalid(f"{field}.name", name, name_problems(name))
    else:
        problems.append(required(f"{field}.name", "name or generateName is required"))
    namespace = meta.get("namespace")
    if namespaced:
        if namespace:
            problems += each_invalid(f"{field}.namespace", namespace, dns_label(namespace))
        else:
            problems.append(required(f"{field}.namespace"))
    elif namespace:
        problems.append(forbidden(f"{field}.namespace", "not allowed on this type"))
    problems += nonnegative(f"{field}.generation", meta.get("generation"))
    problems += _common_problems(meta, field)
    problems += finalizer_problems(meta.get("finalizers"), f"{field}.finalizers")
    return problems


_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def metadata_update_problems(meta: Json, old: Json, field: str = "metadata") -> list[StatusCause]:
    """Problems of a changed object's metadata: of itself, and compared with what it was."""
    problems: list[StatusCause] = []
    added = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if added and old.get("deletionTimestamp"):
        listed = f"[]string{{{go_json(added)[1:-1].replace(',', ', ')}}}"
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
        problems.append(forbidden(f"{field}.finalizers", why))
    if not meta.get("resourceVersion"):
        problems.append(invalid(f"{field}.resourceVersion", "", "must be specified for an update"))
    if meta.get("generation", 0) < old.get("generation", 0):
        problems.append(invalid(f"{field}.generation", meta.get("generation", 0), "must not be decremented"))
    for name in _IMMUTABLE:
        new, was = meta.get(name), old.get(name)
        if new != was:
            problems += immutable(f"{field}.{name}", "" if new is None and isinstance(was, str) else new, was)
    return problems + _common_problems(meta, field)


def _common_problems(meta: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if labels := meta.get("labels"):
        problems += label_problems(labels, f"{field}.labels")
    if annotations := meta.get("annotations"):
        problems += annotation_problems(annotations, f"{field}.annotations")
    if owners := meta.get("ownerReferences"):
        problems += owner_problems(owners, f"{field}.ownerReferences")
    return problems


def selector_problems(selector: Json | None, field: str) -> list[StatusCause]:
    """Problems of a LabelSelector (matchLabels, matchExpressions)."""
    if not selector:
        return []
    problems = label_problems(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, term in enumerate(selector.get("matchExpressions") or ()):
        here = f"{field}.matchExpressions[{index}]"
        operator, values = term.get("operator") or "", term.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                problems.append(required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                problems.append(forbidden(f"{here}.values", why))
        else:
            problems.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
        problems += each_invalid(f"{here}.key", term.get("key") or "", qualified_name(term.get("key") or ""))
        for place, value in enumerate(values):
            problems += each_invalid(f"{here}.values[{place}]", value, label_value(value))
    return problems


def selector_matches(selector: Json, labels: Mapping[str, str] | None) -> bool:
    """Whether a (valid) LabelSelector selects these labels."""
    labels = labels or {}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for term in selector.get("matchExpressions") or ():
        value, values = labels.get(term["key"]), term.get("values") or ()
        match term["operator"]:
            case "In":
                good = value in values
            case "NotIn":
                good = value not in values
            case "Exists":
                good = value is not None
            case _:
                good = value is None
        if not good:
            return False
    return True
