"""Bodies of requests: from bytes that anybody may have sent to an object of the kind that the path names.

What cannot be read is 400, in the words of kube-apiserver. What can be read but holds fields that the kind does not
know is refused, or told in a warning, or passed over, as ``fieldValidation`` says.
"""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import BODY_BYTES_MAX
from pilotage_harbor.apimachinery.go_json import TOO_LARGE, go_words
from pilotage_harbor.schema import builtin, decode_problem, prune, unknown_fields
from pilotage_harbor.schema.builtin import definition
from pilotage_harbor.verbs.yaml_text import DEPTH_MAX, Loaded, load_untrusted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.schema import SchemaNode

MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_UNKNOWN_MAX = 100
_YAML_WEIGHT = 16
_SUMMARY_BYTES = 30
_FLOAT_EXACT_MAX = 1e21
_FLOAT_BITS_MAX = 1023

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Undecodable(errors.StatusError):
    """400: an object that does not fit its kind. `why` is the reason by itself."""

    def __init__(self, kind: Kind, why: str) -> None:
        words = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}'
        super().__init__(400, "BadRequest", words)
        self.why = why


def weight(call: Call) -> int:
    """The size of a body by the time that it takes to read it: so many bytes of JSON take as long."""
    return len(call.body) * (_YAML_WEIGHT if "yaml" in call.headers.get("content-type", "") else 1)


def read(call: Call, kind: Kind) -> tuple[Json, list[str]]:
    """The object of a POST or a PUT, pruned, and the warnings that its sender should get."""
    try:
        obj, twice = parse_untrusted(call)
        check_said(obj, kind, call.body)
    except errors.StatusError as error:
        if error.code == 400:
            words = f"the object provided is unrecognized (must be of type {kind.kind}): {error.message}"
            raise errors.bad_request(f"{words} ({_summary(call.body)})") from None
        raise
    check_kind(obj, kind)
    warnings = check_fields(obj, kind, call.option("fieldValidation"), twice)
    return obj, warnings


async def parsed(core: Core, call: Call) -> Json:
    """Content of a body that is not an object to store: a review, options."""
    body, _ = await core.offload(call.user, weight(call), partial(parse_untrusted, call))
    return body


def parse_untrusted(call: Call) -> tuple[Json, list[str]]:
    """Whatever JSON, YAML or protobuf object it is, and what is to be said of fields that it has twice."""
    body = call.body
    if len(body) > BODY_BYTES_MAX:
        raise errors.too_large(BODY_BYTES_MAX)
    media = call.headers.get("content-type", "").partition(";")[0].strip() or "application/json"
    if media == "application/yaml":
        loaded = from_yaml_untrusted(body)
        return _checked(loaded.value), loaded.repeated
    if media == "application/vnd.kubernetes.protobuf":
        return _from_protobuf_untrusted(body), []
    if media not in ("application/json", "*/*"):
        raise errors.unsupported_media_type(MEDIA_TYPES)
    return from_json_untrusted(body)


def from_json_untrusted(body: bytes) -> tuple[Json, list[str]]:
    """A JSON object, and what is to be said of fields that it has twice (of those, the last counts)."""
    try:
        obj = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        obj = _leniently(body)
    if problem := depth_problem_untrusted(body, obj):
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {problem}")
    obj = _checked(obj)
    # A field that was there twice is there once now, so what it takes to write it down again is shorter.
    if len(_encode(obj)) == len(body):
        return obj, []
    return obj, duplicates(body)


def depth_problem_untrusted(body: bytes, value: Any) -> str:  # noqa: ANN401 - JSON
    """Problem of JSON that is nested more deeply than those who walk through it can go; else nothing.

    The decoder has a bound of its own, which is further off.
    """
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return ""
    left: list[Iterator[Any]] = [iter((value,))]
    while left:
        inner = next(left[-1], left)
        if inner is left:
            left.pop()
        elif isinstance(inner, dict | list):
            if len(left) > DEPTH_MAX:
                return f"invalid character '{'{' if isinstance(inner, dict) else '['}' exceeded max depth"
            left.append(iter(inner.values() if isinstance(inner, dict) else inner))
    return ""


def _leniently(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """JSON as Go reads it: bytes that are no UTF-8, and halves of surrogate pairs, become U+FFFD. 400 if it is none."""
    try:
        decoded = json.loads(body.decode(errors="replace"), parse_constant=_refuse_constant)
        text = json.dumps(decoded, ensure_ascii=False)
        return _decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())
    except (ValueError, RecursionError, msgspec.DecodeError):
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {go_words(body)}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def from_yaml_untrusted(body: bytes) -> Loaded:
    """Whatever YAML it is."""
    import yaml

    try:
        return load_untrusted(body)
    except (yaml.YAMLError, ValueError) as error:
        words = str(getattr(error, "problem", None) or error).partition("\n")[0]
        raise errors.bad_request(f"error converting YAML to JSON: yaml: {words}") from None


def _from_protobuf_untrusted(body: bytes) -> Json:
    from pilotage_harbor.protobuf import BadMessage, from_protobuf_untrusted

    try:
        return from_protobuf_untrusted(body)
    except BadMessage as error:
        raise errors.bad_request(str(error)) from None


def check_said(obj: Json, kind: Kind, body: bytes) -> None:
    """Refuse what does not say what it is in a way that can be read: texts, and both where the kind is a custom one."""
    for name in ("apiVersion", "kind"):
        value = obj.get(name)
        if value is not None and not isinstance(value, str):
            words = f"json: cannot unmarshal {_json_type(value)} into Go struct field .{name} of type string"
            raise errors.bad_request(f"couldn't get version/kind; json parse error: {words}")
        if kind.custom and not value:
            missing = "Kind" if not obj.get("kind") else "apiVersion"
            raise errors.bad_request(f"Object '{missing}' is missing in '{body.decode(errors='replace')}'")
    if (obj.get("apiVersion") or "").count("/") > 1:
        raise errors.bad_request(f"unexpected GroupVersion string: {obj['apiVersion']}")


def check_kind(obj: Json, kind: Kind) -> None:
    """Refuse what says that it is something else; what says nothing is taken for the path's kind."""
    api_version, name = obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.kind
    obj["apiVersion"], obj["kind"] = api_version, name
    if name == kind.kind and api_version == kind.api_version:
        return
    if kind.custom and api_version == kind.api_version:
        cause = errors.StatusCause("kind", "FieldValueInvalid", f'Invalid value: "{name}": must be {kind.kind}')
        raise errors.invalid(kind.group, name, (obj.get("metadata") or {}).get("name", ""), [cause])
    group, version = api_version.rpartition("/")[::2]
    known = _is_known(group, version, name)
    if kind.custom or (known and name == kind.kind and group == kind.group):
        words = (
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        )
        raise errors.bad_request(words)
    words = f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    if known:
        internal = kind.group.partition(".")[0] or "core"
        words = f"converting ({version}.{name}) to ({internal}.{kind.kind}): unknown conversion"
        words = _problem_as(group, version, name, obj) or words
    raise errors.bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {words}')


def _problem_as(group: str, version: str, name: str, obj: Json) -> str | None:
    """Reason why an object cannot be decoded as the kind that it names."""
    try:
        return decode_problem(builtin(group, version, name), obj, name)
    except KeyError:
        return None


def _is_known(group: str, version: str, name: str) -> bool:
    """Whether Kubernetes has such a kind, or a list or an option of it."""
    for each in (name, name.removesuffix("List")):
        try:
            builtin(group, version, each)
        except KeyError:
            continue
        return True
    return name in ("Status", "DeleteOptions", "List", "WatchEvent")


def _summary(body: bytes) -> str:
    """Beginning of a body, as errors show it."""
    if not body:
        return "<empty>"
    shown = body[:_SUMMARY_BYTES]
    text = shown.decode(errors="replace") if body.startswith(b"{") else shown.hex()
    return f"{text} ..." if len(body) > _SUMMARY_BYTES else text


def check_fields(obj: Json, kind: Kind, validation: str, twice: list[str]) -> list[str]:
    """Take unknown fields away; the warnings about them, or 400, as the mode of validation says."""
    if validation not in ("", "Strict", "Warn", "Ignore"):
        words = f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"'
        cause = errors.StatusCause("fieldValidation", "FieldValueNotSupported", words)
        raise errors.invalid("meta.k8s.io", "CreateOptions", "", [cause])
    if kind.custom:
        problem = decode_problem(object_meta(), obj.get("metadata"), "ObjectMeta")
        _make_whole(obj)
    else:
        problem = decode_problem(kind.schema, obj, kind.kind)
    if problem is not None:
        raise Undecodable(kind, problem)
    unknown = unknown_fields(kind.schema, obj)
    if unknown:
        prune(kind.schema, obj)
    found = [f'unknown field "{path}"' for path in unknown] + twice
    if not found or validation == "Ignore":
        return []
    if validation == "Strict":
        if twice and twice[0].startswith("line "):
            found = [*found[: len(unknown)], "\n  ".join(["yaml: unmarshal errors:", *twice])]
        raise Undecodable(kind, f"strict decoding error: {', '.join(found[:_UNKNOWN_MAX])}")
    return found


@cache
def object_meta() -> SchemaNode:
    """The schema of metadata."""
    return definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")


def _make_whole(value: Any) -> None:  # noqa: ANN401 - JSON
    """Numbers such as 4.0 become 4, as Go writes them."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, float):
            if inner.is_integer() and abs(inner) < _FLOAT_EXACT_MAX:
                value[key] = int(inner)
        elif isinstance(inner, dict | list):
            _make_whole(inner)
        elif isinstance(inner, int) and inner.bit_length() > _FLOAT_BITS_MAX:
            raise errors.bad_request(TOO_LARGE)


def _checked(value: Any) -> Json:  # noqa: ANN401 - JSON
    if value is None:
        return {}
    if not isinstance(value, dict):
        go = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        words = f"json: cannot unmarshal {_json_type(value)} into Go value of type {go}"
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {words}")
    return value


def _json_type(value: Any) -> str:  # noqa: ANN401 - JSON
    return {list: "array", str: "string", bool: "bool", dict: "object"}.get(type(value), "number")


def duplicates(body: bytes) -> list[str]:
    """Warnings about fields that one object has twice. Slow: only for bodies that may have some."""
    found: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in items:
            if name in seen:
                seen.setdefault("\0twice", []).append(name)
            seen[name] = value
        return seen

    def walk(value: Any, path: str) -> None:  # noqa: ANN401 - JSON
        if isinstance(value, dict):
            twice = (f"{path}.{name}".lstrip(".") for name in dict.fromkeys(value.pop("\0twice", ())))
            found.extend(f'duplicate field "{where}"' for where in twice)
            for name, inner in value.items():
                walk(inner, f"{path}.{name}")
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                walk(inner, f"{path}[{number}]")

    try:
        walk(json.loads(body.decode(errors="replace"), object_pairs_hook=pairs), "")
    except RecursionError:
        return []
    return found
