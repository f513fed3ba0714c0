"""Label and field selectors: parsed, printed and matched by the rules of k8s.io/apimachinery.

A selector is a list of requirements, all of which must hold; an empty one selects everything. Both kinds are immutable,
print in a canonical order (`parse(str(selector)) == selector`), and refuse what the API server would refuse.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from pilotage.kube.label_requirement import (
    INTEGER,
    SET_BASED,
    UNARY,
    Labels,
    Operator,
    Requirement,
    SelectorError,
    int64,
    key_problem,
    value_problem,
)

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldRequirement",
    "FieldSelector",
    "LabelSelector",
    "Operator",
    "Requirement",
    "SelectorError",
]


class LabelSelector(msgspec.Struct, frozen=True, dict=True):
    """Selects objects by their labels."""

    requirements: tuple[Requirement, ...] = ()
    """Kept sorted by key."""

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.requirements, key=lambda requirement: requirement.key))
        msgspec.structs.force_setattr(self, "requirements", ordered)

    @functools.cached_property
    def _tests(self) -> tuple[Callable[[Labels], bool], ...]:
        return tuple(requirement.compile() for requirement in self.requirements)

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        """Understand a selector as kubectl's `-l` takes it: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`."""
        return cls(tuple(_Parser(text).parse()))

    @classmethod
    def from_object(cls, selector: Mapping[str, Any] | None) -> "LabelSelector":
        """Understand a `LabelSelector` as in a manifest: an empty one selects everything, None selects nothing."""
        if selector is None:
            return NOTHING
        # A field that is ignored would make the selector wider than its author meant.
        unknown = sorted(set(selector) - {"matchLabels", "matchExpressions"})
        _check(not unknown, f"a label selector has no field {', '.join(unknown)}")
        labels = selector.get("matchLabels") or {}
        _check(isinstance(labels, Mapping), "matchLabels is not a mapping")
        requirements = [_from_object(f"matchLabels[{key!r}]", key, Operator.EQUALS, [labels[key]]) for key in labels]
        expressions = selector.get("matchExpressions") or []
        _check(isinstance(expressions, list | tuple), "matchExpressions is not a list")
        for i, expression in enumerate(expressions):
            path = f"matchExpressions[{i}]"
            _check(isinstance(expression, Mapping), f"{path} is not a mapping")
            name = expression.get("operator")
            known = isinstance(name, str) and name in _EXPRESSION_OPERATORS
            _check(known, f"{path}: {name!r} is none of {', '.join(_EXPRESSION_OPERATORS)}")
            values = expression.get("values") or []
            _check(isinstance(values, list | tuple), f"{path}.values is not a list")
            requirements.append(_from_object(path, expression.get("key"), _EXPRESSION_OPERATORS[name], values))
        return cls(tuple(requirements))

    def matches(self, labels: Labels) -> bool:
        """Whether an object with these labels is selected."""
        for test in self._tests:  # noqa: SIM110 (half the time of all(), and this runs for every object of a list)
            if not test(labels):
                return False
        return True

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = LabelSelector()

# Kubernetes prints its own "nothing" as the empty string, by which the API server understands everything. This one
# remains what it is when it is sent.
NOTHING = LabelSelector((Requirement("none", Operator.EXISTS), Requirement("none", Operator.DOES_NOT_EXIST)))

_EXPRESSION_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def _from_object(path: str, key: object, operator: Operator, values: Sequence[object]) -> Requirement:
    for text in (key, *values):
        _check(isinstance(text, str), f"{path}: {text!r} is not a string")
    try:
        return Requirement(str(key), operator, tuple(map(str, values)))
    except SelectorError as error:
        raise SelectorError(f"{path}: {error}") from None


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise SelectorError(problem)


# --- field selectors


class FieldRequirement(msgspec.Struct, frozen=True):
    """One condition on one field: that it equals the value, or that it does not."""

    field: str
    value: str
    equal: bool = True

    def __post_init__(self) -> None:
        if not _FIELD.fullmatch(self.field):
            raise SelectorError(f"{self.field!r} is not the name of a field")

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{self.value.translate(_ESCAPES)}"


class FieldSelector(msgspec.Struct, frozen=True):
    """Selects objects by their fields. Which fields there are is for the API to say, kind by kind."""

    requirements: tuple[FieldRequirement, ...] = ()
    """Kept sorted as they print."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "requirements", tuple(sorted(self.requirements, key=str)))

    @classmethod
    def parse(cls, text: str) -> "FieldSelector":
        r"""Understand `metadata.name=x,status.phase!=Running`; in a value, `\,` `\=` and `\\` stand for themselves."""
        requirements, at = [], 0
        while at < len(text):
            if text[at] == ",":
                at += 1
                continue
            if (name := _FIELD.match(text, at)) is None:
                raise _error("field", text, at, "expected the name of a field")
            if (operator := _FIELD_OPERATOR.match(text, name.end())) is None:
                raise _error("field", text, name.end(), "expected =, == or !=")
            value = _FIELD_VALUE.match(text, operator.end())
            assert value is not None  # it may be empty
            at = value.end()
            if at < len(text) and text[at] != ",":
                raise _error("field", text, at, r"in a value, write \, for a comma, \= for = and \\ for a backslash")
            unescaped = re.sub(r"\\(.)", r"\1", value[0])
            requirements.append(FieldRequirement(name[0], unescaped, equal=operator[0] != "!="))
        return cls(tuple(requirements))

    def matches(self, fields: Mapping[str, str] | Callable[[str], str | None]) -> bool:
        """Whether an object with these fields is selected; a field that is not there counts as empty."""
        lookup = fields if callable(fields) else fields.get
        return all(((lookup(r.field) or "") == r.value) is r.equal for r in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_FIELD = re.compile(r"[^\s,=!\\]+")
_FIELD_OPERATOR = re.compile(r"!=|==?")
_FIELD_VALUE = re.compile(r"(?:[^\\,=]|\\[\\,=])*")
_ESCAPES = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\="})


# --- label selectors as text


_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|$)")
_SYMBOLS = frozenset(["==", "!=", "=", "!", "(", ")", ",", "<", ">", ""])
_BINARY_OPERATORS = {operator.value: operator for operator in Operator if operator not in UNARY}


class _Parser:
    """Recursive descent, one token ahead. `in` and `notin` are operators after a key, and ordinary words elsewhere."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._advance(0)

    def parse(self) -> list[Requirement]:
        if not self._token:
            return []
        requirements = [self._requirement()]
        while self._skip(","):
            requirements.append(self._requirement())
        if self._token:
            self._fail("',' or the end")
        return requirements

    def _requirement(self) -> Requirement:
        negated = self._skip("!")
        key = self._word("a key", key_problem)
        if negated or self._token in (",", ""):
            return Requirement(key, Operator.DOES_NOT_EXIST if negated else Operator.EXISTS)
        operator = _BINARY_OPERATORS.get(self._token)
        if operator is None:
            self._fail(f"one of {' '.join(_BINARY_OPERATORS)}")
        self._advance(self._end)
        if operator in SET_BASED:
            return Requirement(key, operator, tuple(self._value_set()))
        at = self._at
        value = self._value()
        if operator in INTEGER and int64(value) is None:
            raise _error("label", self._text, at, f"{value!r} is not an integer")
        return Requirement(key, operator, (value,))

    def _value_set(self) -> list[str]:
        self._expect("(")
        values = [self._value()]
        while self._skip(","):
            values.append(self._value())
        self._expect(")")
        return values

    def _value(self) -> str:
        """A value, which is empty where the next thing is what may follow a value."""
        return "" if self._token in (",", ")", "") else self._word("a value", value_problem)

    def _word(self, what: str, problem_of: Callable[[str], str | None]) -> str:
        word = self._token
        if word in _SYMBOLS:
            self._fail(what)
        if problem := problem_of(word):
            raise _error("label", self._text, self._at, problem)
        self._advance(self._end)
        return word

    def _expect(self, symbol: str) -> None:
        if not self._skip(symbol):
            self._fail(repr(symbol))

    def _skip(self, symbol: str) -> bool:
        if self._token != symbol:
            return False
        self._advance(self._end)
        return True

    def _advance(self, start: int) -> None:
        token = _TOKEN.match(self._text, start)
        assert token is not None  # every character begins a token, and so does the end
        self._token, self._at, self._end = token[1], token.start(1), token.end(1)

    def _fail(self, expected: str) -> NoReturn:
        found = repr(self._token) if self._token else "the end"
        raise _error("label", self._text, self._at, f"found {found}, expected {expected}")


def _error(kind: str, text: str, at: int, problem: str) -> SelectorError:
    return SelectorError(f"{kind} selector {text!r}, position {at}: {problem}")
