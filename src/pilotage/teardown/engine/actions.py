"""Execution of each act through the API, and the observation that its answer gives."""

import datetime as dt

import msgspec

from pilotage.kube import (
    Absent,
    ApiError,
    Client,
    Conflict,
    Foreign,
    Json,
    Object,
    Patch,
    Propagation,
    Throttled,
    merge_patch,
)
from pilotage.kube.patches import without_finalizer
from pilotage.teardown.engine.decision import Act, Action, Refusal
from pilotage.teardown.planning.ledger import HOLD, Entry

RETRY_SECONDS = (0.2, 20.0)
"""The first and the longest pause after a refusal."""


class ObjectGone(Exception):
    """The object of an action is gone. `foreign`: another object has its name."""

    def __init__(self, *, foreign: bool) -> None:
        super().__init__()
        self.foreign = foreign


async def perform(client: Client, action: Action) -> Object | None:
    """Do it. Returns the object as it is then, or None if it is gone; raises `Gone` if it was, or an ApiError.

    Nothing is done to another uid than that of the entry: deletes carry it as a precondition, patches are made of a
    read that showed it, and carry its version.
    """
    entry = action.entry
    try:
        if action.act in (Act.DELETE, Act.REDRIVE):
            background = Propagation.BACKGROUND  # the second time, too: see kubernetes' rule for a lost foreground
            return await client.delete(entry.resource, entry.key, uid=entry.uid, propagation=background)
        return await _change(client, action)
    except Absent as error:
        raise ObjectGone(foreign=False) from error
    except Foreign as error:
        raise ObjectGone(foreign=True) from error


async def _change(client: Client, action: Action) -> Object:
    entry = action.entry
    found = await client.get(entry.resource, entry.key, metadata_only=True)
    if found.meta.uid != entry.uid:
        raise ObjectGone(foreign=True)
    patch = _patch(action.act, found, entry)
    return found if patch is None else await client.patch(entry.resource, entry.key, patch)


def _patch(act: Act, found: Object, entry: Entry) -> Patch | None:
    """The patch of an act; None: nothing is to change. Nothing can be put on an object whose deletion has begun."""
    meta = found.meta
    if act is Act.HOLD:
        if meta.terminating or HOLD in meta.finalizers:
            return None
        return _change_metadata(found, {"finalizers": [*meta.finalizers, HOLD]})
    if act is Act.RELEASE:
        return without_finalizer(found, HOLD)
    kept = [owner for owner in meta.owner_references if owner.uid not in entry.disown]
    if len(kept) == len(meta.owner_references):
        return None
    return _change_metadata(found, {"ownerReferences": [msgspec.to_builtins(owner) for owner in kept] or None})


def _change_metadata(found: Object, changes: Json) -> Patch:
    """Patch of the metadata of exactly this object at exactly this version."""
    return merge_patch({"metadata": changes | {"uid": found.meta.uid}}, resource_version=found.meta.resource_version)


def refusal(action: Action, error: ApiError, last: Refusal | None, now: dt.datetime) -> Refusal:
    """The refusal that an error stands for, and when the next attempt may be made. Pauses double, up to a bound."""
    first, longest = RETRY_SECONDS
    begun = last.first if last is not None and last.act is action.act else now
    pause = min(longest, max(first, (now - begun).total_seconds()))
    if isinstance(error, Throttled) and error.retry_after:
        pause = max(pause, error.retry_after)
    if isinstance(error, Conflict) and action.act not in (Act.DELETE, Act.REDRIVE):
        pause = first  # somebody else wrote; the next attempt reads again
    return Refusal(action.act, error.error_class, error.message, begun, now + dt.timedelta(seconds=pause))
