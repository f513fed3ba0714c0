"""Field management: who owns which field of an object, kept at every write.

`track_update` belongs after defaults are set and before admission and the strategy's `prepare_*`: what these add is
nobody's. The same holds for what `apply` returns: defaults come after it, and are nobody's either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.patching import entries
from pilotage_harbor.patching.apply import ApplyConflict, apply
from pilotage_harbor.patching.changes import changes
from pilotage_harbor.patching.entries import Managers, Owned
from pilotage_harbor.patching.fieldset import union
from pilotage_harbor.patching.shape import shape_of

if TYPE_CHECKING:
    from pilotage_harbor.patching.values import Json, Value
    from pilotage_harbor.schema.node import SchemaNode

__all__ = ["ApplyConflict", "apply", "keep_times", "manager_name", "track_update"]

NAME_MAX = 128


def manager_name(field_manager: str, user_agent: str) -> str:
    """The name under which a request owns fields: the one it gives, or the beginning of its user agent."""
    if field_manager:
        return field_manager
    name = "".join(filter(str.isprintable, user_agent.partition("/")[0]))
    return name.encode()[:NAME_MAX].decode(errors="ignore")


def track_update(
    obj: Json,
    old: Json | None,
    *,
    schema: SchemaNode,
    manager: str,
    api_version: str,
    now: str | None,
    operation: str = "Update",
    subresource: str = "",
    reset: tuple[str, ...] = (),
) -> None:
    """Set the managedFields of an object that was created, updated or patched. Nothing else of it is changed.

    The manager gets what it added or changed, all others lose that, and what is gone is nobody's. Fields at or below a
    path of `reset` are not tracked: the write has no effect on them. An object that has no managedFields does not get
    any by an update: its owner asked for that, by an update that set them to an empty list.
    """
    meta = obj["metadata"]
    sent = meta.pop("managedFields", None)
    live = None if old is None else old["metadata"].get("managedFields")
    managers = _known(sent, live, subresource)
    if not managers and old is not None:
        return
    changed, gone = changes(shape_of(schema), old, obj, reset)
    if changed or gone:
        managers = entries.taken(managers, changed, gone)
        if changed:
            self = entries.identity(manager, operation, api_version, subresource)
            before = managers.get(self)
            fields = changed if before is None else union(changed, before.fields)
            managers[self] = Owned(fields, api_version, now)
            managers = entries.capped(managers)
    elif sent is None or subresource or sent is live or sent == live:
        if live:
            meta["managedFields"] = live
        return
    if managers:
        meta["managedFields"] = entries.write(managers)


def _known(sent: Value, live: Value, subresource: str) -> Managers:
    """The managers before the write: those that the client sent, if they make sense, or else those of the object."""
    if sent is None or subresource or sent == live:
        return entries.read(live)
    if sent == [] or sent == [{}]:
        return {}
    try:
        return entries.read(sent, trusted=False) or entries.read(live)
    except (ValueError, TypeError, AttributeError):
        return entries.read(live)


def keep_times(obj: Json, old: Json) -> None:
    """Put the old times back if a write changed nothing but times in managedFields: then nothing changed."""
    meta, old_meta = obj["metadata"], old["metadata"]
    mine, before = meta.get("managedFields"), old_meta.get("managedFields")
    if not mine or not before or len(mine) != len(before) or mine == before:
        return
    if any({**one, "time": ""} != {**other, "time": ""} for one, other in zip(mine, before, strict=True)):
        return
    if {**meta, "managedFields": None} == {**old_meta, "managedFields": None} and all(
        obj.get(name) == old.get(name) for name in {*obj, *old} - {"metadata"}
    ):
        meta["managedFields"] = before
