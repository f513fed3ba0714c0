"""Validation of names: apimachinery's rules, with its messages.

The functions that take one text return what is wrong with it, in the order in which kube-apiserver lists it; an empty
list is a good name. `prefix` is for generateName: a dash at the end is fine there.
"""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
WILDCARD = rf"\*\.{SUBDOMAIN}"
CONFIG_KEY = "[-._a-zA-Z0-9]+"

_label = re.compile(LABEL).fullmatch
_subdomain = re.compile(SUBDOMAIN).fullmatch
_label_1035 = re.compile(LABEL_1035).fullmatch
is_qualified = re.compile(QUALIFIED).fullmatch
is_label_value = re.compile(f"({QUALIFIED})?").fullmatch
_wildcard = re.compile(WILDCARD).fullmatch
_config_key = re.compile(CONFIG_KEY).fullmatch
_port_name = re.compile("[-a-z0-9]+").fullmatch
_percent = re.compile("[0-9]+%").fullmatch


def too_long_for(limit: int, unit: str = "characters") -> str:
    """Message about a text with more characters than that."""
    return f"must be no more than {limit} {unit}"


def regex_problem(rule: str, pattern: str, *examples: str) -> str:
    """Message about a text that does not match."""
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
    if not is_qualified(last):
        problems.append(f"name part {_QUALIFIED_PROBLEM}")
    return problems


def label_value(value: str) -> list[str]:
    """The value of a label."""
    problems = [too_long_for(63, "bytes")] if len(value) > 63 else []
    if not is_label_value(value):
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
