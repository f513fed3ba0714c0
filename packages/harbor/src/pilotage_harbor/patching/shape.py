"""Ownership by schema: which values are owned as a whole, and how the elements of a list are told apart.

An `OwnershipShape` is derived from a `SchemaNode` once, and only as far as objects reach into it. It has four kinds:

- a leaf is owned as a whole: a scalar, or a list or map that is atomic (which is what a list is if nothing is said);
- a map is owned member by member: a struct, a map, and an object that no schema describes;
- a list map is owned element by element, which are known by their keys;
- a list set is owned value by value.

Built-in kinds are Go structs in kube-apiserver, and that shows: some members are always there, and an empty list is
none. A shape with `go` follows these rules, so that the same object gets the same managedFields.
"""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from pilotage_harbor.patching.go_structs import always_there
from pilotage_harbor.schema.builtin import definition
from pilotage_harbor.schema.node import UNSET, SchemaNode

if TYPE_CHECKING:
    from pilotage_harbor.patching.values import Value

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

LEAF, MAP, LIST_MAP, LIST_SET = range(4)

NEVER, IF_NULL, IF_EMPTY = range(3)


Field = tuple[str, "OwnershipShape | None", int]
"""A member of a map: its path element in FieldsV1; its shape, None for a leaf; and which values mean that it is not
there, though they are written: none (`NEVER`), null, or also an empty list or map. A plain tuple, for speed."""

_MEMO_MAX = 4096


class OwnershipShape:
    """Ownership of a value. What is below it is worked out when it is first asked for."""

    __slots__ = (
        "_preserve",
        "_schema",
        "_shapes",
        "always",
        "always_elements",
        "declared",
        "elements",
        "fields",
        "flat",
        "go",
        "item",
        "keys",
        "kind",
        "loose",
        "other",
        "scalar",
    )

    fields: dict[str, Field]
    """The declared members."""
    declared: dict[str, SchemaNode]
    other: OwnershipShape | None
    """The shape of all other members; None if there can be none."""
    flat: bool
    """Whether it is a map of leaves, without declared members."""
    loose: bool
    """Whether it describes itself: any value is allowed."""
    always: dict[str, Any]
    """Members that a Go struct always has, with the value that stands for their absence."""
    always_elements: tuple[str, ...]
    """Those of them that are owned where the struct is."""
    item: OwnershipShape
    """Shape of the elements of a list."""
    keys: tuple[tuple[str, Any], ...]
    """Keys of a list map in alphabetical order, each with its value if it is left out (or UNSET)."""
    elements: dict[Any, str] | None
    """Path elements of a list map that were written before, by key. None where keys cannot be told apart by value."""

    def __init__(self, schema: SchemaNode, shapes: _Shapes, *, go: bool, preserve: bool) -> None:
        self._schema = schema
        self._shapes = shapes
        self._preserve = preserve or schema.preserve_unknown
        self.go = go
        self.kind = _kind(schema)
        self.scalar = ""
        """Type of a leaf that server-side apply insists on, or "" for any value."""
        if schema.type not in ("object", "array") and not (
            schema.type == "string" and schema.format not in ("", "byte")
        ):
            self.scalar = schema.type

    def __getattr__(self, name: str) -> Value:
        # Only called for a slot that is still empty: a part that nobody asked for yet.
        if name not in _LAZY:
            raise AttributeError(name)
        if self.kind == MAP:
            self._fill_map()
        else:
            self._fill_list()
        return object.__getattribute__(self, name)

    def field(self, name: str) -> Field:
        """A member that is not declared."""
        other = self.other
        return f"f:{name}", None if other is None or other.kind == LEAF else other, NEVER

    def member(self, name: str) -> OwnershipShape | None:
        """The shape of a member, a leaf's too; None if there can be no such member."""
        schema = self.declared.get(name)
        return self.other if schema is None else self._below(schema)

    def _below(self, schema: SchemaNode) -> OwnershipShape:
        key = (id(schema), self._preserve)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = OwnershipShape(schema, self._shapes, go=self.go, preserve=self._preserve)
        return shape

    def _fill_map(self) -> None:
        schema = self._schema
        self.declared = schema.properties
        if schema.embedded:
            self.declared = {**schema.properties, **_OBJECT}
        self.other = None
        if schema.additional is not None:
            self.other = self._below(schema.additional)
        elif self._preserve or not schema.properties:
            self.other = DEDUCED
        self.flat = not self.declared and self.other is not None and self.other.kind == LEAF
        self.loose = not schema.type or self is DEDUCED
        self.fields = {name: self._field(name, part) for name, part in self.declared.items()}
        self.always = always_there(schema) if self.go else {}
        self.always_elements = tuple(f"f:{name}" for name, value in self.always.items() if value is None or value == {})

    def _field(self, name: str, schema: SchemaNode) -> Field:
        shape = self._below(schema)
        absent = NEVER
        if self.go:
            # A slice or a map that is empty is left out; a pointer to an empty struct is not.
            is_map = schema.type == "object" and (not schema.go_name or schema.go_name.startswith("map["))
            absent = IF_EMPTY if schema.type == "array" or is_map else IF_NULL
        return f"f:{name}", None if shape.kind == LEAF else shape, absent

    def _fill_list(self) -> None:
        schema = self._schema
        items = schema.items
        if items is None:
            raise AttributeError("items")
        keys = _list_keys(schema)
        self.item = self._below(items)
        self.keys = tuple((key, _key_default(items, key, go=self.go)) for key in sorted(keys))
        types = {part.type for key in keys if (part := items.properties.get(key)) is not None}
        self.elements = {} if types and types <= {"string", "integer"} else None


_Shapes = dict[tuple[int, bool], OwnershipShape]
"""The shapes of one tree of schemas, by node and by whether unknown members are kept. They keep the nodes alive."""
_LAZY = frozenset(
    ("always", "always_elements", "declared", "elements", "fields", "flat", "item", "keys", "loose", "other")
)


def _kind(schema: SchemaNode) -> int:
    if schema.int_or_string or schema.go_name in _WHOLE or schema.format == "quantity":
        return LEAF
    if schema.type in ("object", ""):
        return LEAF if schema.map_type == "atomic" else MAP
    if schema.type == "array" and schema.items is not None and _is_associative(schema):
        return LIST_MAP if _list_keys(schema) else LIST_SET
    return LEAF


def _is_associative(schema: SchemaNode) -> bool:
    if schema.list_type:
        return schema.list_type != "atomic"
    return "merge" in schema.patch_strategy.split(",")


def _list_keys(schema: SchemaNode) -> tuple[str, ...]:
    if schema.list_type:
        return schema.list_map_keys if schema.list_type == "map" else ()
    return (schema.patch_merge_key,) if schema.patch_merge_key else ()


def _key_default(items: SchemaNode, key: str, *, go: bool) -> Value:
    part = items.properties.get(key)
    if part is None or part.default is not UNSET or not go:
        return UNSET if part is None else part.default
    # A string or a number of a Go struct is never missing, only empty.
    return {"string": "", "integer": 0}.get(part.type, UNSET)


# Go types that are owned as a whole though their schema would allow to look inside.
_WHOLE = frozenset(("runtime.RawExtension", "resource.Quantity", "intstr.IntOrString", "v1.Time", "v1.MicroTime"))

_STRING = SchemaNode(type="string")
_OBJECT = {"apiVersion": _STRING, "kind": _STRING, "metadata": definition(OBJECT_META)}
"""Members of every object: of a custom resource, and of one that is part of another."""
DEDUCED = OwnershipShape(SchemaNode(preserve_unknown=True), {}, go=False, preserve=True)
"""Shape of values without a schema: objects are owned member by member, all else as a whole."""

_BUILTIN: _Shapes = {}


@lru_cache(maxsize=4096)
def shape_of(schema: SchemaNode) -> OwnershipShape:
    """The shape of the objects of a kind, by the schema of the kind."""
    if schema.go_name:
        return OwnershipShape(schema, _BUILTIN, go=True, preserve=False)
    root = SchemaNode(
        type="object",
        properties={**schema.properties, **_OBJECT},
        additional=schema.additional,
        preserve_unknown=schema.preserve_unknown or (not schema.properties and schema.additional is None),
        map_type=schema.map_type,
    )
    return OwnershipShape(root, {}, go=False, preserve=False)


def list_element(shape: OwnershipShape, value: Value) -> str | None:
    """The path element of an element of a list map or list set; None if it cannot have one."""
    if shape.kind == LIST_SET:
        return None if value is None or type(value) in (dict, list) else f"v:{json_text(value)}"
    if type(value) is not dict:
        return None
    keys = shape.keys
    written = shape.elements
    if len(keys) == 1:
        name, default = keys[0]
        key = value.get(name, default)
    else:
        key = tuple([value.get(name, default) for name, default in keys])
    if written is not None:
        try:
            return written[key]
        except (KeyError, TypeError):
            pass
    values = (key,) if len(keys) == 1 else key
    parts = [f'"{name}":{json_text(part)}' for (name, _), part in zip(keys, values, strict=True) if part is not UNSET]
    if not parts:
        return None
    element = f"k:{{{','.join(parts)}}}"
    if written is not None and all(type(part) in (str, int) for part in values):
        if len(written) >= _MEMO_MAX:
            written.clear()
        written[key] = element
    return element


def json_text(value: Value) -> str:
    """A value as Go writes it in JSON. Keys of list maps are scalars, unless a client sends something else."""
    if type(value) is str:
        text = encode_basestring(value)
        if "<" in text or ">" in text or "&" in text:
            text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        return text
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) in (dict, list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)
