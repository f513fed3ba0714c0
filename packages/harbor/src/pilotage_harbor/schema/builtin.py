"""The schemas of the built-in kinds, read from the table that `make.py` makes.

Only the lines are split at first; a definition is parsed when an object of it is looked at. So asking for one kind is
cheap, and the whole table never has to be built.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.node import SchemaNode, lazy

if TYPE_CHECKING:
    from collections.abc import Callable

# word of the table: type, format, Go type
_SCALARS = {
    "string": ("string", "", "string"),
    "bytes": ("string", "byte", "[]uint8"),
    "time": ("string", "date-time", ""),
    "int32": ("integer", "int32", "int32"),
    "int64": ("integer", "int64", "int64"),
    "double": ("number", "double", "float64"),
    "boolean": ("boolean", "", "bool"),
    "object": ("object", "", ""),
    "any": ("", "", ""),
}
_OBJECT_SCALARS = ("object", "any")
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCHEMA_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"

# Types that decode themselves, so their published schema says too little.
_SPECIAL: dict[str, dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"format": "quantity"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string", "int_or_string": True},
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"type": "object", "preserve_unknown": True},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", "preserve_unknown": True, "embedded": True},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": {"type": "object", "preserve_unknown": True},
    _SCHEMA_PROPS.removesuffix("SchemaProps"): {"preserve_unknown": True},
}
UNION = "union"
"""The format of a built-in that is a schema or something else (a boolean, a list): it reads itself, never strictly."""


@cache
def table() -> tuple[str, dict[str, str], dict[str, str]]:
    """The version, the definition of each kind, and the line of each definition."""
    text = Path(__file__).with_name("builtin.txt").read_text()
    version, kinds = text[: text.index("\n")].split("\t")
    lines = dict(line.split("\t", 1) for line in text.splitlines()[1:])
    return version, json.loads(kinds), lines


def kubernetes_version() -> str:
    """The version of Kubernetes that the table was made from."""
    return table()[0]


@cache
def builtin(group: str, version: str, kind: str) -> SchemaNode:
    """The schema of a built-in kind ("" is the core group). KeyError if Kubernetes has none of that name."""
    return definition(table()[1][f"{group}/{version}/{kind}"])


@cache
def definition(name: str) -> SchemaNode:
    """The schema of one definition, by the name it is published under."""
    return _reference(name, {})


def _reference(name: str, said: dict[str, Any]) -> SchemaNode:
    """A node for a definition, with what the field that refers to it says in addition."""
    if name in _SPECIAL:
        return SchemaNode(go_name=_go_name(name), **{**_SPECIAL[name], **said})
    if name.startswith(_SCHEMA_PROPS + "Or"):
        return lazy(_load_parts(_SCHEMA_PROPS), go_name=_go_name(name), format=UNION, **said)
    content = _content(name)
    if "type" in content:
        node = _field(content["type"])
        node.go_name = _go_name(name)
        for key, value in said.items():
            setattr(node, key, value)
        return node
    said.setdefault("map_type", content.get("map", ""))
    required = tuple(content.get("required", ()))
    return lazy(_load_parts(name), type="object", go_name=_go_name(name), required=required, **said)


@cache
def _content(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(table()[2][name])
    return content


@cache
def _properties(name: str) -> dict[str, SchemaNode]:
    return {key: _field(words) for key, words in _content(name)["fields"].items()}


def _load_parts(name: str) -> Callable[[SchemaNode], None]:
    def load(node: SchemaNode) -> None:
        node.additional = node.items = None
        node.properties = _properties(name)

    return load


def _field(words: str) -> SchemaNode:
    kind, *rest = words.split(" ")
    said: dict[str, Any] = {}
    go_name = ""
    for word in rest:
        key, _, value = word.partition("=")
        if key == "go":
            go_name = value
        else:
            said.update(_said(key, value))
    return _node(kind, said, go_name)


_WORDS = {"map": "map_type", "patch": "patch_strategy", "by": "patch_merge_key", "in": "go_embedded"}


def _said(key: str, value: str) -> dict[str, Any]:
    if key == "list":
        list_type, _, keys = value.partition(":")
        return {"list_type": list_type, "list_map_keys": tuple(keys.split(",")) if keys else ()}
    if key == "default":
        return {"default": json.loads(value)}
    return {_WORDS[key]: value}


def _node(kind: str, said: dict[str, Any], go_name: str) -> SchemaNode:
    """One node. `go_name` may name this type, or (with its brackets) that of the elements."""
    if kind.startswith("@"):
        return _reference(kind[1:], said)
    if kind.startswith("[]"):
        items = _node(kind[2:], {}, go_name.removeprefix("[]"))
        own = go_name if go_name and not go_name.startswith("[]") else f"[]{items.go_name}"
        return SchemaNode(type="array", items=items, go_name=own, **said)
    if kind.startswith("{}"):
        key, bracket, element = go_name.partition("]")
        additional = _node(kind[2:], {}, element if bracket else "")
        own = go_name if go_name and not bracket else f"{key or 'map[string'}]{additional.go_name}"
        return SchemaNode(type="object", additional=additional, go_name=own, **said)
    json_type, json_format, go_type = _SCALARS[kind]
    preserve = kind in _OBJECT_SCALARS
    return SchemaNode(type=json_type, format=json_format, go_name=go_name or go_type, preserve_unknown=preserve, **said)


def _go_name(name: str) -> str:
    """``v1.PodSpec`` of ``io.k8s.api.core.v1.PodSpec``: the package's last part and the type."""
    return ".".join(name.rsplit(".", 2)[1:])
