"""DELETE: what it takes for an object to go, and what keeps it.

An object goes at once unless something holds it: finalizers (its own, or those that foreground and orphan propagation
put there), or, for Pods, a grace period. Then the delete only marks it, and whoever takes the last hold lets it go.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pilotage.kube.wire import parse_time
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import dry_run, integer, telling
from pilotage_harbor.core.admission import AdmissionAttributes
from pilotage_harbor.core.deletion import format_time_of, is_finished, is_held, mark
from pilotage_harbor.core.objects import from_entry, to_entry
from pilotage_harbor.verbs import bodies

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import StoredObject

_ORPHANS = (
    "child pods are preserved by default when {plural} are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)
TRIES_MAX = 5
"""Number of times a write starts over because the object has changed while admission was asked."""
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_OWN_PRECONDITIONS = ("namespaces", "customresourcedefinitions.apiextensions.k8s.io")
_POLICIES = ("Orphan", "Background", "Foreground")


class DeleteOptions:
    """DeleteOptions, from the body or else from the query; raises 422 for those that make no sense."""

    def __init__(self, call: Call) -> None:
        self.body: Json = {}
        if call.body:
            self.body, _ = bodies.parse_untrusted(call)
            if self.body.get("kind", "DeleteOptions") != "DeleteOptions":
                said = (
                    f'no kind "{self.body.get("kind")}" is registered for version "{self.body.get("apiVersion", "")}"'
                )
                raise errors.bad_request(f'{said} in scheme "pkg/runtime/scheme.go:111"')
        grace = self.body.get("gracePeriodSeconds")
        policy = self.body.get("propagationPolicy")
        if not call.body:
            grace, policy = integer(call, "gracePeriodSeconds"), call.option("propagationPolicy") or None
        self.grace: int | None = max(grace, 0) if isinstance(grace, int) and grace >= 0 else (1 if grace else None)
        self.policy: str | None = policy
        self.orphans: Any = self.body.get("orphanDependents")
        if not call.body and call.option("orphanDependents"):
            self.orphans = call.flag("orphanDependents")
        self.dry_run = dry_run(call, self.body)
        preconditions = self.body.get("preconditions") or {}
        if not isinstance(preconditions, dict):
            raise errors.bad_request("preconditions must be an object")
        self.uid: str | None = preconditions.get("uid")
        self.version: str | None = preconditions.get("resourceVersion")
        _refuse_invalid_options(self)


async def options_of(core: Core, call: Call) -> DeleteOptions:
    """The options of a DELETE."""
    return await core.offload(call.user, bodies.weight(call), partial(DeleteOptions, call))


async def delete(core: Core, scope: Scope) -> tuple[StoredObject, bool, list[str]]:
    """Delete one object; what it is now, or was last, whether it is gone, and what its sender should be told."""
    kind = scope.kind
    options = await options_of(core, scope.call)
    entry = core.store.get(kind.storage, scope.namespace, scope.name)
    if entry is None:
        raise errors.not_found(kind.group, kind.plural, scope.name)
    warnings: list[str] = []
    if kind.strategy.default_propagation == "orphan" and options.policy is None and options.orphans is None:
        warnings.append(_ORPHANS.format(plural=kind.plural))
    with telling(warnings):
        return *await delete_entry(core, scope, entry, options, warnings), warnings


async def delete_entry(
    core: Core, scope: Scope, entry: StoredObject, options: DeleteOptions, warnings: list[str]
) -> tuple[StoredObject, bool]:
    """The same for an object that was found; `warnings` grows by what admission says."""
    return delete_admitted(core, scope, await _admitted(core, scope, entry, options, warnings), options)


def delete_admitted(core: Core, scope: Scope, entry: StoredObject, options: DeleteOptions) -> tuple[StoredObject, bool]:
    """The same for an object that may go, as far as admission is concerned."""
    kind = scope.kind
    check_preconditions(kind, entry, options)
    obj, before = from_entry(kind, entry), from_entry(kind, entry)
    graceful = not core.mark_for_deletion(kind, obj) and kind.strategy.grace_seconds is not None
    if graceful and not _mark_gracefully(core, kind, obj, options):
        return entry, False
    _set_propagation(kind, obj, options)
    if obj["metadata"].get("finalizers") and not obj["metadata"].get("deletionGracePeriodSeconds"):
        mark(obj, core.now())
    if is_finished(obj) or not is_held(obj):
        last = obj if graceful else {**before, "metadata": {**before["metadata"]}}
        return (entry if options.dry_run else core.remove(kind, last)), True
    if obj == before:
        return entry, False
    if options.dry_run:
        return to_entry(kind, obj, entry.version), False
    return core.put(kind, obj), False


async def _admitted(
    core: Core, scope: Scope, entry: StoredObject, options: DeleteOptions, warnings: list[str]
) -> StoredObject:
    """The object as admission has seen it, at its newest: where it changed meanwhile, admission is asked again."""
    kind = scope.kind
    for _ in range(TRIES_MAX):
        check_preconditions(kind, entry, options)
        old = from_entry(kind, entry)
        attributes = AdmissionAttributes("DELETE", scope, None, old, dry_run=options.dry_run, options=options.body)
        warnings += await core.admission.mutate(attributes)
        warnings += await core.admission.validate(attributes)
        current = core.store.get(kind.storage, entry.namespace, entry.name)
        if current is None or current.uid != entry.uid:
            raise errors.not_found(kind.group, kind.plural, scope.name)
        if current is entry:
            return entry
        entry = current
    raise errors.conflict(kind.group, kind.plural, scope.name, errors.MODIFIED)


def _mark_gracefully(core: Core, kind: Kind, obj: Json, options: DeleteOptions) -> bool:
    """Set or shorten the grace period of a Pod. False: it is under way already, and nothing changes."""
    meta = obj["metadata"]
    grace = _grace(kind, obj, options)
    if "deletionTimestamp" not in meta:
        if meta.get("generation"):
            meta["generation"] += 1
        meta["deletionTimestamp"] = format_time_of(core.now() + grace)
        meta["deletionGracePeriodSeconds"] = grace
        return True
    current = meta.get("deletionGracePeriodSeconds", 0)
    if not current:
        return True
    if options.grace is None or grace >= current:
        return False
    moment = parse_time(meta["deletionTimestamp"]).timestamp() - current + grace
    if moment < core.now():
        moment, grace = core.now(), 1 if grace else 0
    meta["deletionTimestamp"] = format_time_of(moment)
    meta["deletionGracePeriodSeconds"] = grace
    return True


def _grace(kind: Kind, obj: Json, options: DeleteOptions) -> int:
    """Grace period of a Pod: as asked, else as it says; none if it never ran."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    grace = options.grace
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", kind.strategy.grace_seconds or 0)
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        grace = 0
    return int(grace)


def _set_propagation(kind: Kind, obj: Json, options: DeleteOptions) -> None:
    """Put the finalizer of the propagation there, and only that one."""
    meta = obj["metadata"]
    held = meta.get("finalizers") or []
    wanted = [each for each in held if each not in (ORPHAN, FOREGROUND)]
    policy = options.policy
    if policy is None and options.orphans is not None:
        policy = "Orphan" if options.orphans else "Background"
    if policy is None:
        if ORPHAN in held or FOREGROUND in held:
            policy = "Orphan" if ORPHAN in held else "Foreground"
        elif kind.strategy.default_propagation == "orphan":
            policy = "Orphan"
    if policy in ("Orphan", "Foreground"):
        wanted.append(ORPHAN if policy == "Orphan" else FOREGROUND)
    if set(wanted) != set(held):
        meta["finalizers"] = wanted
        if not wanted:
            del meta["finalizers"]


def check_preconditions(kind: Kind, entry: StoredObject, options: DeleteOptions) -> None:
    """409 unless it is the object that is meant, at the version that is meant."""
    if options.uid is not None and options.uid != entry.uid and kind.storage in _OWN_PRECONDITIONS:
        why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {entry.uid}"
        raise errors.conflict(kind.group, kind.plural, entry.name, why)
    if options.uid is not None and options.uid != entry.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({entry.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict(kind.group, kind.kind, entry.name, why)
    if options.version is not None and options.version != str(entry.version):
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({entry.version}). The object might have been modified"
        )
        raise errors.conflict(kind.group, kind.kind, entry.name, why)


def _refuse_invalid_options(options: DeleteOptions) -> None:
    causes = []
    if options.policy is not None and options.orphans is not None:
        words = "Invalid value: orphanDependents and deletionPropagation cannot be both set"
        causes.append(
            errors.StatusCause(
                "propagationPolicy", "FieldValueInvalid", words.replace(":", f': "{options.policy}":', 1)
            )
        )
    if options.policy is not None and options.policy not in _POLICIES:
        supported = ", ".join(f'"{policy}"' for policy in ("Foreground", "Background", "Orphan", "nil"))
        words = f'Unsupported value: "{options.policy}": supported values: {supported}'
        causes.append(errors.StatusCause("propagationPolicy", "FieldValueNotSupported", words))
    if causes:
        raise errors.invalid("meta.k8s.io", "DeleteOptions", "", causes)
