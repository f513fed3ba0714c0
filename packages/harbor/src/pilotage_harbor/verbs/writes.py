"""POST, PUT and PATCH: how an object comes to be, and how it changes.

Every write takes the same way: read it, default it, note who owns which field, ask mutating admission, prepare it,
validate it, ask validating admission, store it. Between the last look at the stored object and the write there is no
`await`; where admission had to wait and somebody else was quicker, a patch starts over, and a PUT is a conflict.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.access.escalation import check_escalation
from pilotage_harbor.access.rbac import GROUP as RBAC_GROUP
from pilotage_harbor.admission.conversion import convert_ahead
from pilotage_harbor.admission.param_access import access_problems
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import check_manager, dry_run, telling
from pilotage_harbor.builtin import certificates
from pilotage_harbor.core.admission import AdmissionAttributes
from pilotage_harbor.core.deletion import is_finished
from pilotage_harbor.core.objects import from_entry, to_entry
from pilotage_harbor.patching import (
    keep_times,
    track_update,
)
from pilotage_harbor.verbs import bodies
from pilotage_harbor.verbs.metadata import begin, carry_over, check_create, check_update

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.core import Core
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json
    from pilotage_harbor.storage.store import StoredObject

GENERATED_NAMES_MAX = 8


class Written:
    """Result of a write: the object as it is stored (or would be), and warnings for its sender."""

    __slots__ = ("created", "entry", "warnings")

    def __init__(self, entry: StoredObject, warnings: list[str], *, created: bool = False) -> None:
        self.entry = entry
        self.warnings = warnings
        self.created = created


async def create(core: Core, scope: Scope) -> Written:
    """A POST to a collection."""
    check_manager(scope.call)
    obj, warnings = await core.offload(
        scope.call.user, bodies.weight(scope.call), partial(bodies.read, scope.call, scope.kind)
    )
    with telling(warnings):
        check_create(obj, scope)
        return await create_object(core, scope, obj, warnings, None)


async def create_object(
    core: Core, scope: Scope, obj: Json, warnings: list[str], track: Callable[[Json], Json] | None
) -> Written:
    """The object is new. `track` notes who owns it, where that is not an ordinary update."""
    kind, strategy = scope.kind, scope.kind.strategy
    begin(obj, core.uid(), core.now_text())

    def completed() -> Json:
        strategy.default(obj)
        return track(obj) if track is not None else tracked_by(core, scope, obj, None)

    obj = await core.offload(scope.call.user, len(scope.call.body), completed)
    attributes = AdmissionAttributes("CREATE", scope, obj, None, dry_run=dry_run(scope.call))
    warnings += await core.admission.mutate(attributes)
    obj = attributes.obj
    check_create(obj, scope)  # again: a webhook may have moved it
    core.check_namespace(scope, scope.name or obj["metadata"].get("name", ""))
    async with core.allocating(kind):
        return await _create_prepared(core, scope, attributes, obj, warnings)


async def _create_prepared(
    core: Core, scope: Scope, attributes: AdmissionAttributes, obj: Json, warnings: list[str]
) -> Written:
    kind, strategy = scope.kind, scope.kind.strategy
    meta = obj["metadata"]
    generated = not meta.get("name") and bool(meta.get("generateName"))
    for tries_left in reversed(range(GENERATED_NAMES_MAX if generated else 1)):
        if generated:
            obj["metadata"]["name"] = core.generated_name(meta["generateName"])
        strategy.prepare_create(obj, core)
        strategy.note_author(obj, scope.call.user)
        _check_escalation(core, scope, obj, None)
        problems = core.metadata_problems(kind, obj) + strategy.validate(obj, core)
        _refuse_invalid(scope, obj, problems or access_problems(core, kind, scope.call.user, obj, None))
        strategy.admit(obj, None, core)
        warnings += strategy.warnings(obj, None)
        warnings += await core.admission.validate(attributes.with_object(obj))
        if kind.converted_by_webhook:
            await convert_ahead(core, kind, obj)
        core.check_namespace(scope, obj["metadata"]["name"])
        core.check_served(kind)
        core.quotas.check(kind, obj, None)
        existing = core.store.get(kind.storage, scope.namespace, obj["metadata"]["name"])
        if existing is None:
            break
        if not tries_left:
            terminating = "deletionTimestamp" in from_entry(kind, existing)["metadata"]
            raise errors.already_exists(kind.group, kind.plural, existing.name, being_deleted=terminating)
    if dry_run(scope.call):
        entry = to_entry(kind, obj, 0)
        del obj["metadata"]["resourceVersion"]
        return Written(_restored(scope, obj, entry), warnings, created=True)
    return Written(core.put(kind, obj), warnings, created=True)


async def update(core: Core, scope: Scope) -> Written:
    """A PUT of an object, or of its status."""
    kind = scope.kind
    check_manager(scope.call)
    sent, warnings = await core.offload(
        scope.call.user, bodies.weight(scope.call), partial(bodies.read, scope.call, kind)
    )
    with telling(warnings):
        return await _update(core, scope, sent, warnings)


async def _update(core: Core, scope: Scope, sent: Json, warnings: list[str]) -> Written:
    kind = scope.kind
    check_update(sent, scope)
    version = sent["metadata"].get("resourceVersion", "")
    if not version and not kind.strategy.unconditional_update:
        cause = errors.StatusCause(
            "metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update"
        )
        if core.store.get(kind.storage, scope.namespace, scope.name) is not None:
            raise errors.invalid(kind.group, kind.plural, scope.name, [cause])
    entry = core.store.get(kind.storage, scope.namespace, scope.name)
    if entry is None:
        if kind.strategy.create_on_update and not scope.subresource:
            check_may_create(core, scope)
            sent["metadata"].pop("resourceVersion", None)
            return await create_object(core, scope, sent, warnings, None)
        raise errors.not_found(kind.group, kind.plural, scope.name)
    return await change_object(core, scope, entry, lambda _: sent, warnings, version=version)


def check_may_create(core: Core, scope: Scope) -> None:
    """403 unless whoever updates or applies what is not there may create it, too."""
    kind = scope.kind
    wanted = AccessAttributes("create", kind.group, kind.plural, namespace=scope.namespace, name=scope.name)
    core.authorizer.check(scope.call.user, wanted)


class Overtaken(errors.StatusError):
    """The object changed while admission was asked."""


async def change_object(
    core: Core,
    scope: Scope,
    entry: StoredObject,
    change: Callable[[Json], Json],
    warnings: list[str],
    *,
    version: str = "",
    tracked: bool = False,
) -> Written:
    """Store what `change` makes of the object at `entry`. `tracked`: it has noted who owns what itself."""
    work = partial(_changed, core, scope, entry, change, version, tracked=tracked)
    new, old = await core.offload(scope.call.user, len(entry.raw) + len(scope.call.body), work)
    attributes = AdmissionAttributes("UPDATE", scope, new, old, dry_run=dry_run(scope.call))
    warnings += await core.admission.mutate(attributes)
    async with core.allocating(scope.kind):
        return await _change_prepared(core, scope, entry, attributes, warnings)


def _changed(
    core: Core, scope: Scope, entry: StoredObject, change: Callable[[Json], Json], version: str, *, tracked: bool
) -> tuple[Json, Json]:
    """The object as it is to be, and as it is. It may be done aside."""
    kind = scope.kind
    old = from_entry(kind, entry)
    new = change(from_entry(kind, entry))
    asked = version or new["metadata"].get("resourceVersion", "")
    if scope.call.method == "PUT" and new["metadata"].get("uid", entry.uid) != entry.uid:
        place = "/".join(filter(None, (kind.group if kind.custom else "", kind.plural, entry.namespace, entry.name)))
        words = (
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {new['metadata']['uid']}, UID in object meta: {entry.uid}"
        )
        raise errors.conflict(kind.group, kind.plural, scope.name, words)
    if asked and asked not in ("0", str(entry.version)):
        if asked.isdigit():
            raise errors.conflict(kind.group, kind.plural, scope.name, errors.MODIFIED)
        raise errors.StatusError(500, "", f'strconv.ParseUint: parsing "{asked}": invalid syntax')
    carry_over(new, old)
    kind.strategy.default(new)
    return (new if tracked else tracked_by(core, scope, new, old)), old


async def _change_prepared(
    core: Core, scope: Scope, entry: StoredObject, attributes: AdmissionAttributes, warnings: list[str]
) -> Written:
    kind, strategy = scope.kind, scope.kind.strategy
    new, old = attributes.obj, attributes.old
    assert old is not None
    if scope.subresource in ("status", "approval"):
        strategy.prepare_status_update(new, old)
        _check_signing(core, scope, new, old)
        problems = strategy.validate_status_update(new, old, core)
    else:
        strategy.prepare_update(new, old, core)
        _check_escalation(core, scope, new, old)
        problems = strategy.validate_update(new, old, core)
        problems = problems or access_problems(core, kind, scope.call.user, new, old)
    _refuse_invalid(scope, new, core.metadata_update_problems(new, old) + problems)
    if not scope.subresource:
        strategy.admit(new, old, core)
    warnings += strategy.warnings(new, old)
    warnings += await core.admission.validate(attributes.with_object(new))
    if kind.converted_by_webhook:
        await convert_ahead(core, kind, new)
    if core.store.get(kind.storage, scope.namespace, scope.name) is not entry:
        error = errors.conflict(kind.group, kind.plural, scope.name, errors.MODIFIED)
        raise Overtaken(error.code, error.reason, error.message, details=error.details)
    if not scope.subresource:
        core.quotas.check(kind, new, old)
    new["metadata"]["resourceVersion"] = str(entry.version)
    keep_times(new, old)
    if new == old:
        return Written(entry, warnings)
    if dry_run(scope.call):
        return Written(to_entry(kind, new, entry.version), warnings)
    if is_finished(new):
        core.remove(kind, from_entry(kind, entry))  # watches see it with its last finalizer
        return Written(to_entry(kind, new, entry.version), warnings)  # kube-apiserver shows it so: as of before
    return Written(core.put(kind, new), warnings)


def tracked_by(core: Core, scope: Scope, new: Json, old: Json | None) -> Json:
    """The object with a note of who owns what after this write."""
    kind = scope.kind
    track_update(
        new,
        old,
        schema=kind.schema,
        manager=scope.manager,
        api_version=kind.api_version,
        subresource=scope.subresource,
        now=core.now_text() if scope.subresource != "scale" else None,  # as kube-apiserver notes who scales
        reset=kind.strategy.reset_fields.get(scope.subresource, ()),
    )
    return new


def _check_escalation(core: Core, scope: Scope, obj: Json, old: Json | None) -> None:
    if scope.kind.group == RBAC_GROUP:
        check_escalation(core.authorizer, scope.call.user, scope.kind.plural, obj, old, named=scope.name)


def _check_signing(core: Core, scope: Scope, obj: Json, old: Json) -> None:
    """403 for who may not approve what is for this signer, or may not sign in its name."""
    if scope.kind.group != certificates.GROUP:
        return
    verb = "approve" if scope.subresource == "approval" else "sign"
    if verb == "sign" and not certificates.is_for_the_signer(obj, old):
        return
    signer, user = old["spec"].get("signerName", ""), scope.call.user
    if not any(core.authorizer.decide(user, each).allowed for each in certificates.may_sign(verb, signer)):
        why = f'user not permitted to {verb} requests with signerName "{signer}"'
        raise errors.forbidden(scope.kind.group, scope.kind.plural, scope.name, why)


def _refuse_invalid(scope: Scope, obj: Json, causes: list[errors.StatusCause]) -> None:
    if causes:
        group = scope.kind.storage.partition(".")[2]  # of the stored kind: Events of both groups are of none
        raise errors.invalid(group, scope.kind.kind, obj["metadata"].get("name", ""), causes)


def _restored(scope: Scope, obj: Json, entry: StoredObject) -> StoredObject:
    """The entry of a dry run, whose object has no resourceVersion."""
    stored = scope.kind.to_storage(obj) if scope.kind.to_storage is not None else obj
    ordered = {"apiVersion": stored["apiVersion"], "kind": stored["kind"], "metadata": stored["metadata"]} | stored
    return msgspec.structs.replace(entry, raw=msgspec.json.encode(ordered))
