"""Differences between two transcripts, in words short enough to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.contract.kit import Step

SHOWN = 30
_ABSENT = object()


def differences(want: list[Step], got: list[Step]) -> list[str]:
    """One line for each difference: the request, the path in its answer, what was recorded, what came."""
    lines = []
    for number in range(max(len(want), len(got))):
        wanted = want[number] if number < len(want) else None
        came = got[number] if number < len(got) else None
        name = _name(wanted or came or {})
        lines += [f"{number + 1}. {name} {line}" for line in _walk(wanted, came, "")]
    return lines


def _name(step: Step) -> str:
    return str(step.get("request") or step.get("kubectl") or step.get("note") or "")


def _walk(want: Any, got: Any, path: str) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted({*want, *got}, key=str):
            yield from _walk(want.get(key, _ABSENT), got.get(key, _ABSENT), f"{path}.{key}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for number, (one, other) in enumerate(zip(want, got, strict=True)):
            yield from _walk(one, other, f"{path}[{number}]")
    elif want != got or type(want) is not type(got):
        yield f"at {path}: recorded {_text(want)}, came {_text(got)}"


def _text(value: Any) -> str:
    return "nothing" if value is _ABSENT else json.dumps(value, ensure_ascii=False)[:1500]
