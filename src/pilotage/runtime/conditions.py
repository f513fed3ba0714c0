"""Conditions, by the Kubernetes conventions. Pure functions on plain lists.

`lastTransitionTime` changes only when the status does, and a condition that would say the same is left untouched, so
that a steady state writes nothing.
"""

import datetime as dt
from collections.abc import Sequence

from pilotage.kube.wire import Json, format_time

REASON_CHARS_MAX = 1024
MESSAGE_CHARS_MAX = 32768
"""Bound of a text in a status, by the conventions and in our kinds: more is refused."""


def clipped(text: str, chars: int = MESSAGE_CHARS_MAX) -> str:
    """A text that fits into a status. Its beginning says most; what it quotes may be as long as others like."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def find_condition(conditions: Sequence[Json], type_: str) -> Json | None:
    """The condition of this type, if there is one."""
    return next((condition for condition in conditions if condition.get("type") == type_), None)


def set_condition(
    conditions: Sequence[Json],
    type_: str,
    *,
    status: bool | None,
    reason: str,
    message: str,
    generation: int,
    now: dt.datetime,
) -> list[Json] | None:
    """All conditions with this one set (status None is "Unknown"); None where nothing would change. Order is kept."""
    text = "Unknown" if status is None else str(status)
    wanted: Json = {
        "type": type_,
        "status": text,
        "reason": reason[:REASON_CHARS_MAX],
        "message": clipped(message),
        "observedGeneration": generation,
    }
    old = find_condition(conditions, type_)
    if old is not None and {**old, **wanted} == old:
        return None
    kept = old.get("lastTransitionTime") if old is not None and old.get("status") == text else None
    wanted["lastTransitionTime"] = kept or format_time(now)
    if old is None:
        return [*conditions, wanted]
    return [wanted if condition is old else condition for condition in conditions]
