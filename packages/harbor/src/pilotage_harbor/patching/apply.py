"""Server-side apply: a manager says what it wants, and owns what it says.

What it said last time and no longer says goes, unless somebody else owns it. What others own it may not change, unless
it insists (`force`), or unless it says the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.patching import entries
from pilotage_harbor.patching.changes import changes, strip_identity, tracked
from pilotage_harbor.patching.compare import difference as compare
from pilotage_harbor.patching.entries import FieldManager, Managers, Owned
from pilotage_harbor.patching.errors import PatchError
from pilotage_harbor.patching.fieldset import (
    Path,
    Tree,
    difference,
    has,
    intersection,
    path_text,
    paths,
    union,
    with_named_fields,
)
from pilotage_harbor.patching.shape import OwnershipShape, shape_of
from pilotage_harbor.patching.values import Json, copied
from pilotage_harbor.patching.walk import fields_of, go_nulls, merged, nulled, problems, removed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.schema.node import SchemaNode

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"
_ANNOTATIONS_MAX = 256 * 1024
_KUBECTL = "kubectl"

Conflict = tuple[FieldManager, Path]


class ApplyConflict(StatusError):
    """409: others own fields that the configuration would change. `conflicts` names them, with their owners."""

    def __init__(self, conflicts: Iterable[Conflict]) -> None:
        self.conflicts = sorted(conflicts, key=lambda conflict: conflict[0].sort_key)
        causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path_text(path)}
            for manager, path in self.conflicts
        ]
        super().__init__(409, "Conflict", _conflict_message(self.conflicts), details={"causes": causes})


def _conflict_message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path_text(path)}"
    lines: list[str] = []
    current = None
    for manager, path in conflicts:
        if manager != current:
            lines.append(f"conflicts with {manager}:")
            current = manager
        lines.append(f"- {path_text(path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def apply(
    live: Json | None,
    config: Json,
    *,
    schema: SchemaNode,
    manager: str,
    api_version: str,
    now: str,
    force: bool = False,
    subresource: str = "",
    reset: tuple[str, ...] = (),
) -> Json:
    """The object after the configuration was applied to it, with its managedFields. `live` is None for a new object.

    Neither input is changed, and the result shares nothing with them. If nothing changed but ownership, no time moves.

    Raises:
        ApplyConflict: others own what would change.
        PatchError: the configuration is for another version, has managedFields (400), or does not fit the schema (500).
    """
    shape = shape_of(schema)
    _check(shape, config, api_version)
    self = entries.identity(manager, "Apply", api_version, subresource)
    step = _Step(shape, self, api_version, now, subresource, reset)
    base: Json = {} if live is None else live
    managers = entries.read(base.get("metadata", {}).get("managedFields"))
    if not managers and live is not None:
        managers = step.before_first_apply(live)
    try:
        result, managers = step.applied(base, config, managers, force=force)
    except ApplyConflict as conflict:
        if manager != _KUBECTL:
            raise
        allowed = _allowed(shape, base, api_version)
        rest = [(owner, path) for owner, path in conflict.conflicts if allowed is None or not has(allowed, path)]
        if rest:
            raise ApplyConflict(rest) from None
        result, managers = step.applied(base, config, managers, force=True)
    if shape.go:
        result = go_nulls(shape, result)
    meta = result["metadata"] = dict(result.get("metadata") or {})
    if manager == _KUBECTL:
        _set_last_applied(meta, config)
    meta.pop("managedFields", None)
    if managers:
        meta["managedFields"] = entries.write(managers)
    separate: Json = copied(result)
    return separate


def _check(shape: OwnershipShape, config: Json, api_version: str) -> None:
    version, kind = config.get("apiVersion", ""), config.get("kind", "")
    meta = config.get("metadata") or {}
    group, _, name = version.rpartition("/")
    gvk = f"{group}/{name}, Kind={kind}"
    if version != api_version:
        raise PatchError(f"invalid object type: {gvk}")
    if meta.get("managedFields") is not None:
        raise PatchError("metadata.managedFields must be nil")
    found = problems(shape, config)
    if found:
        listed = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
        which = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {gvk}"
        raise PatchError(f"failed to create typed patch object ({which}): {listed}", 500)


class _Step:
    """One apply, with what stays the same when it is tried again."""

    def __init__(
        self,
        shape: OwnershipShape,
        manager: FieldManager,
        api_version: str,
        now: str,
        subresource: str,
        reset: tuple[str, ...],
    ) -> None:
        self.shape = shape
        self.manager = manager
        self.api_version = api_version
        self.now = now
        self.subresource = subresource
        self.reset = reset

    def before_first_apply(self, live: Json) -> Managers:
        """An object whose fields nobody tracked: all of them belong to someone who is not named."""
        found, _ = changes(self.shape, None, live, self.reset)
        someone = entries.identity(BEFORE_FIRST_APPLY, "Update", self.api_version, self.subresource)
        return {someone: Owned(found, self.api_version, self.now)} if found else {}

    def applied(self, live: Json, config: Json, managers: Managers, *, force: bool) -> tuple[Json, Managers]:
        """The object and its managers after the configuration was merged in."""
        claimed = tracked(fields_of(self.shape, config), self.reset)
        last = managers.get(self.manager)
        managers = {**managers, self.manager: Owned(claimed, self.api_version, last.time if last else None)}
        result = merged(self.shape, live, config)
        if last is not None and last.fields:
            result = self._pruned(result, managers, last.fields)
        changed, gone = changes(self.shape, live, result, self.reset)
        changed = union(changed, tracked(nulled(self.shape, live, config), self.reset))
        if not force:
            conflicts = [
                (owner, path)
                for owner, other in managers.items()
                if owner != self.manager
                for path in paths(intersection(other.fields, changed))
            ]
            if conflicts:
                raise ApplyConflict(conflicts)
        managers = entries.taken(managers, changed, gone, keep=self.manager)
        managers.pop(self.manager, None)
        if result == live:
            result = dict(live)
            time = last.time if last else None
        else:
            time = self.now
        mine = strip_identity(claimed)
        if mine:
            managers[self.manager] = Owned(mine, self.api_version, time)
        return result, managers

    def _pruned(self, result: Json, managers: Managers, last: Tree) -> Json:
        """Object without the fields that this manager applied last time, does not apply now, and no other owns."""
        shape = self.shape
        last = with_named_fields(last, shape)
        everyone: Tree = {}
        for owner in managers.values():
            everyone = union(everyone, owner.fields)
        complete = with_named_fields(fields_of(shape, result), shape)
        # First all of it goes; then what somebody owns comes back; then what was not this manager's to begin with.
        rest = with_named_fields(fields_of(shape, removed(shape, result, last) or {}), shape)
        unowned = difference(complete, union(rest, with_named_fields(everyone, shape)))
        rest = with_named_fields(fields_of(shape, removed(shape, result, unowned) or {}), shape)
        pruned = removed(shape, result, intersection(difference(complete, rest), last))
        return pruned or {}


def _allowed(shape: OwnershipShape, live: Json, api_version: str) -> Tree | None:
    """Fields that client-side `kubectl apply` owned: those of its annotation, if it still matches the object."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last = json.loads(text) if text else None
    except ValueError:
        return None
    if type(last) is not dict or last.get("apiVersion") != api_version or problems(shape, last):
        return None
    changed, gone = compare(shape, last, live)
    return difference(difference(fields_of(shape, last), changed or {}), gone or {})


def _set_last_applied(meta: Json, config: Json) -> None:
    """Keep the annotation of client-side `kubectl apply` current, so that one can go back to it."""
    annotations = meta.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    config_meta = dict(config.get("metadata") or {})
    if config_meta.get("annotations") is not None:
        config_meta["annotations"] = {k: v for k, v in config_meta["annotations"].items() if k != LAST_APPLIED}
    text = json.dumps({**config, "metadata": config_meta}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") + "\n"
    meta["annotations"] = {**annotations, LAST_APPLIED: text}
    if sum(len(name.encode()) + len(value.encode()) for name, value in meta["annotations"].items()) > _ANNOTATIONS_MAX:
        del meta["annotations"][LAST_APPLIED]
