"""The schemas of built-in definitions, as a document carries them: JSON by name, with references to each other.

They are made from the same table as the schemas that objects are checked with, but by name: a definition that refers to
itself stays small. Each is made once, when the first document needs it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pilotage_harbor.schema.builtin import table

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
DELETE_OPTIONS = META + "DeleteOptions"
GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"

_TYPES: dict[str, Json] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "any": {},
}
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
# Values of two types: version 2 has no words for that.
_TWO_TYPES: dict[tuple[str, bool], Json] = {
    (_QUANTITY, False): {"oneOf": [{"type": "string"}, {"type": "number"}]},
    (_QUANTITY, True): {"type": "string"},
    (_INT_OR_STRING, False): {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    (_INT_OR_STRING, True): {"format": "int-or-string", "type": "string"},
}
_WORDS = {
    "map": "x-kubernetes-map-type",
    "patch": "x-kubernetes-patch-strategy",
    "by": "x-kubernetes-patch-merge-key",
}


class ComponentSchema(NamedTuple):
    """One schema of a document, encoded, and the names of those that it refers to."""

    raw: msgspec.Raw
    refers_to: tuple[str, ...] = ()


def reference(name: str, *, v2: bool = False) -> Json:
    """A reference to a component."""
    return {"$ref": f"#/definitions/{name}" if v2 else f"#/components/schemas/{name}"}


def name_of(group: str, version: str, kind: str) -> str | None:
    """The name of a built-in kind's definition, or None where there is none."""
    return table()[1].get(f"{group}/{version}/{kind}")


def custom_name(group: str, version: str, kind: str) -> str:
    """The name of a custom kind's definition: the group backwards, as Java would."""
    return ".".join([*reversed(group.split(".")), version, kind])


def gvk(group: str, version: str, kind: str) -> Json:
    """A kind, as extensions name it."""
    return {"group": group, "kind": kind, "version": version}


def with_all_referred(
    names: Iterable[str], own: dict[str, ComponentSchema], *, v2: bool = False
) -> dict[str, msgspec.Raw]:
    """The named components and all that they refer to, sorted by name. `own` come before built-in ones."""
    found: dict[str, msgspec.Raw] = {}
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            component = own.get(name) or builtin_component(name, v2)
            found[name] = component.raw
            left.extend(component.refers_to)
    return dict(sorted(found.items()))


@cache
def builtin_component(name: str, v2: bool) -> ComponentSchema:
    """A definition of the table. KeyError if there is none of that name."""
    refers_to: set[str] = set()
    content: Json = msgspec.json.decode(table()[2][name])
    schema: Json
    if (name, v2) in _TWO_TYPES:
        schema = _TWO_TYPES[name, v2]
    elif "type" in content:
        schema = _field(content["type"], refers_to, v2)
    else:
        schema = {"type": "object"}
        if content["fields"]:
            schema["properties"] = {key: _field(words, refers_to, v2) for key, words in content["fields"].items()}
        if "required" in content:
            schema["required"] = content["required"]
        if "map" in content:
            schema[_WORDS["map"]] = content["map"]
    if name in _kinds():
        schema = {**schema, GROUP_VERSION_KIND: [_kinds()[name]]}
    return ComponentSchema(msgspec.Raw(msgspec.json.encode(schema)), tuple(refers_to))


def delete_options(group: str, version: str, *, v2: bool = False) -> ComponentSchema:
    """DeleteOptions is a kind of every group: which ones, depends on the document."""
    plain = builtin_component(DELETE_OPTIONS, v2)
    kinds = [gvk("", "v1", "DeleteOptions")]
    if group:
        kinds.append(gvk(group, version, "DeleteOptions"))
    schema = {**msgspec.json.decode(plain.raw), GROUP_VERSION_KIND: kinds}
    return plain._replace(raw=msgspec.Raw(msgspec.json.encode(schema)))


@cache
def _kinds() -> dict[str, Json]:
    """The kind that each definition is, for those that are one."""
    return {name: gvk(*key.split("/")) for key, name in table()[1].items()}


def _field(words: str, refers_to: set[str], v2: bool) -> Json:
    """The schema of one field, from its words in the table."""
    kind, *rest = words.split(" ")
    said: Json = {}
    for word in rest:
        key, _, value = word.partition("=")
        if key == "list":
            list_type, _, keys = value.partition(":")
            said["x-kubernetes-list-type"] = list_type
            if keys:
                said["x-kubernetes-list-map-keys"] = keys.split(",")
        elif key == "default":
            said["default"] = msgspec.json.decode(value)
        elif key in _WORDS:
            said[_WORDS[key]] = value
    schema = _type(kind, refers_to, v2)
    if "$ref" not in schema:
        return {**schema, **said}
    return (
        {**schema, **said} if v2 else {"allOf": [schema], **said}
    )  # nothing may stand beside a reference in version 3


def _type(kind: str, refers_to: set[str], v2: bool) -> Json:
    if kind.startswith("@"):
        refers_to.add(kind[1:])
        return reference(kind[1:], v2=v2)
    if kind.startswith("[]"):
        return {"type": "array", "items": _type(kind[2:], refers_to, v2)}
    if kind.startswith("{}"):
        return {"type": "object", "additionalProperties": _type(kind[2:], refers_to, v2)}
    return _TYPES[kind]
