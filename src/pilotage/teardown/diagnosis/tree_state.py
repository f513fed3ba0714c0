"""The state of an object in a few words, for the lines of a tree. Says no more than what was read of it shows."""

import datetime as dt
from typing import NamedTuple

from pilotage.kube import Json
from pilotage.kube.wire import parse_time
from pilotage.teardown.snapshot.fields import entries, mapping, span, text
from pilotage.teardown.snapshot.world import Item, Name, State, World

_CONDITIONS = ("Ready", "Available", "Programmed", "Accepted", "Valid", "Complete", "Healthy", "Established")


class DisplayState(NamedTuple):
    """The state of an object, and what there is to say about it."""

    state: State
    text: str


def display_state(world: World, name: Name, item: Item | None) -> DisplayState:
    """State of an object; of one that was not seen, whether it is not there or could not be read."""
    if item is None:
        problem = world.problem(name.group, name.kind, name.namespace)
        return DisplayState(State.UNKNOWN, f"unknown: {problem}") if problem else DisplayState(State.GONE, "not there")
    words = ready(item)
    if not item.terminating:
        return DisplayState(State.PRESENT, words)
    kept = f"finalizers: {', '.join(item.meta.finalizers)}" if item.meta.finalizers else ""
    return DisplayState(State.TERMINATING, "; ".join(filter(None, (_terminating(world.now, item), kept, words))))


def _terminating(now: dt.datetime, item: Item) -> str:
    try:
        until = (parse_time(item.meta.deletion_timestamp) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return "terminating"
    # The timestamp of a pod is the end of its grace period, that of all else the moment of the delete.
    since = item.meta.deletion_grace_period_seconds - until
    words = f"terminating for {span(since)}" if since >= 0 else "terminating"
    return f"{words}, {span(until)} of grace left" if until > 0 else words


def ready(item: Item) -> str:
    """Whether it does its work, where its status says so; empty where that was not read, or is not said."""
    if not item.full:
        return ""
    body = item.read()
    spec, status = mapping(body, "spec"), mapping(body, "status")
    if not status:
        return ""
    match item.group_kind:
        case ("", "Pod"):
            return _pod(status)
        case ("apps", "DaemonSet"):
            return _of(status.get("numberReady"), status.get("desiredNumberScheduled"))
        case _:
            if "replicas" in status and ("replicas" in spec or "readyReplicas" in status):
                return _of(status.get("readyReplicas", 0), spec.get("replicas", 1))
            phase = status.get("phase")
            return phase if isinstance(phase, str) else _condition(status)


def _pod(status: Json) -> str:
    phase = status.get("phase")
    containers = entries(status, "containerStatuses")
    up = sum(each.get("ready") is True for each in containers)
    words = [phase] if isinstance(phase, str) else []
    if phase == "Running":
        words.append(_of(up, len(containers)))
    for each in containers:
        reason = text(each, "state", "waiting", "reason")
        if reason and reason not in words:
            words.append(reason)
    return ", ".join(filter(None, words))


def _condition(status: Json) -> str:
    conditions = entries(status, "conditions")
    for name in _CONDITIONS:
        for condition in conditions:
            if condition.get("type") == name:
                reason = text(condition, "reason")
                why = f": {reason}" if reason else ""
                return name.lower() if condition.get("status") == "True" else f"not {name.lower()}{why}"
    return ""


def _of(part: object, whole: object) -> str:
    return f"{part} of {whole} ready" if isinstance(part, int) and isinstance(whole, int) else ""
