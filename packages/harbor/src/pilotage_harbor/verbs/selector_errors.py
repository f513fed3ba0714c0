"""The errors in a selector, with the messages of apimachinery's parser.

`pilotage.kube.selectors` decides what a selector is; this is asked only about texts that it has refused.
"""

from __future__ import annotations

import re

from pilotage_harbor.apimachinery.field_errors import invalid
from pilotage_harbor.apimachinery.names import label_value, qualified_name

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_WORDS = ("in", "notin")
_OPERATORS = {*_WORDS, "=", "==", "!=", ">", "<"}
_SPECIAL = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_UNESCAPED = re.compile(r"\\(?P<bad>[^\\,=])")


class _Complaint(Exception):
    pass


def label_selector_problem(text: str) -> str:
    """Reason why a text is no label selector."""
    try:
        _Labels(text).parse()
    except _Complaint as complaint:
        return str(complaint)
    return f"unable to parse requirement: {text}"


def field_selector_problem(text: str) -> str:
    """Reason why a text is no field selector."""
    bad = _UNESCAPED.search(text)
    if bad is not None:
        return f"invalid field selector: invalid escape sequence: \\{bad['bad']}"
    for term in re.split(r"(?<!\\),", text):
        if "=" not in term:
            return f"invalid selector: '{text}'; can't understand '{term}'"
    return f"invalid selector: '{text}'"


class _Labels:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def parse(self) -> None:
        while True:
            word = self._peek()
            if word == "":
                return
            if word in _SPECIAL and word != "!":
                raise _Complaint(f"found '{word}', expected: !, identifier, or 'end of string'")
            try:
                self._requirement()
            except _Complaint as complaint:
                raise _Complaint(f"unable to parse requirement: {complaint}") from None
            word = self._next()
            if word == "":
                return
            if word != ",":
                raise _Complaint(f"found '{word}', expected: ',' or 'end of string'")
            after = self._peek()
            if after == "" or (after in _SPECIAL and after != "!"):
                raise _Complaint(f"found '{after}', expected: identifier after ','")

    def _requirement(self) -> None:
        key = self._next()
        if key == "!":
            key = self._next()
        if key == "" or key in _SPECIAL:
            raise _Complaint(f"found '{key}', expected: identifier")
        problems = qualified_name(key)
        if problems:
            raise _Complaint(f"<nil>: {invalid('', key, '; '.join(problems)).message}")
        if self._peek() in ("", ","):
            return
        operator = self._next()
        if operator not in _OPERATORS:
            raise _Complaint(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in _WORDS else [self._exact()]
        for number, value in enumerate(values):
            if operator in ("<", ">") and not re.fullmatch(r"[+-]?\d+", value):
                why = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _Complaint(f"values[0]: {invalid('', value, why).message}")
            problems = label_value(value)
            if problems:
                raise _Complaint(f"values[{number}][{key}]: {invalid('', value, '; '.join(problems)).message}")

    def _values(self) -> list[str]:
        word = self._next()
        if word != "(":
            raise _Complaint(f"found '{word}' expected: '('")
        if self._peek() == ")":
            self._next()
            raise _Complaint("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
        values: list[str] = []
        while True:
            word = self._next()
            if word not in _SPECIAL and word:
                values.append(word)
                after = self._peek()
                if after not in (",", ")"):
                    raise _Complaint(f"found '{after}', expected: ',' or ')'")
            elif word == ")":
                return values
            elif word != ",":
                raise _Complaint(f"found '{word}', expected: ',', or identifier")

    def _exact(self) -> str:
        if self._peek() in ("", ","):
            return ""
        word = self._next()
        if word in _SPECIAL:
            raise _Complaint(f"found '{word}', expected: identifier")
        return word

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word
