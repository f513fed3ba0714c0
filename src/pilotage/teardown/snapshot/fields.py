"""Reading decoded objects that may hold anything: a wrong type counts as a field that is not there.

What comes from a cluster is well-formed, what comes from a dump or from a kind without a schema need not be. Code that
explains must not fall over either.
"""

import datetime as dt
from typing import Any

from pilotage.kube import Json
from pilotage.kube.selectors import LabelSelector, SelectorError
from pilotage.kube.wire import parse_time
from pilotage.teardown.snapshot.world import World


def dig(value: object, *path: str) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """The value at a path of field names, or None."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text(value: object, *path: str) -> str:
    """The text at a path, or an empty one."""
    found = dig(value, *path)
    return found if isinstance(found, str) else ""


def number(value: object, *path: str, default: int = 0) -> int:
    """The whole number at a path, or the default."""
    found = dig(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def mapping(value: object, *path: str) -> Json:
    """The object at a path, or an empty one."""
    found = dig(value, *path)
    return found if isinstance(found, dict) else {}


def entries(value: object, *path: str) -> list[Json]:
    """The objects in the list at a path; whatever else is in it is left out."""
    found = dig(value, *path)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def texts(value: object, *path: str) -> list[str]:
    """The texts in the list at a path; whatever else is in it is left out."""
    found = dig(value, *path)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []


def moment(value: object, *path: str) -> dt.datetime | None:
    """The time at a path, or None where there is none that can be read."""
    try:
        found = parse_time(text(value, *path))
    except ValueError:
        return None
    if not 1970 <= found.year < 9999:  # the zero of Go stands for no time at all
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def seconds_since(now: dt.datetime, when: dt.datetime | str | None) -> float | None:
    """Seconds since a time; negative for the future. None where the time cannot be parsed."""
    if isinstance(when, str):
        when = moment(when)
    return None if when is None else (now - when).total_seconds()


def span(seconds: float) -> str:
    """A duration as a person says it: ``12 s``, ``14m``, ``2h``, ``3d``."""
    whole = int(abs(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 2 * 3600:
        return f"{whole // 60}m"
    if whole < 48 * 3600:
        return f"{whole // 3600}h"
    return f"{whole // 86400}d"


def labels_at(body: object, *path: str) -> dict[str, str]:
    """The map of texts at a path."""
    return {key: value for key, value in mapping(body, *path).items() if isinstance(value, str)}


def condition(body: object, type_: str) -> Json:
    """The status condition of a type, or an empty object."""
    return next((each for each in entries(body, "status", "conditions") if each.get("type") == type_), {})


def since(world: World, moment: str) -> str:
    """``, since 14m`` or nothing where the time is not known."""
    seconds = seconds_since(world.now, moment) if moment else None
    return "" if seconds is None else f", since {span(seconds)}"


def counted(count: int, one: str, many: str = "") -> str:
    """``1 pod``, ``2 pods``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def few(names: list[str], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def selects(selector: object, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector selects these labels; one that is not there or not valid selects nothing."""
    try:
        return LabelSelector.from_object(selector if isinstance(selector, dict) else None).matches(labels)
    except (SelectorError, TypeError):
        return False


def selects_plainly(wanted: dict[str, str], labels: dict[str, str]) -> bool:
    """Whether a plain map of labels, as Services have it, selects these; an empty one selects nothing."""
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())
