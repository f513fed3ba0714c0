"""The marks of a deletion on an object, and whether anything still holds it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pilotage.kube.wire import format_time

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json


def mark(obj: Json, now: float) -> None:
    """Its deletion has begun; without grace."""
    meta = obj["metadata"]
    text = format_time_of(now)
    if "deletionTimestamp" not in meta:
        if meta.get("generation"):
            meta["generation"] += 1
        meta["deletionTimestamp"] = text
    elif meta["deletionTimestamp"] > text:
        meta["deletionTimestamp"] = text
    meta["deletionGracePeriodSeconds"] = 0


def is_finished(obj: Json) -> bool:
    """Whether its deletion has begun and nothing holds it any more."""
    meta = obj["metadata"]
    return "deletionTimestamp" in meta and not is_held(obj)


def format_time_of(seconds: float) -> str:
    """A moment as the API writes it."""
    return format_time(dt.datetime.fromtimestamp(seconds, dt.UTC))


def is_held(obj: Json) -> bool:
    """Whether something keeps an object whose deletion has begun: finalizers, or a grace period."""
    meta = obj["metadata"]
    if meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return True
    return obj["kind"] == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))
