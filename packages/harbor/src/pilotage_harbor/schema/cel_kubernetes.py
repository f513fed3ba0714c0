"""The types that Kubernetes adds to CEL: quantities, versions, URLs, addresses and networks. Pure.

CEL has no room for them: a value runs as a map with one key, which names the type. What is none of its type is a
ValueError, which becomes the error of the rule.
"""

from __future__ import annotations

import re
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from pilotage_harbor.schema.decode import quantity_problem
from pilotage_harbor.schema.formats import is_uri

if TYPE_CHECKING:
    from pilotage_harbor.schema.node import Value

# quantities


_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(.*)")


def quantity(text: str) -> dict[str, str]:
    """Quantity of text such as ``1.5Gi``; ValueError for what is none."""
    problem = quantity_problem(text)
    if problem:
        raise ValueError(problem)
    digits, suffix = _QUANTITY.fullmatch(text).groups()  # type: ignore[union-attr]
    value = Fraction(digits)
    if suffix in _BINARY:
        value *= 2 ** _BINARY[suffix]
    elif suffix in _SUFFIXES:
        value *= Fraction(10) ** _SUFFIXES[suffix]
    else:
        value *= Fraction(10) ** int(suffix[1:])
    return {"#Quantity": str(value)}


def amount(value: Value) -> Fraction:
    """The number that a quantity is; numbers count as themselves."""
    return Fraction(value["#Quantity"]) if isinstance(value, dict) else Fraction(value)


def as_integer(value: Value) -> int:
    """A quantity as a whole number; ValueError if it is none, or does not fit into 64 bits."""
    number = amount(value)
    if number.denominator != 1 or abs(number) >= 2**63:
        raise ValueError("cannot convert value to integer")
    return number.numerator


def _ordered(value: dict[str, str]) -> Any:  # noqa: ANN401 - what orders quantities or versions
    return amount(value) if "#Quantity" in value else semver_key(value)


def compare(a: dict[str, str], b: dict[str, str]) -> int:
    """Order of two quantities or two versions: 1 if the first is greater, -1 if it is less, else 0."""
    left, right = _ordered(a), _ordered(b)
    return 1 if left > right else -1 if left < right else 0


# versions


_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


def semver(text: str, normalize: bool = False) -> dict[str, str]:
    """Version of text such as ``1.2.3-rc.1``; `normalize` allows ``v1.2``. ValueError for what is none."""
    if normalize:
        core, dash, rest = text.removeprefix("v").partition("-")
        numbers = [str(int(part)) if part.isdigit() else part for part in core.split(".")]
        text = ".".join([*numbers, "0", "0"][: max(3, len(numbers))]) + dash + rest
    if not _SEMVER.fullmatch(text):
        raise ValueError("No Major.Minor.Patch elements found")
    return {"#Semver": text}


def semver_key(value: dict[str, str]) -> tuple[Any, ...]:
    """Major, minor and patch as numbers, and what orders versions beyond these."""
    major, minor, patch, pre = _SEMVER.fullmatch(value["#Semver"]).groups()  # type: ignore[union-attr]
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")] if pre else []
    return int(major), int(minor), int(patch), pre is None, parts


# URLs


def url(text: str) -> dict[str, str]:
    """URL of a text; ValueError for what is none."""
    if not is_uri(text):
        raise ValueError(f"URL parse error during conversion from string: parse {text!r}: invalid URI for request")
    return {"#URL": text}


def url_parts(value: dict[str, str]) -> SplitResult:
    """A URL, taken apart."""
    return urlsplit(value["#URL"])


def query(value: dict[str, str]) -> dict[str, list[str]]:
    """The values of each parameter."""
    from urllib.parse import parse_qs

    return parse_qs(url_parts(value).query, keep_blank_values=True)


def port(value: dict[str, str]) -> str:
    """The port as text; empty if none is said."""
    number = url_parts(value).port
    return "" if number is None else str(number)


def host(value: dict[str, str]) -> str:
    """The host with its port, if one is said."""
    return url_parts(value).netloc.rpartition("@")[2]


# addresses


def address(text: str) -> IPv4Address | IPv6Address:
    """Address of a text; ValueError for what is none, and for zones and IPv4 in IPv6, which Kubernetes refuses."""
    found = ip_address(text)
    if "%" in text or (isinstance(found, IPv6Address) and found.ipv4_mapped):
        raise ValueError(f'IP Address "{text}" parse error during conversion from string')
    return found


def ip(value: Value) -> dict[str, str]:
    """Address of a text, or the first address of a network."""
    if isinstance(value, dict):
        return {"#IP": str(ip_network(value["#CIDR"], strict=False).network_address)}
    return {"#IP": str(address(value))}


def ip_of(value: Value) -> IPv4Address | IPv6Address:
    """The address that a value or a text is."""
    return address(value["#IP"] if isinstance(value, dict) else value)


def cidr(text: str) -> dict[str, str]:
    """Network of text such as ``10.0.0.0/8``; ValueError for what is none."""
    network(text)
    return {"#CIDR": text}


def network(value: Value) -> IPv4Network | IPv6Network:
    """The network that a value or a text is."""
    text = value["#CIDR"] if isinstance(value, dict) else value
    if "/" not in text or not text.rpartition("/")[2].isdigit():
        raise ValueError("network address parse error during conversion from string")
    return ip_network(text, strict=False)


def contains_cidr(outer: Value, inner: Value) -> bool:
    """Whether all addresses of one network are in another."""
    a, b = network(outer), network(inner)
    return a.version == b.version and a.prefixlen <= b.prefixlen and b.network_address in a
