"""AdmissionReview, in v1 and in v1beta1: the request to a webhook, and its response."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pilotage_harbor.admission.match_resources import name_of, namespace_of
from pilotage_harbor.apimachinery.calls import integer
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.go_json import go_words
from pilotage_harbor.kinds import scale
from pilotage_harbor.patching.values import go_type

if TYPE_CHECKING:
    from pilotage_harbor.core.admission import AdmissionAttributes
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json, Kind

VERSIONS = ("v1", "v1beta1")
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_OTHER_KINDS = {
    "scale": (scale.GROUP, scale.VERSION, scale.KIND),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
"""Subresources whose objects are of another kind than the resource."""
_JSON_PATCH = "JSONPatch"
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


class InvalidReview(Exception):
    """The answer is none."""


class NoReview(Exception):
    """The answer is not even a review."""


class BadPatch(Exception):
    """The answer is one, but its patch cannot be read."""


class ReviewResponse(NamedTuple):
    """Decision of a webhook."""

    allowed: bool
    status: Json
    patch: list[Any]
    warnings: list[str]


def request(attributes: AdmissionAttributes, kind: Kind, uid: str) -> Json:
    """The request of a review; the webhook sees the objects as `kind`."""
    scope, own = attributes.scope, attributes.scope.kind
    name = name_of(attributes)
    user = scope.call.user
    user_info: Json = {"username": user.name}
    if user.uid:
        user_info["uid"] = user.uid
    user_info["groups"] = list(user.groups)
    if user.extra:
        user_info["extra"] = {key: list(values) for key, values in user.extra.items()}
    sub: Json = {"subResource": scope.subresource} if scope.subresource else {}
    request_sub: Json = {"requestSubResource": scope.subresource} if scope.subresource else {}
    namespace = namespace_of(attributes)
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    asked = {"group": own.group, "version": own.version, "kind": own.kind}
    if scope.subresource in _OTHER_KINDS:
        group, version, other = _OTHER_KINDS[scope.subresource]
        named = asked = {"group": group, "version": version, "kind": other}
    return {
        "uid": uid,
        "kind": named,
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        **sub,
        "requestKind": asked,
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        **request_sub,
        **({"name": name} if name else {}),
        **({"namespace": namespace} if namespace else {}),
        "operation": attributes.operation,
        "userInfo": user_info,
        "object": shown(attributes, attributes.obj, kind),
        "oldObject": shown(attributes, attributes.old, kind),
        "dryRun": attributes.dry_run,
        "options": _options(attributes),
    }


def of_other_kind(scope: Scope, body: Json) -> Json:
    """Object that is sent to a subresource with a kind of its own, as one of that kind."""
    group, version, kind = _OTHER_KINDS[scope.subresource]
    meta = body.get("metadata")
    named = {"name": scope.name, "namespace": scope.namespace}
    api_version = f"{group}/{version}" if group else version
    return {
        **body,
        "kind": kind,
        "apiVersion": api_version,
        "metadata": {**(meta if isinstance(meta, dict) else {}), **named},
    }


def shown(attributes: AdmissionAttributes, obj: Json | None, kind: Kind) -> Json | None:
    """An object of a write as a webhook sees it: as the kind that it asked for, or as its Scale."""
    if obj is not None and attributes.scope.subresource == "scale":
        return scale.scale_of(attributes.scope.kind, obj)
    return converted(obj, attributes.scope.kind, kind)


def converted(obj: Json | None, source: Kind, target: Kind) -> Json | None:
    """An object of one version as another version of the same storage has it."""
    if obj is None or source is target:
        return obj
    stored = source.to_storage(obj) if source.to_storage is not None else obj
    shown = target.from_storage(msgspec.json.decode(msgspec.json.encode(stored))) if target.from_storage else stored
    return {**shown, "apiVersion": target.api_version, "kind": target.kind}


def _options(attributes: AdmissionAttributes) -> Json:
    call = attributes.scope.call
    options: Json = {"kind": _OPTIONS[attributes.operation], "apiVersion": "meta.k8s.io/v1"}
    if attributes.options:
        return {**attributes.options, **options}
    if call.query.get("dryRun"):
        options["dryRun"] = list(call.query["dryRun"])
    deleting = attributes.operation == "DELETE"
    for name in ("propagationPolicy",) if deleting else ("fieldManager", "fieldValidation"):
        if call.option(name):
            options[name] = call.option(name)
    if deleting and call.option("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = integer(call, "gracePeriodSeconds")
    if deleting and call.option("orphanDependents"):
        options["orphanDependents"] = call.flag("orphanDependents")
    return options


def verdict_untrusted(raw: bytes, uid: str, version: str, *, mutating: bool) -> ReviewResponse:
    """Understand an answer; raises NoReview, InvalidReview or BadPatch."""
    try:
        review = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        review = ""  # as YAML, which is tried next, most texts are a string
    if type(review) is not dict:
        words = f"json: cannot unmarshal {go_type(review)} into Go value of type {_TYPE_META}"
        raise NoReview(f"couldn't get version/kind; json parse error: {words}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise InvalidReview("webhook response was absent")
    if version == "v1":
        _check_v1(review, response, uid, mutating=mutating)
    status, warnings = response.get("status"), response.get("warnings")
    return ReviewResponse(
        response.get("allowed") is True,
        status if isinstance(status, dict) else {},
        _patch(response) if mutating else [],
        [str(warning) for warning in warnings] if isinstance(warnings, list) else [],
    )


def _check_v1(review: Json, response: Json, uid: str, *, mutating: bool) -> None:
    answered = response.get("uid") or ""
    if answered != uid:
        raise InvalidReview(f'expected response.uid="{uid}", got "{answered}"')
    if (review.get("apiVersion"), review.get("kind")) != ("admission.k8s.io/v1", "AdmissionReview"):
        group, _, version = str(review.get("apiVersion") or "").rpartition("/")
        got = f"{group}/{version}, Kind={review.get('kind') or ''}"
        raise InvalidReview(f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {got}")
    patch, type_ = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            raise InvalidReview("validating webhook may not return response.patch")
        if type_ is not None:
            raise InvalidReview("validating webhook may not return response.patchType")
    elif patch and type_ is None:
        raise InvalidReview("webhook returned response.patch but not response.patchType")
    elif not patch and type_ is not None:
        raise InvalidReview("webhook returned response.patchType but not response.patch")
    elif type_ == "":
        raise InvalidReview('webhook returned invalid response.patchType of ""')


def _patch(response: Json) -> list[Any]:
    """The operations of a patch. Raises BadPatch."""
    if not response.get("patch") or response.get("allowed") is not True:
        return []
    undecodable = "received undecodable patch in webhook response"
    try:
        raw = base64.b64decode(response["patch"], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadPatch(f"{undecodable}: {error}") from None
    try:
        operations = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadPatch(f"{undecodable}: {go_words(raw)}") from None
    if type(operations) is not list:
        words = f"json: cannot unmarshal {go_type(operations)} into Go value of type jsonpatch.Patch"
        raise BadPatch(f"{undecodable}: {words}")
    if operations and response.get("patchType", _JSON_PATCH) != _JSON_PATCH:
        raise BadPatch(f'unsupported patch type "{response["patchType"]}"')
    return operations


def denial(name: str, status: Json) -> StatusError:
    """The refusal that the client gets."""
    words = f'admission webhook "{name}" denied the request'
    explanation = status.get("message") or status.get("reason")
    words = f"{words}: {explanation}" if explanation else f"{words} without explanation"
    code, reason, details = status.get("code"), status.get("reason"), status.get("details")
    return StatusError(
        code if isinstance(code, int) and code >= 400 else 400,
        reason if isinstance(reason, str) else "",
        words,
        details=details if isinstance(details, dict) else None,
    )
