"""Amounts such as ``500m`` and ``1.5Gi``, compared by what they mean. The API gives them back in another spelling."""

import re
from fractions import Fraction

_SYNTAX = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(n|u|m|k|Ki|[MGTPE]i?|[eE][+-]?[0-9]{1,3})?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_CHARS_MAX = 100


def amount(text: str | float) -> Fraction | None:
    """Numeric value of a quantity; None if the text is not one."""
    match = _SYNTAX.fullmatch(str(text)) if len(str(text)) <= _CHARS_MAX else None
    if match is None:
        return None
    number, suffix = Fraction(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * int(1024 ** _BINARY[suffix])
    exponent = _DECIMAL.get(suffix, 0) if suffix in _DECIMAL or not suffix else int(suffix[1:])
    return number * (Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent))


def normal(text: str | float) -> str:
    """One spelling for each amount; what is no quantity comes back as it is."""
    found = amount(text)
    return str(text) if found is None else str(found)
