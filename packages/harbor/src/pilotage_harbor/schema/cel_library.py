"""Declares the functions that Kubernetes adds to CEL, for rules of custom resources; `FUNCTIONS` is the table.

Each function is declared twice: with its types, so that a rule can be checked, and with what the values are when it
runs. What they do is in `cel_text` and `cel_kubernetes`. Not there: `format.*` (it gives optionals, which Python
functions cannot). The authorizer, which only admission has, is in `cel_authorizer`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cel_expr_python import cel

from pilotage_harbor.schema import cel_kubernetes as kubernetes
from pilotage_harbor.schema import cel_text as text
from pilotage_harbor.schema.formats import is_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_T = cel.Type
_ABSTRACT = {name: _T.AbstractType(f"kubernetes.{name}") for name in ("Quantity", "URL", "Semver")} | {
    name: _T.AbstractType(f"net.{name}") for name in ("IP", "CIDR")
}
_ABSTRACT |= {
    name: _T.AbstractType(f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
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


class Function(NamedTuple):
    """One row of a table of functions."""

    name: str
    signatures: tuple[str, ...]
    """``string.string->bool`` is a method of strings, ``string->bool`` a function; dots separate the arguments."""
    run: Callable[..., Any]


def type_of(name: str) -> cel.Type:
    """The type of a name that signatures use, such as ``list<string>`` or ``Quantity``."""
    if name.startswith("list<"):
        return _T.List(type_of(name[5:-1]))
    return _ABSTRACT.get(name) or _PLAIN[name]


def _runtime(name: str) -> cel.Type:
    if name.startswith("list<"):
        return _T.LIST
    return _T.MAP if name in _ABSTRACT else _PLAIN[name]


def _declarations(functions: Iterable[Function], *, running: bool) -> Iterable[tuple[str, cel.Overload]]:
    for function in functions:
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
                    return_type=(_T.DYN if running else type_of(result)),
                    parameters=parameters,
                    is_member=member,
                    impl=function.run,
                )
                yield function.name, overload


def _parameters(names: list[str], *, running: bool) -> list[list[cel.Type]]:
    if not running:
        return [[type_of(name) for name in names]]
    if names and names[-1] == "dyn":
        head = [_runtime(name) for name in names[:-1]]
        return [[*head, last] for last in _RUNTIME_ANY]
    return [[_runtime(name) for name in names]]


@cache
def declarations() -> list[cel.FunctionDecl]:
    """All functions with their types, for checking a rule."""
    return declared(FUNCTIONS, running=False)


@cache
def running_declarations() -> list[cel.FunctionDecl]:
    """All functions with the types that their arguments have when a rule runs."""
    return declared(FUNCTIONS, running=True)


def declared(functions: Iterable[Function], *, running: bool) -> list[cel.FunctionDecl]:
    """A table of functions as an environment takes it: to check expressions, or to run them."""
    overloads: dict[str, list[cel.Overload]] = {}
    for name, overload in _declarations(functions, running=running):
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
    Function("isSorted", tuple(f"@list<{name}>->bool" for name in _ORDERED), text.is_sorted),
    Function("sum", tuple(f"@list<{name}>->{name}" for name in ("int", "double", "duration")), text.total),
    Function("min", _EXTREMES, text.extreme(min, "min")),
    Function("max", _EXTREMES, text.extreme(max, "max")),
    Function("indexOf", ("@string.string->int", "@string.string.int->int", "@list<dyn>.dyn->int"), text.index_of),
    Function(
        "lastIndexOf", ("@string.string->int", "@string.string.int->int", "@list<dyn>.dyn->int"), text.last_index_of
    ),
    Function("sets.contains", ("list<dyn>.list<dyn>->bool",), text.contains_all),
    Function("sets.equivalent", ("list<dyn>.list<dyn>->bool",), text.equivalent),
    Function("sets.intersects", ("list<dyn>.list<dyn>->bool",), text.intersects),
    Function("charAt", ("@string.int->string",), text.char_at),
    Function("join", ("@list<string>->string", "@list<string>.string->string"), text.join),
    Function("lowerAscii", ("@string->string",), lambda value: text.ascii_case(value, upper=False)),
    Function("upperAscii", ("@string->string",), lambda value: text.ascii_case(value, upper=True)),
    Function("replace", ("@string.string.string->string", "@string.string.string.int->string"), text.replace),
    Function("split", ("@string.string->list<string>", "@string.string.int->list<string>"), text.split),
    Function("substring", ("@string.int->string", "@string.int.int->string"), text.substring),
    Function("trim", ("@string->string",), str.strip),
    Function("format", ("@string.list<dyn>->string",), text.formatted),
    Function("find", ("@string.string->string",), text.find),
    Function("findAll", ("@string.string->list<string>", "@string.string.int->list<string>"), text.find_all),
    Function("quantity", ("string->Quantity",), kubernetes.quantity),
    Function("isQuantity", ("string->bool",), _succeeds(kubernetes.quantity)),
    Function("isInteger", ("@Quantity->bool",), _succeeds(kubernetes.as_integer)),
    Function("asInteger", ("@Quantity->int",), kubernetes.as_integer),
    Function("asApproximateFloat", ("@Quantity->double",), lambda value: float(kubernetes.amount(value))),
    Function(
        "sign", ("@Quantity->int",), lambda value: (kubernetes.amount(value) > 0) - (kubernetes.amount(value) < 0)
    ),
    Function(
        "add",
        ("@Quantity.Quantity->Quantity", "@Quantity.int->Quantity"),
        lambda a, b: {"#Quantity": str(kubernetes.amount(a) + kubernetes.amount(b))},
    ),
    Function(
        "sub",
        ("@Quantity.Quantity->Quantity", "@Quantity.int->Quantity"),
        lambda a, b: {"#Quantity": str(kubernetes.amount(a) - kubernetes.amount(b))},
    ),
    Function(
        "isLessThan", ("@Quantity.Quantity->bool", "@Semver.Semver->bool"), lambda a, b: kubernetes.compare(a, b) < 0
    ),
    Function(
        "isGreaterThan", ("@Quantity.Quantity->bool", "@Semver.Semver->bool"), lambda a, b: kubernetes.compare(a, b) > 0
    ),
    Function("compareTo", ("@Quantity.Quantity->int", "@Semver.Semver->int"), kubernetes.compare),
    Function("semver", ("string->Semver", "string.bool->Semver"), kubernetes.semver),
    Function("isSemver", ("string->bool", "string.bool->bool"), _succeeds(kubernetes.semver)),
    Function("major", ("@Semver->int",), lambda value: kubernetes.semver_key(value)[0]),
    Function("minor", ("@Semver->int",), lambda value: kubernetes.semver_key(value)[1]),
    Function("patch", ("@Semver->int",), lambda value: kubernetes.semver_key(value)[2]),
    Function("url", ("string->URL",), kubernetes.url),
    Function("isURL", ("string->bool",), is_uri),
    Function("getScheme", ("@URL->string",), lambda value: kubernetes.url_parts(value).scheme),
    Function("getHost", ("@URL->string",), kubernetes.host),
    Function("getHostname", ("@URL->string",), lambda value: kubernetes.url_parts(value).hostname or ""),
    Function("getPort", ("@URL->string",), kubernetes.port),
    Function("getEscapedPath", ("@URL->string",), lambda value: kubernetes.url_parts(value).path),
    Function("getQuery", ("@URL->dyn",), kubernetes.query),
    Function("ip", ("string->IP", "@CIDR->IP"), kubernetes.ip),
    Function("isIP", ("string->bool",), _succeeds(kubernetes.ip)),
    Function("ip.isCanonical", ("string->bool",), lambda value: str(kubernetes.address(value)) == value),
    Function("family", ("@IP->int",), lambda value: kubernetes.ip_of(value).version),
    Function("isUnspecified", ("@IP->bool",), lambda value: kubernetes.ip_of(value).is_unspecified),
    Function("isLoopback", ("@IP->bool",), lambda value: kubernetes.ip_of(value).is_loopback),
    Function("isLinkLocalUnicast", ("@IP->bool",), lambda value: kubernetes.ip_of(value).is_link_local),
    Function("cidr", ("string->CIDR",), kubernetes.cidr),
    Function("isCIDR", ("string->bool",), _succeeds(kubernetes.cidr)),
    Function(
        "containsIP",
        ("@CIDR.IP->bool", "@CIDR.string->bool"),
        lambda net, address: kubernetes.ip_of(address) in kubernetes.network(net),
    ),
    Function("containsCIDR", ("@CIDR.CIDR->bool", "@CIDR.string->bool"), kubernetes.contains_cidr),
    Function("prefixLength", ("@CIDR->int",), lambda value: kubernetes.network(value).prefixlen),
    Function("masked", ("@CIDR->CIDR",), lambda value: {"#CIDR": str(kubernetes.network(value))}),
)
