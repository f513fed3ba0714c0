"""Resource quantities (`100m`, `1.5Gi`) in the canonical form in which the API gives them back."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

_SYNTAX = re.compile(r"([+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++))(m|n|u|[kMGTPE]i?|Ki|[eE][+-]?0*[0-9]{1,3})?")
# What a text of 1,000 digits, an exponent of three and nine places after the point need.
_CHARS_MAX = 1000
_EXACT = Context(prec=2100)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}


class Amount(NamedTuple):
    """A quantity to calculate with. Like Go's, a sum is written in the style of its first part that is not zero."""

    value: Decimal
    style: str = "decimal"

    @classmethod
    def of(cls, text: str | float) -> Amount:
        """The amount that a text stands for; 0 where it is no quantity."""
        parsed = _parsed(str(text))
        return cls(*parsed) if parsed is not None else ZERO

    def plus(self, other: Amount) -> Amount:
        """The sum."""
        return Amount(_EXACT.add(self.value, other.value), self.style if self.value else other.style)

    def minus(self, other: Amount) -> Amount:
        """The difference."""
        return Amount(_EXACT.subtract(self.value, other.value), self.style if self.value else other.style)

    def __str__(self) -> str:
        return _written(self.value.quantize(Decimal("1e-9"), ROUND_CEILING, context=_EXACT), self.style)


ZERO = Amount(Decimal(0))


def parse(text: str | float) -> Decimal | None:
    """The amount, or None if it is not a quantity."""
    parsed = _parsed(str(text))
    return parsed and parsed[0]


@lru_cache(maxsize=4096)
def canonical(text: str | float, *, milli: bool = False) -> str | float:
    """The quantity as the API writes it back; other text is unchanged. `milli`: rounded up to thousandths."""
    parsed = _parsed(str(text))
    if parsed is None:
        return text
    amount, style = parsed
    with localcontext(_EXACT):
        return _written(amount.quantize(Decimal("0.001") if milli else Decimal("1e-9"), ROUND_CEILING), style)


def _written(amount: Decimal, style: str) -> str:
    with localcontext(_EXACT):
        whole = amount == amount.to_integral_value()
        if style == "binary" and whole and abs(amount) >= 1024 and amount % 1024 == 0:
            return _binary(int(amount))
        return _decimal(amount, exponent=style == "exponent")


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Decimal, str] | None:
    match = _SYNTAX.fullmatch(text) if len(text) <= _CHARS_MAX else None
    if match is None:
        return None
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return _EXACT.multiply(number, 1024 ** _BINARY[suffix]), "binary"
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return _EXACT.scaleb(number, int(suffix[1:])), "exponent"
    return _EXACT.scaleb(number, _DECIMAL[suffix]), "decimal"


def _binary(amount: int) -> str:
    power = 0
    while power < 6 and amount and amount % 1024 == 0:
        amount //= 1024
        power += 1
    return f"{amount}{_BINARY_SUFFIX[power]}"


def _decimal(amount: Decimal, *, exponent: bool) -> str:
    if not amount:
        return "0"
    power = -9
    scaled = int(amount.scaleb(9))
    while scaled % 1000 == 0 and (power < 18 or exponent):
        scaled //= 1000
        power += 3
    if exponent:
        return f"{scaled}e{power}" if power else str(scaled)
    return f"{scaled}{_SUFFIX[power]}"
