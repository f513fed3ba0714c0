"""The JSONPath of printer columns and scale subresources: fields, unions, indexes, wildcards, equality."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from pilotage_harbor.apimachinery.field_errors import go_json

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)              # .name, with \. for a dot in it
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[(?P<union>'[^']*'(?:\s*,\s*'[^']*')+)\]     # ['name','source']
      | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
      | \[\?\(\s*@(?P<field>(?:\.[\w/-]+)+)\s*(?P<op>==|!=)\s*(?P<q2>['"]?)(?P<value>.*?)(?P=q2)\s*\)\]""",
    re.VERBOSE,
)


class PathError(ValueError):
    """The path cannot be followed."""


@lru_cache(maxsize=1024)
def _parsed(path: str) -> tuple[dict[str, str | None], ...]:
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = text.removeprefix("$")
    steps, at = [], 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise PathError(f"{path!r} cannot be understood at {text[at:]!r}")
        steps.append(step.groupdict())
        at = step.end()
    return tuple(steps)


def find(path: str, obj: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """All values at a path (`.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`)."""
    values = [obj]
    for step in _parsed(path):
        values = [found for value in values for found in _follow(step, value)]
        if not values:
            break
    return values


def _follow(step: dict[str, str | None], value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    if step["union"] is not None:
        names = re.findall("'([^']*)'", step["union"])
        return [value[name] for name in names if name in value] if isinstance(value, dict) else []
    name = step["name"] if step["name"] is not None else step["key"]
    if name is not None:
        if name == "*":
            return list(value.values()) if isinstance(value, dict) else []
        name = re.sub(r"\\(.)", r"\1", name)
        return [value[name]] if isinstance(value, dict) and name in value else []
    if step["all"]:
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    if not isinstance(value, list):
        return []
    if step["index"] is not None:
        index = int(step["index"])
        return [value[index]] if -len(value) <= index < len(value) else []
    want, equal = step["value"], step["op"] == "=="
    return [each for each in value if any(as_text(found) == want for found in find(step["field"] or "", each)) is equal]


def as_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """A value as a column shows it."""
    if isinstance(value, str):
        return value
    return go_json(value)
