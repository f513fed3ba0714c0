"""Server-side apply: a PATCH that says what its manager wants, and leaves the rest to the others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import check_manager
from pilotage_harbor.patching import apply
from pilotage_harbor.verbs import bodies
from pilotage_harbor.verbs.deletions import TRIES_MAX
from pilotage_harbor.verbs.metadata import check_create, check_update
from pilotage_harbor.verbs.writes import (
    Overtaken,
    Written,
    change_object,
    check_may_create,
    create_object,
)
from pilotage_harbor.verbs.yaml_text import load_untrusted

if TYPE_CHECKING:
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json


async def apply_config(core: Core, scope: Scope) -> Written:
    """Merge a manager's fields into the object, or create it from them."""
    call, manager = scope.call, scope.call.option("fieldManager")
    if not manager:
        words = "Required value: is required for apply patch"
        cause = errors.StatusCause("fieldManager", "FieldValueRequired", words)
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [cause])
    check_manager(call)
    config, repeated = await core.offload(call.user, bodies.weight(call), partial(_config_untrusted, call.body))
    _check(config, scope)
    validation = call.option("fieldValidation")
    repeated = repeated if validation != "Ignore" else []
    warnings = repeated if validation != "Strict" else []
    refused = repeated if validation == "Strict" else []
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            return await _apply_once(core, scope, config, warnings[:], refused)
        except Overtaken:
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


async def _apply_once(core: Core, scope: Scope, config: Json, warnings: list[str], refused: list[str]) -> Written:
    """Apply it to what is there now; `refused` is what is wrong with it, but after all else that may be."""
    kind, meta = scope.kind, config.get("metadata") or {}
    entry = core.store.get(kind.storage, scope.namespace, scope.name)
    if entry is not None:
        return await change_object(
            core, scope, entry, lambda live: _merged(core, scope, live, config, refused), warnings, tracked=True
        )
    if scope.subresource:
        raise errors.not_found(kind.group, kind.plural, scope.name)
    if meta.get("uid"):
        why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
        raise errors.conflict(kind.group, kind.plural, scope.name, why)
    check_may_create(core, scope)
    new = await core.offload(scope.call.user, len(scope.call.body), lambda: _merged(core, scope, None, config, refused))
    new["metadata"].pop("resourceVersion", None)
    check_create(new, scope)
    return await create_object(core, scope, new, warnings, lambda obj: obj)


def _merged(core: Core, scope: Scope, live: Json | None, config: Json, refused: list[str]) -> Json:
    kind = scope.kind
    merged = apply(
        live,
        config,
        schema=kind.schema,
        manager=scope.manager,
        force=scope.call.flag("force"),
        api_version=kind.api_version,
        subresource=scope.subresource,
        now=core.now_text(),
        reset=kind.strategy.reset_fields.get(scope.subresource, ()),
    )
    if refused:
        lines = "".join(f"\n  {line}" for line in refused)
        words = f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{lines}"
        raise errors.bad_request(words)
    return merged


def _check(config: Json, scope: Scope) -> None:
    """Refuse a configuration of something else."""
    kind = scope.kind
    api_version, name = config.get("apiVersion") or "", config.get("kind") or ""
    if (api_version, name) != (kind.api_version, kind.kind):
        group, _, version = str(api_version).rpartition("/")
        raise errors.bad_request(f"invalid object type: {group}/{version}, Kind={name}")
    meta = config.get("metadata")
    copy = {**config, "metadata": {**meta} if isinstance(meta, dict) else meta}
    check_update(copy, scope)


def _config_untrusted(body: bytes) -> tuple[Json, list[str]]:
    """The manager's fields, as JSON or YAML, and what is to be said of those that are there twice."""
    if body.lstrip().startswith(b"{"):
        config, duplicates = bodies.from_json_untrusted(body)
        return config, load_untrusted(body).repeated if duplicates else []  # told as those of YAML are
    try:
        loaded = bodies.from_yaml_untrusted(body)
    except errors.StatusError as error:
        raise errors.bad_request(f"error decoding YAML: {error.message}") from None
    if not isinstance(loaded.value, dict):
        raise errors.bad_request("error decoding YAML: the patch is no object")
    return loaded.value, loaded.repeated
