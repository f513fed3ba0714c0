"""The functions that Kubernetes adds to CEL, for rules of custom resources.

Each function is declared twice: with its types, so that a rule can be checked, and with what the values are when it
runs. Values of types that CEL has no room for (quantities, URLs, addresses) run as maps with one key that names the
type. Not there: `format.*` (it gives optionals, which Python functions cannot) and the authorizer.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from cel_expr_python import cel

from pilotage.harbor.schema.decode import quantity_problem
from pilotage.harbor.schema.formats import is_uri
from pilotage.harbor.schema.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pilotage.harbor.schema.node import Value

_T = cel.Type
_ABSTRACT = {name: _T.AbstractType(f"kubernetes.{name}") for name in ("Quantity", "URL", "Semver")} | {
    name: _T.AbstractType(f"net.{name}") for name in ("IP", "CIDR")
}
_PLAIN = {
    "string": _T.STRING,
    "int": _T.INT,
    "double": _T.DOUBLE,
    "bool": _T.BOOL,
    "bytes": _T.BYTES,
    "timestamp": _T.TIMESTAMP,
    "duration": _T.DURATION,
    "dyn": _T.DYN,
}
_RUNTIME_ANY = (
    _T.BOOL, _T.INT, _T.UINT, _T.DOUBLE, _T.STRING, _T.BYTES, _T.TIMESTAMP, _T.DURATION, _T.LIST, _T.MAP, _T.NULL,
)  # fmt: skip


class _Function(NamedTuple):
    name: str
    signatures: tuple[str, ...]
    """``string.string->bool`` is a method of strings, ``string->bool`` a function; dots separate the arguments."""
    run: Callable[..., Any]


def _typed(name: str) -> cel.Type:
    if name.startswith("list<"):
        return _T.List(_typed(name[5:-1]))
    return _ABSTRACT.get(name) or _PLAIN[name]


def _runtime(name: str) -> cel.Type:
    if name.startswith("list<"):
        return _T.LIST
    return _T.MAP if name in _ABSTRACT else _PLAIN[name]


def _declarations(*, running: bool) -> Iterable[tuple[str, cel.Overload]]:
    for function in FUNCTIONS:
        seen: set[str] = set()
        for signature in function.signatures:
            arguments, _, result = signature.partition("->")
            member = arguments.startswith("@")
            names = arguments.removeprefix("@").split(".") if arguments.removeprefix("@") else []
            for parameters in _parameters(names, running=running):
                key = "_".join(p.name() for p in parameters)
                if key in seen:
                    continue
                seen.add(key)
                overload = cel.Overload(
                    f"{function.name}_{key}",
                    return_type=(_T.DYN if running else _typed(result)),
                    parameters=parameters,
                    is_member=member,
                    impl=function.run,
                )
                yield function.name, overload


def _parameters(names: list[str], *, running: bool) -> list[list[cel.Type]]:
    if not running:
        return [[_typed(name) for name in names]]
    if names and names[-1] == "dyn":
        head = [_runtime(name) for name in names[:-1]]
        return [[*head, last] for last in _RUNTIME_ANY]
    return [[_runtime(name) for name in names]]


@cache
def declarations() -> list[cel.FunctionDecl]:
    """All functions with their types, for checking a rule."""
    return _grouped(running=False)


@cache
def running_declarations() -> list[cel.FunctionDecl]:
    """All functions with the types that their arguments have when a rule runs."""
    return _grouped(running=True)


def _grouped(*, running: bool) -> list[cel.FunctionDecl]:
    overloads: dict[str, list[cel.Overload]] = {}
    for name, overload in _declarations(running=running):
        overloads.setdefault(name, []).append(overload)
    return [cel.FunctionDecl(name, found) for name, found in overloads.items()]


@cache
def comparisons() -> list[cel.FunctionDecl]:
    """The order of values for checking: unlike CEL's own, numbers of different types can be compared."""
    numbers = (_T.INT, _T.UINT, _T.DOUBLE)
    others = (_T.BOOL, _T.STRING, _T.BYTES, _T.TIMESTAMP, _T.DURATION)
    pairs = [(a, b) for a in numbers for b in numbers] + [(a, a) for a in others]
    return [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(f"{name}{a.name()}{b.name()}", return_type=_T.BOOL, parameters=[a, b], is_member=False)
                for a, b in pairs
            ],
        )
        for name in COMPARISONS
    ]


COMPARISONS = ("_<_", "_<=_", "_>_", "_>=_")


# lists


def _is_sorted(values: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(values))


def _extreme(choose: Callable[[list[Any]], Value], name: str) -> Callable[[list[Any]], Value]:
    def run(values: list[Any]) -> Value:
        if not values:
            raise ValueError(f"{name} called on empty list")
        return choose(values)

    return run


def _sum(values: list[Any]) -> Value:
    return sum(values[1:], values[0]) if values else 0


def _index_of(value: Value, wanted: Value, start: int = 0) -> int:
    if isinstance(value, str):
        return value.find(wanted, start)
    return next((at for at, element in enumerate(value) if element == wanted), -1)


def _last_index_of(value: Value, wanted: Value, end: int | None = None) -> int:
    if isinstance(value, str):
        return value.rfind(wanted, 0, len(value) if end is None else end + len(wanted))
    return next((at for at in range(len(value) - 1, -1, -1) if value[at] == wanted), -1)


# strings


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise ValueError(f"index out of range: {at}")
    return text[at : at + 1]


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= last <= len(text):
        raise ValueError(f"index out of range: {start if start > len(text) or start < 0 else last}")
    return text[start:last]


def _join(parts: list[str], separator: str = "") -> str:
    return separator.join(parts)


def _ascii(text: str, *, upper: bool) -> str:
    return "".join((c.upper() if upper else c.lower()) if c.isascii() else c for c in text)


_VERB = re.compile(r"%(?:\.(\d+))?(.)", re.DOTALL)


def _format(text: str, arguments: list[Any]) -> str:
    rest = iter(arguments)

    def one(found: re.Match[str]) -> str:
        precision, verb = found.groups()
        if verb == "%":
            return "%"
        value: Any = next(rest, None)
        if verb == "s":
            return _text(value)
        if verb == "d":
            return str(int(value))
        if verb in "fe":
            return f"{float(value):.{precision or 6}{verb}}"
        if verb in "xXbo":
            if isinstance(value, (str, bytes)):
                digits = (value.encode() if isinstance(value, str) else value).hex()
                return digits.upper() if verb == "X" else digits
            return format(int(value), verb)
        raise ValueError(f'unrecognized formatting clause "{verb}"')

    return _VERB.sub(one, text)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(k)}: {_text(v)}' for k, v in sorted(value.items()))}}}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.decode() if isinstance(value, bytes) else str(value)


# regular expressions


def _find(text: str, pattern: str) -> str:
    found = compile_pattern(pattern).search(text)
    return str(found.group()) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = compile_pattern(pattern).finditer(text)
    return [match.group() for match in islice(found, limit if limit >= 0 else None)]


# quantities


_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(.*)")


def _quantity(text: str) -> dict[str, str]:
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


def _amount(value: Value) -> Fraction:
    return Fraction(value["#Quantity"]) if isinstance(value, dict) else Fraction(value)


def _as_integer(value: Value) -> int:
    amount = _amount(value)
    if amount.denominator != 1 or abs(amount) >= 2**63:
        raise ValueError("cannot convert value to integer")
    return amount.numerator


def _ordered(value: dict[str, str]) -> Any:  # noqa: ANN401 - what orders quantities or versions
    return _amount(value) if "#Quantity" in value else _semver_key(value)


def _compare(a: dict[str, str], b: dict[str, str]) -> int:
    left, right = _ordered(a), _ordered(b)
    return 1 if left > right else -1 if left < right else 0


# versions


_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


def _semver(text: str, normalize: bool = False) -> dict[str, str]:
    if normalize:
        core, dash, rest = text.removeprefix("v").partition("-")
        numbers = [str(int(part)) if part.isdigit() else part for part in core.split(".")]
        text = ".".join([*numbers, "0", "0"][: max(3, len(numbers))]) + dash + rest
    if not _SEMVER.fullmatch(text):
        raise ValueError("No Major.Minor.Patch elements found")
    return {"#Semver": text}


def _semver_key(value: dict[str, str]) -> tuple[Any, ...]:
    major, minor, patch, pre = _SEMVER.fullmatch(value["#Semver"]).groups()  # type: ignore[union-attr]
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")] if pre else []
    return int(major), int(minor), int(patch), pre is None, parts


# URLs


def _url(text: str) -> dict[str, str]:
    if not is_uri(text):
        raise ValueError(f"URL parse error during conversion from string: parse {text!r}: invalid URI for request")
    return {"#URL": text}


def _parts(value: dict[str, str]) -> SplitResult:
    return urlsplit(value["#URL"])


def _query(value: dict[str, str]) -> dict[str, list[str]]:
    from urllib.parse import parse_qs

    return parse_qs(_parts(value).query, keep_blank_values=True)


def _port(value: dict[str, str]) -> str:
    port = _parts(value).port
    return "" if port is None else str(port)


def _host(value: dict[str, str]) -> str:
    return _parts(value).netloc.rpartition("@")[2]


# addresses


def _address(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text)
    if "%" in text or (isinstance(address, IPv6Address) and address.ipv4_mapped):
        raise ValueError(f'IP Address "{text}" parse error during conversion from string')
    return address


def _ip(value: Value) -> dict[str, str]:
    if isinstance(value, dict):
        return {"#IP": str(ip_network(value["#CIDR"], strict=False).network_address)}
    return {"#IP": str(_address(value))}


def _ip_of(value: Value) -> IPv4Address | IPv6Address:
    return _address(value["#IP"] if isinstance(value, dict) else value)


def _cidr(text: str) -> dict[str, str]:
    _network(text)
    return {"#CIDR": text}


def _network(value: Value) -> IPv4Network | IPv6Network:
    text = value["#CIDR"] if isinstance(value, dict) else value
    if "/" not in text or not text.rpartition("/")[2].isdigit():
        raise ValueError("network address parse error during conversion from string")
    return ip_network(text, strict=False)


def _contains_cidr(outer: Value, inner: Value) -> bool:
    a, b = _network(outer), _network(inner)
    return a.version == b.version and a.prefixlen <= b.prefixlen and b.network_address in a


def _succeeds(run: Callable[..., object]) -> Callable[..., bool]:
    def test(*arguments: object) -> bool:
        try:
            run(*arguments)
        except ValueError:
            return False
        return True

    return test


_ORDERED = ("int", "double", "bool", "string", "bytes", "timestamp", "duration")
_EXTREMES = tuple(f"@list<{name}>->{name}" for name in _ORDERED)

FUNCTIONS = (
    _Function("isSorted", tuple(f"@list<{name}>->bool" for name in _ORDERED), _is_sorted),
    _Function("sum", tuple(f"@list<{name}>->{name}" for name in ("int", "double", "duration")), _sum),
    _Function("min", _EXTREMES, _extreme(min, "min")),
    _Function("max", _EXTREMES, _extreme(max, "max")),
    _Function("indexOf", ("@string.string->int", "@string.string.int->int", "@list<dyn>.dyn->int"), _index_of),
    _Function("lastIndexOf", ("@string.string->int", "@string.string.int->int", "@list<dyn>.dyn->int"), _last_index_of),
    _Function("charAt", ("@string.int->string",), _char_at),
    _Function("join", ("@list<string>->string", "@list<string>.string->string"), _join),
    _Function("lowerAscii", ("@string->string",), lambda text: _ascii(text, upper=False)),
    _Function("upperAscii", ("@string->string",), lambda text: _ascii(text, upper=True)),
    _Function("replace", ("@string.string.string->string", "@string.string.string.int->string"), _replace),
    _Function("split", ("@string.string->list<string>", "@string.string.int->list<string>"), _split),
    _Function("substring", ("@string.int->string", "@string.int.int->string"), _substring),
    _Function("trim", ("@string->string",), str.strip),
    _Function("format", ("@string.list<dyn>->string",), _format),
    _Function("find", ("@string.string->string",), _find),
    _Function("findAll", ("@string.string->list<string>", "@string.string.int->list<string>"), _find_all),
    _Function("quantity", ("string->Quantity",), _quantity),
    _Function("isQuantity", ("string->bool",), _succeeds(_quantity)),
    _Function("isInteger", ("@Quantity->bool",), _succeeds(_as_integer)),
    _Function("asInteger", ("@Quantity->int",), _as_integer),
    _Function("asApproximateFloat", ("@Quantity->double",), lambda value: float(_amount(value))),
    _Function("sign", ("@Quantity->int",), lambda value: (_amount(value) > 0) - (_amount(value) < 0)),
    _Function(
        "add",
        ("@Quantity.Quantity->Quantity", "@Quantity.int->Quantity"),
        lambda a, b: {"#Quantity": str(_amount(a) + _amount(b))},
    ),
    _Function(
        "sub",
        ("@Quantity.Quantity->Quantity", "@Quantity.int->Quantity"),
        lambda a, b: {"#Quantity": str(_amount(a) - _amount(b))},
    ),
    _Function("isLessThan", ("@Quantity.Quantity->bool", "@Semver.Semver->bool"), lambda a, b: _compare(a, b) < 0),
    _Function("isGreaterThan", ("@Quantity.Quantity->bool", "@Semver.Semver->bool"), lambda a, b: _compare(a, b) > 0),
    _Function("compareTo", ("@Quantity.Quantity->int", "@Semver.Semver->int"), _compare),
    _Function("semver", ("string->Semver", "string.bool->Semver"), _semver),
    _Function("isSemver", ("string->bool", "string.bool->bool"), _succeeds(_semver)),
    _Function("major", ("@Semver->int",), lambda value: _semver_key(value)[0]),
    _Function("minor", ("@Semver->int",), lambda value: _semver_key(value)[1]),
    _Function("patch", ("@Semver->int",), lambda value: _semver_key(value)[2]),
    _Function("url", ("string->URL",), _url),
    _Function("isURL", ("string->bool",), is_uri),
    _Function("getScheme", ("@URL->string",), lambda value: _parts(value).scheme),
    _Function("getHost", ("@URL->string",), _host),
    _Function("getHostname", ("@URL->string",), lambda value: _parts(value).hostname or ""),
    _Function("getPort", ("@URL->string",), _port),
    _Function("getEscapedPath", ("@URL->string",), lambda value: _parts(value).path),
    _Function("getQuery", ("@URL->dyn",), _query),
    _Function("ip", ("string->IP", "@CIDR->IP"), _ip),
    _Function("isIP", ("string->bool",), _succeeds(_ip)),
    _Function("ip.isCanonical", ("string->bool",), lambda text: str(_address(text)) == text),
    _Function("family", ("@IP->int",), lambda value: _ip_of(value).version),
    _Function("isUnspecified", ("@IP->bool",), lambda value: _ip_of(value).is_unspecified),
    _Function("isLoopback", ("@IP->bool",), lambda value: _ip_of(value).is_loopback),
    _Function(
        "isLinkLocalUnicast",
        ("@IP->bool",),
        lambda value: _ip_of(value).is_link_local,
    ),
    _Function("cidr", ("string->CIDR",), _cidr),
    _Function("isCIDR", ("string->bool",), _succeeds(_cidr)),
    _Function(
        "containsIP", ("@CIDR.IP->bool", "@CIDR.string->bool"), lambda net, address: _ip_of(address) in _network(net)
    ),
    _Function("containsCIDR", ("@CIDR.CIDR->bool", "@CIDR.string->bool"), _contains_cidr),
    _Function("prefixLength", ("@CIDR->int",), lambda value: _network(value).prefixlen),
    _Function("masked", ("@CIDR->CIDR",), lambda value: {"#CIDR": str(_network(value))}),
)
