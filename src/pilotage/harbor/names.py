"""What names, labels and the rest of metadata may look like: the rules of apimachinery, with its words.

The functions that take one text return what is wrong with it, in the order in which kube-apiserver lists it; an empty
list is a good name. `prefix` is for generateName: a dash at the end is fine there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pilotage.harbor.problems import (
    each_invalid,
    forbidden,
    go_json,
    immutable,
    invalid,
    nonnegative,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pilotage.harbor.errors import Cause

Json = dict[str, Any]

ANNOTATIONS_BYTES_MAX = 256 * 1024
LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
WILDCARD = rf"\*\.{SUBDOMAIN}"
CONFIG_KEY = "[-._a-zA-Z0-9]+"

_label = re.compile(LABEL).fullmatch
_subdomain = re.compile(SUBDOMAIN).fullmatch
_label_1035 = re.compile(LABEL_1035).fullmatch
_qualified = re.compile(QUALIFIED).fullmatch
_label_value = re.compile(f"({QUALIFIED})?").fullmatch
_wildcard = re.compile(WILDCARD).fullmatch
_config_key = re.compile(CONFIG_KEY).fullmatch
_port_name = re.compile("[-a-z0-9]+").fullmatch
_c_identifier = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch
_percent = re.compile("[0-9]+%").fullmatch


def too_long_for(limit: int, unit: str = "characters") -> str:
    """What is said of a text with more characters than that."""
    return f"must be no more than {limit} {unit}"


def regex_problem(rule: str, pattern: str, *examples: str) -> str:
    """What is said of a text that does not match."""
    shown = " or ".join(f"'{each}', " for each in examples)
    return (
        f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
        if examples
        else (f"{rule} (regex used for validation is '{pattern}')")
    )


_SUBDOMAIN_PROBLEM = regex_problem(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start"
    " and end with an alphanumeric character",
    SUBDOMAIN,
    "example.com",
)
_LABEL_PROBLEM = regex_problem(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end"
    " with an alphanumeric character",
    LABEL,
    "my-name",
    "123-abc",
)
_LABEL_1035_PROBLEM = regex_problem(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character",
    LABEL_1035,
    "my-name",
    "abc-123",
)
_QUALIFIED_PROBLEM = regex_problem(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_PROBLEM = regex_problem(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character",
    f"({QUALIFIED})?",
    "MyValue",
    "my_value",
    "12345",
)
_WILDCARD_PROBLEM = regex_problem(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower"
    " case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    WILDCARD,
    "*.example.com",
)
_CONFIG_KEY_PROBLEM = regex_problem(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
PERCENT_PROBLEM = regex_problem(
    "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%", "93%"
)


def _masked(name: str) -> str:
    """A beginning of a name with the dash at its end made harmless."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def dns_subdomain(name: str, *, prefix: bool = False) -> list[str]:
    """RFC 1123, with dots: the usual name."""
    if prefix:
        name = _masked(name)
    problems = [too_long_for(253)] if len(name) > 253 else []
    if not _subdomain(name):
        problems.append(_SUBDOMAIN_PROBLEM)
    return problems


def dns_label(name: str, *, prefix: bool = False) -> list[str]:
    """RFC 1123, without dots: namespaces, containers, volumes."""
    if prefix:
        name = _masked(name)
    problems = [too_long_for(63)] if len(name) > 63 else []
    if not _label(name):
        problems.append("must not contain dots" if _subdomain(name) else _LABEL_PROBLEM)
    return problems


def dns1035(name: str, *, prefix: bool = False) -> list[str]:
    """RFC 1035: starts with a letter."""
    if prefix:
        name = _masked(name)
    problems = [too_long_for(63)] if len(name) > 63 else []
    if not _label_1035(name):
        problems.append(_LABEL_1035_PROBLEM)
    return problems


def path_segment(name: str, *, prefix: bool = False) -> list[str]:
    """Anything that can stand between two slashes of a path: RBAC's names."""
    if not prefix:
        if name == ".":
            return ["may not be '.'"]
        if name == "..":
            return ["may not be '..'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]


def wildcard_subdomain(name: str) -> list[str]:
    """A host of an Ingress that begins with an asterisk."""
    problems = [too_long_for(253)] if len(name) > 253 else []
    if not _wildcard(name):
        problems.append(_WILDCARD_PROBLEM)
    return problems


def qualified_name(name: str) -> list[str]:
    """The key of a label: a name, with a DNS subdomain and a slash before it if one likes."""
    head, slash, tail = name.partition("/")
    problems = []
    if "/" in tail:
        rule = f"a valid label key {_QUALIFIED_PROBLEM} with an optional DNS subdomain prefix and '/'"
        return [f"{rule} (e.g. 'example.com/MyName')"]
    if slash:
        problems = [f"prefix part {why}" for why in dns_subdomain(head)] if head else ["prefix part must be non-empty"]
    last = tail if slash else head
    if not last:
        problems.append("name part must be non-empty")
    elif len(last) > 63:
        problems.append(f"name part {too_long_for(63, 'bytes')}")
    if not _qualified(last):
        problems.append(f"name part {_QUALIFIED_PROBLEM}")
    return problems


def label_value(value: str) -> list[str]:
    """The value of a label."""
    problems = [too_long_for(63, "bytes")] if len(value) > 63 else []
    if not _label_value(value):
        problems.append(_LABEL_VALUE_PROBLEM)
    return problems


def config_key(key: str) -> list[str]:
    """A key of a ConfigMap or a Secret."""
    problems = [too_long_for(253)] if len(key) > 253 else []
    if not _config_key(key):
        problems.append(_CONFIG_KEY_PROBLEM)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def env_name(name: str) -> list[str]:
    """The name of an environment variable."""
    if not name:
        return ["environment variable name must be non-empty"]
    if name.isascii() and name.isprintable() and "=" not in name:
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def c_identifier(name: str) -> list[str]:
    """An identifier of C."""
    if _c_identifier(name):
        return []
    rule = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric"
    return [regex_problem(f"{rule} characters or '_'", "[A-Za-z_][A-Za-z0-9_]*", "my_name", "MY_NAME", "MyName")]


def port_number(port: int) -> list[str]:
    """A port that something can listen on."""
    return [] if 1 <= port <= 65535 else ["must be between 1 and 65535, inclusive"]


def port_name(name: str) -> list[str]:
    """The name of a container's port."""
    problems = [too_long_for(15)] if len(name) > 15 else []
    if not _port_name(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def is_percent(text: str) -> bool:
    """Whether it reads like 25%."""
    return _percent(text) is not None


# --- metadata


def label_problems(labels: Mapping[str, str] | None, field: str) -> list[Cause]:
    """What is wrong with a map of labels."""
    problems: list[Cause] = []
    for key, value in (labels or {}).items():
        if not (len(key) < 64 and _qualified(key)):
            problems += each_invalid(field, key, qualified_name(key))
        if len(value) > 63 or not _label_value(value):
            problems += each_invalid(field, value, label_value(value))
    return problems


def annotation_problems(annotations: Mapping[str, str] | None, field: str) -> list[Cause]:
    """What is wrong with a map of annotations."""
    problems: list[Cause] = []
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


def owner_problems(owners: Sequence[Json] | None, field: str) -> list[Cause]:
    """What is wrong with ownerReferences."""
    problems: list[Cause] = []
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


def finalizer_problems(finalizers: Sequence[str] | None, field: str) -> list[Cause]:
    """What is wrong with finalizers."""
    problems: list[Cause] = []
    for finalizer in finalizers or ():
        problems += each_invalid(field, finalizer, qualified_name(finalizer))
    if finalizers and "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        problems.append(invalid(field, list(finalizers), why))
    return problems


def metadata_problems(
    meta: Json, *, namespaced: bool, name_problems: Callable[..., list[str]], field: str = "metadata"
) -> list[Cause]:
    """What is wrong with a new object's metadata. A name has been generated already where one was to be."""
    problems: list[Cause] = []
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


def metadata_update_problems(meta: Json, old: Json, field: str = "metadata") -> list[Cause]:
    """What is wrong with a changed object's metadata: of itself, and compared with what it was."""
    problems: list[Cause] = []
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


def _common_problems(meta: Json, field: str) -> list[Cause]:
    problems: list[Cause] = []
    if labels := meta.get("labels"):
        problems += label_problems(labels, f"{field}.labels")
    if annotations := meta.get("annotations"):
        problems += annotation_problems(annotations, f"{field}.annotations")
    if owners := meta.get("ownerReferences"):
        problems += owner_problems(owners, f"{field}.ownerReferences")
    return problems


# --- label selectors inside objects


def selector_problems(selector: Json | None, field: str) -> list[Cause]:
    """What is wrong with a LabelSelector (matchLabels, matchExpressions)."""
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
