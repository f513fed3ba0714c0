"""Complaints of cel-cpp in the words of cel-go, which are kube-apiserver's."""

from __future__ import annotations

import re

_ISSUE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_SELECT = re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation")
_STRUCT = re.compile(r" not found in struct '[^']*'$")
_UNDECLARED = re.compile(r"undeclared reference to '(\w+)\.[\w.]*'")
_OVERLOAD = re.compile(r"(found no matching overload for '(\w+)' applied to ')\((.*)\)'")
NOT_SELECTABLE = "Applying SELECT to non-message type"
"""Words of cel-cpp when a field is selected from what has none; cel-go names the field."""
_STATUS = re.compile(r"^[A-Z_]+: ")
_EVALUATION = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), "no such key: {}"),
    (re.compile(r"Index error: index=(-?\d+)"), "index out of bounds: {}"),
    (re.compile(r"(?:divide|modulus) by zero"), "division by zero"),
    (re.compile(r"No matching overloads found"), "no such overload"),
    (re.compile(r"cannot convert string to (int|uint|double)"), "type conversion error from 'string' to '{}'"),
    (re.compile(r"String to (Timestamp|Duration) conv"), "type conversion error from 'string' to 'google.protobuf.{}'"),
    (re.compile(r"^Type( conversion error .*)"), "type{}"),
    (re.compile(r'No value with name "(.*?)" found in Activation'), "no such attribute(s): {}"),
)


def compiler_words(said: str, text: str, shift: int = 0) -> str:
    """The compiler's complaints about a text that begins at column `shift`: each with its line and a mark below it."""
    lines = text.split("\n")
    issues = []
    for row, column, words in _ISSUE.findall(said):
        at = int(column) - (shift if row == "1" else 0)
        line = lines[int(row) - 1] if int(row) <= len(lines) else ""
        words = _STRUCT.sub("", words.removesuffix(" [INVALID_ARGUMENT]"))
        words = _SELECT.sub(r"type \1 does not support field selection", words)
        words = words.replace("google.protobuf.Timestamp", "timestamp").replace("google.protobuf.Duration", "duration")
        words = words.replace("has() argument must be a field selection", "invalid argument to has() macro")
        if (undeclared := _UNDECLARED.search(words)) and line[: at - 1].endswith(undeclared[1]):
            at -= len(undeclared[1])
            words = _UNDECLARED.sub(r"undeclared reference to '\1'", words)
        words = _as_method(words, line[: at - 1])
        issues.append(f"ERROR: <input>:{row}:{at}: {words}\n | {line}\n | {'.' * (at - 1)}^")
    return "\n".join(issues) or said


def _as_method(words: str, before: str) -> str:
    """cel-go shows a call of a method as ``target.(arguments)``, cel-cpp has the target among the arguments."""
    found = _OVERLOAD.fullmatch(words)
    if found is None or not before.endswith(f".{found.group(2)}"):
        return words
    depth = 0
    types = found.group(3)
    for at, char in enumerate(types):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            return f"{found.group(1)}{types[:at]}.({types[at + 2 :]})'"
    return f"{found.group(1)}{types}.()'"


def evaluation_words(said: str) -> str:
    """Problem of an evaluation, in the words of cel-go."""
    words = _STATUS.sub("", said)
    for pattern, wording in _EVALUATION:
        if found := pattern.search(words):
            return wording.format(*found.groups())
    return words
