"""The messages of Go's encoding/json about JSON that it cannot read."""

from __future__ import annotations

import json
import re

TOO_LARGE = "json: cannot unmarshal number into Go value of type float64"


def go_words(body: bytes) -> str:
    """Problems of JSON, as Go would say it."""
    text = body.decode(errors="replace")
    try:
        json.loads(text)
    except RecursionError:
        return "invalid character '{' exceeded max depth"
    except json.JSONDecodeError as problem:
        at = problem.pos
        if at >= len(text.rstrip()):
            return "unexpected end of JSON input"
        byte = chr(body[len(text[:at].encode())]) if text.isascii() or at == 0 else text[at]
        character = "'" + byte.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return f"invalid character {character} {_where(problem.msg, text, at)}"
    except ValueError:  # a number of more digits than Python likes
        return TOO_LARGE
    if re.search(rb"[0-9][eE]\+?[0-9]{3}", body):
        return TOO_LARGE
    constant = re.search(r"[:\[,\s](-?)(NaN|Infinity)", text)
    if constant is not None:
        where = "in numeric literal" if constant[1] else "looking for beginning of value"
        return f"invalid character '{constant[2][0]}' {where}"
    return "invalid character in string literal"


def _where(problem: str, text: str, at: int) -> str:
    if "property name" in problem:
        return "looking for beginning of object key string"
    if "':' delimiter" in problem:
        return "after object key"
    if "',' delimiter" in problem:
        return "after object key:value pair" if _in_object(text, at) else "after array element"
    return "after top-level value" if "Extra data" in problem else "looking for beginning of value"


def _in_object(text: str, at: int) -> bool:
    """Whether the innermost bracket that is open at a place is one of an object."""
    depth = 0
    for character in reversed(text[:at]):
        if character in "}]":
            depth += 1
        elif character in "{[":
            if not depth:
                return character == "{"
            depth -= 1
    return True
