"""The subresources that are not just a part of their object, such as scale, eviction, finalize and binding."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import msgspec

from pilotage.kube.selectors import LabelSelector
from pilotage_harbor.admission.review import of_other_kind
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import ServerResponse, answer, dry_run, warning_headers
from pilotage_harbor.builtin.ephemeral import EphemeralContainersStrategy
from pilotage_harbor.core.admission import AdmissionAttributes
from pilotage_harbor.core.deletion import is_finished
from pilotage_harbor.core.objects import as_bytes, from_entry
from pilotage_harbor.kinds import scale
from pilotage_harbor.verbs import bodies, deletions, kubelets, patches, writes
from pilotage_harbor.verbs.account_tokens import request_token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pilotage_harbor.core import Core
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import StoredObject

_BUDGETS = "poddisruptionbudgets.policy"


async def serve(core: Core, scope: Scope) -> ServerResponse:
    """Answer a request to a subresource other than the status; 405 for one that is not to be done with it."""
    if kubelets.is_for_a_kubelet(scope):
        return kubelets.answer(core, scope)
    serving = _SERVING.get((scope.subresource, scope.verb))
    if serving is None:
        raise errors.method_not_allowed()
    warnings = await _admit(core, scope) if scope.verb == "create" else []
    answered = await serving(core, scope)
    return answered._replace(headers={**answered.headers, **warning_headers(warnings)}) if warnings else answered


async def _admit(core: Core, scope: Scope) -> list[str]:
    """Ask admission about what is created in a subresource: an eviction, a binding, a request for a token.

    It is asked first, so that what follows looks and writes without a pause.
    """
    body = await bodies.parsed(core, scope.call)
    sent = of_other_kind(scope, body)
    return await core.admission.validate(AdmissionAttributes("CREATE", scope, sent, None, dry_run=_is_dry(scope, body)))


def _is_dry(scope: Scope, body: Json) -> bool:
    options = body.get("deleteOptions")
    return dry_run(scope.call, options if isinstance(options, dict) else None)


def _entry(core: Core, scope: Scope) -> StoredObject:
    entry = core.store.get(scope.kind.storage, scope.namespace, scope.name)
    if entry is None:
        raise errors.not_found(scope.kind.group, scope.kind.plural, scope.name)
    return entry


# scale


async def _get_scale(core: Core, scope: Scope) -> ServerResponse:
    obj = from_entry(scope.kind, _entry(core, scope))
    if scope.kind.custom and scale.at(obj, scope.kind.scale[0]) is None:
        raise errors.internal(f'the spec replicas field "{scope.kind.scale[0]}" does not exist')
    return answer(scale.scale_of(scope.kind, obj))


async def _put_scale(core: Core, scope: Scope) -> ServerResponse:
    """A change of the scale is a patch of the object's replicas, under the same rules."""
    _entry(core, scope)
    body = await bodies.parsed(core, scope.call) if scope.call.method != "PATCH" else {}
    entry = _entry(core, scope)
    current = scale.scale_of(scope.kind, from_entry(scope.kind, entry))
    if scope.call.method == "PATCH":
        media = scope.call.headers.get("content-type", "").partition(";")[0]
        change, _ = patches.change_of(scope, media)
        wanted = change(current)
    else:
        wanted = body
        said = body.get("kind", "Scale")
        if said != "Scale":
            version = str(body.get("apiVersion", "")).rpartition("/")[2]
            why = f"converting ({version}.{said}) to (autoscaling.Scale): unknown conversion"
            raise errors.bad_request(f'{said} in version "{version}" cannot be handled as a Scale: {why}')
    meta = wanted.get("metadata") or {}
    if meta.get("name", scope.name) != scope.name:
        words = f"the name of the object ({meta['name']}) does not match the name on the URL ({scope.name})"
        raise errors.bad_request(words)
    version = meta.get("resourceVersion", "")
    if version and version != str(entry.version) and scope.call.method == "PUT":
        raise errors.conflict(scope.kind.group, scope.kind.plural, scope.name, errors.MODIFIED)
    replicas = scale.replicas_of(scope.kind, scope.name, wanted)
    call = scope.call._replace(
        method="PATCH",
        body=msgspec.json.encode(scale.patch_of(scope.kind, replicas)),
        headers={**scope.call.headers, "content-type": patches.MERGE_PATCH},
    )
    written = await patches.patch(core, scope._replace(call=call, subresource="scale"))
    return answer(scale.scale_of(scope.kind, from_entry(scope.kind, written.entry)), 200, written.warnings)


# finalize


async def _finalize(core: Core, scope: Scope) -> ServerResponse:
    """Set the finalizers in a namespace's spec: whoever empties them lets it go."""
    sent, _ = await core.offload(
        scope.call.user, bodies.weight(scope.call), partial(bodies.read, scope.call, scope.kind)
    )
    for _ in range(deletions.TRIES_MAX):
        entry = _entry(core, scope)
        obj = _finalized(core, scope, sent, entry)
        old = from_entry(scope.kind, entry)
        warnings = await core.admission.validate(
            AdmissionAttributes("UPDATE", scope, obj, old, dry_run=dry_run(scope.call))
        )
        if _entry(core, scope) is entry:
            stored = _store_finalized(core, scope, obj, entry)
            return ServerResponse(200, as_bytes(scope.kind, stored), warning_headers(warnings))
    raise errors.conflict(scope.kind.group, scope.kind.plural, scope.name, errors.MODIFIED)


def _finalized(core: Core, scope: Scope, sent: Json, entry: StoredObject) -> Json:
    """The namespace at `entry` with the finalizers that were sent; 409 if another one is meant."""
    kind = scope.kind
    obj = from_entry(kind, entry)
    meta = sent.get("metadata") or {}
    if (meta.get("uid") or entry.uid) != entry.uid:
        words = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {entry.uid}"
        raise errors.conflict(kind.group, kind.plural, scope.name, words)
    if (meta.get("resourceVersion") or str(entry.version)) != str(entry.version):
        raise errors.conflict(kind.group, kind.plural, scope.name, errors.MODIFIED)
    finalizers = (sent.get("spec") or {}).get("finalizers") or []
    obj["spec"] = {"finalizers": finalizers} if finalizers else {}
    return writes.tracked_by(core, scope, obj, from_entry(kind, entry))


def _store_finalized(core: Core, scope: Scope, obj: Json, entry: StoredObject) -> StoredObject:
    if dry_run(scope.call):
        return entry
    return core.remove(scope.kind, obj) if is_finished(obj) else core.put(scope.kind, obj)


# pods


async def _evict(core: Core, scope: Scope) -> ServerResponse:
    """Delete a pod if every disruption budget that covers it allows that."""
    _entry(core, scope)
    body = await bodies.parsed(core, scope.call)
    entry = _entry(core, scope)
    said = body.get("kind", "Eviction")
    if said != "Eviction":
        why = f"converting (v1.{said}) to (policy.Eviction): unknown conversion"
        raise errors.bad_request(f'{said} in version "v1" cannot be handled as a Eviction: {why}')
    name = (body.get("metadata") or {}).get("name", scope.name)
    if name != scope.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    pod = from_entry(scope.kind, entry)
    options = body.get("deleteOptions") or {}
    if not isinstance(options, dict):
        raise errors.bad_request("deleteOptions must be an object")
    dry = dry_run(scope.call, options)
    query = {"dryRun": ["All"]} if dry else {}
    call = scope.call._replace(method="DELETE", body=msgspec.json.encode(options), query=query)
    call = call._replace(headers={**call.headers, "content-type": "application/json"})
    asked = deletions.DeleteOptions(call)
    budgets = [budget for budget in core.objects(_BUDGETS, scope.namespace) if _covers(budget, entry)]
    if not _needs_no_budget(pod):
        if len(budgets) > 1:
            words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise errors.StatusError(500, "", words)
        for budget in budgets:
            if not _is_ready(pod) and (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
                continue
            _take_from(core, scope, budget, dry=True)  # whether it could
            deletions.check_preconditions(scope.kind, entry, asked)
            _take_from(core, scope, budget, dry=dry)
    deletions.delete_admitted(core, scope._replace(call=call, subresource=""), entry, asked)
    return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def _covers(budget: Json, entry: StoredObject) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return LabelSelector.from_object(selector).matches(entry.labels)


def _needs_no_budget(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _take_from(core: Core, scope: Scope, budget: Json, *, dry: bool) -> None:
    """Use up one of the disruptions that a budget allows; 429 if there is none."""
    name = budget["metadata"]["name"]
    status = budget.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, retry_after=10)
    if allowed <= 0:
        enough = status.get("currentHealthy", 0) > status.get("desiredHealthy", 0)
        why = (
            f"The disruption budget {name} does not allow evicting pods currently"
            if enough
            else f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
        raise _too_many(why)
    if dry:
        return
    kind = core.registry.storage(_BUDGETS)
    assert kind is not None
    disrupted = {**(status.get("disruptedPods") or {}), scope.name: core.now_text()}
    core.put(kind, {**budget, "status": {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}})


def _too_many(why: str, retry_after: int = 0) -> errors.StatusError:
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    headers = {}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
        headers["Retry-After"] = str(retry_after)
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    return errors.StatusError(429, "TooManyRequests", words, details=details, headers=headers)


async def _bind(core: Core, scope: Scope) -> ServerResponse:
    """Place a pod on a node."""
    body = await bodies.parsed(core, scope.call)
    entry = _entry(core, scope)
    pod = from_entry(scope.kind, entry)
    target, meta = body.get("target"), body.get("metadata")
    node = target.get("name") if isinstance(target, dict) else ""
    if not isinstance(node, str) or not node:
        cause = errors.StatusCause("target.name", "FieldValueRequired", "Required value")
        raise errors.invalid("", "Binding", scope.name, [cause])
    uid = (meta.get("uid") if isinstance(meta, dict) else "") or entry.uid
    if uid != entry.uid:
        words = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
        raise errors.conflict("", "pods", scope.name, words)
    if "deletionTimestamp" in pod["metadata"]:
        words = f"pod {scope.name} is being deleted, cannot be assigned to a host"
        raise errors.conflict("", "pods/binding", scope.name, words)
    taken = (pod.get("spec") or {}).get("nodeName")
    if taken:
        words = f"pod {scope.name} is already assigned to node {taken!r}".replace("'", '"')
        raise errors.conflict("", "pods/binding", scope.name, words)
    pod.setdefault("spec", {})["nodeName"] = node
    status = pod.setdefault("status", {})
    others = [each for each in status.get("conditions") or [] if each.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": core.now_text()}
    status["conditions"] = [*others, scheduled]
    if not dry_run(scope.call):
        core.put(scope.kind, pod)
    return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


async def _get_whole(core: Core, scope: Scope) -> ServerResponse:
    return ServerResponse(200, as_bytes(scope.kind, _entry(core, scope)))


async def _add_containers(core: Core, scope: Scope) -> ServerResponse:
    """Put or patch the pod, of which only the ephemeral containers change."""
    write = writes.update if scope.verb == "update" else patches.patch
    written = await write(core, scope._replace(kind=_ephemeral(scope.kind)))
    return ServerResponse(200, as_bytes(scope.kind, written.entry), warning_headers(written.warnings))


@cache
def _ephemeral(kind: Kind) -> Kind:
    return replace(kind, strategy=EphemeralContainersStrategy())


_SERVING: dict[tuple[str, str], Callable[[Core, Scope], Awaitable[ServerResponse]]] = {
    ("scale", "get"): _get_scale,
    ("scale", "update"): _put_scale,
    ("scale", "patch"): _put_scale,
    ("finalize", "update"): _finalize,
    ("eviction", "create"): _evict,
    ("binding", "create"): _bind,
    ("ephemeralcontainers", "get"): _get_whole,
    ("ephemeralcontainers", "update"): _add_containers,
    ("ephemeralcontainers", "patch"): _add_containers,
    ("token", "create"): request_token,
}
