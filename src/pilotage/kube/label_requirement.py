"""One condition on one label: what it may say, how it prints, what it matches."""

import re
from collections.abc import Callable, Mapping
from enum import Enum

import msgspec

Labels = Mapping[str, str]


class SelectorError(ValueError):
    """A selector that cannot be understood; the message says where, and what was expected there."""


class Operator(Enum):
    """Comparison of a label's value; `==` means the same as `=`, and stays as it was written."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


SET_BASED = (Operator.IN, Operator.NOT_IN)
UNARY = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
INTEGER = (Operator.GREATER_THAN, Operator.LESS_THAN)


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label. Raises `SelectorError` if the key, or the values for this operator, are invalid."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    """Kept sorted, each once."""

    def __post_init__(self) -> None:
        problem = key_problem(self.key) or next(filter(None, map(value_problem, self.values)), None)
        if problem:
            raise SelectorError(problem)
        n = len(self.values)
        if self.operator in UNARY:
            wanted, fits = "no value", n == 0
        elif self.operator in SET_BASED:
            wanted, fits = "at least one value", n > 0
        else:
            wanted, fits = "one value", n == 1
        if not fits:
            raise SelectorError(f"{self.operator.value!r} takes {wanted}, not {n}")
        if self.operator in INTEGER and int64(self.values[0]) is None:
            raise SelectorError(f"{self.operator.value!r} compares integers, and {self.values[0]!r} is none")
        msgspec.structs.force_setattr(self, "values", tuple(sorted(set(self.values))))

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator.value} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator.value}{self.values[0]}"

    def compile(self) -> Callable[[Labels], bool]:
        """A function that says whether labels meet the requirement."""
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case Operator.EXISTS:
                return lambda labels: key in labels
            case Operator.DOES_NOT_EXIST:
                return lambda labels: key not in labels
            case Operator.GREATER_THAN:
                bound = int(self.values[0])
                return lambda labels: (number := int64(labels.get(key, ""))) is not None and number > bound
            case Operator.LESS_THAN:
                bound = int(self.values[0])
                return lambda labels: (number := int64(labels.get(key, ""))) is not None and number < bound
            case Operator.NOT_IN | Operator.NOT_EQUALS:
                return lambda labels: labels.get(key) not in values
            case _:
                return lambda labels: labels.get(key) in values


_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,63}")
_NAME_RULE = "at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def key_problem(key: str) -> str | None:
    """Why the text is not a label key (`name`, or `some.domain/name`); None if it is one."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return f"{key!r} is not a label key: the part before '/' must be a DNS subdomain in lower case"
    if not (len(name) <= 63 and _NAME.fullmatch(name)):
        return f"{key!r} is not a label key: {'the part after / ' if slash else 'it '}must be {_NAME_RULE}"
    return None


def value_problem(value: str) -> str | None:
    """Why the text is not a label value; None if it is one."""
    if value and not (len(value) <= 63 and _NAME.fullmatch(value)):
        return f"{value!r} is not a label value: it must be empty, or {_NAME_RULE}"
    return None


def int64(text: str) -> int | None:
    """The integer that a label value stands for in a comparison, as Go's ParseInt reads it; None if it is none."""
    if not _INTEGER_TEXT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
