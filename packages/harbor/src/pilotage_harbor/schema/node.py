"""The shape of a value: one node of a schema, for built-in kinds and for custom resources alike.

A `SchemaNode` is built once and read on every request, so it is flat and its attributes are plain slots. The schemas of
built-in kinds refer to themselves (JSONSchemaProps) and are large, so a node can be made with a loader instead of its
parts: the first look at a part that is not there yet runs the loader, later looks cost nothing more.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


Value: TypeAlias = Any
"""Any decoded JSON value."""


class Unset(enum.Enum):
    """The type of `UNSET`: no default, as opposed to a default of null."""

    UNSET = "unset"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET


class Rule(NamedTuple):
    """One entry of x-kubernetes-validations, as it was written."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False


class SchemaNode:
    """Schema of a value. An attribute that is not set has its default."""

    __slots__ = (
        "_load",
        "additional",
        "all_of",
        "any_of",
        "default",
        "description",
        "embedded",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "format",
        "go_embedded",
        "go_name",
        "has_defaults",
        "has_embedded",
        "has_rules",
        "int_or_string",
        "items",
        "list_map_keys",
        "list_type",
        "map_type",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "not_",
        "nullable",
        "one_of",
        "patch_merge_key",
        "patch_strategy",
        "pattern",
        "prepared",
        "preserve_unknown",
        "programs",
        "properties",
        "required",
        "rules",
        "title",
        "type",
        "unique_items",
    )

    type: str
    """``object``, ``array``, ``string``, ``integer``, ``number``, ``boolean``, or "" for anything."""
    format: str
    properties: dict[str, SchemaNode]
    additional: SchemaNode | None
    """Schema of the values of a map."""
    items: SchemaNode | None
    required: tuple[str, ...]
    enum: tuple[Any, ...] | None
    nullable: bool
    default: Any
    """`UNSET`, or the value that an absent field gets. Copy it before it goes into an object."""
    has_defaults: bool
    """Whether there is a default at or below this node: where not, defaulting need not look. False for built-ins."""
    has_embedded: bool
    """Whether there are embedded objects at or below this node."""
    has_rules: bool
    """Whether there are rules at or below this node."""

    int_or_string: bool
    preserve_unknown: bool
    embedded: bool
    list_type: str
    """``atomic``, ``set``, ``map``, or "" where nothing is said (which means atomic)."""
    list_map_keys: tuple[str, ...]
    map_type: str
    """``granular``, ``atomic``, or "" where nothing is said (which means granular)."""
    patch_strategy: str
    """``merge``, ``replace``, ``retainKeys``, ``merge,retainKeys``, or ""."""
    patch_merge_key: str

    pattern: str | None
    minimum: float | None
    maximum: float | None
    exclusive_minimum: bool
    exclusive_maximum: bool
    multiple_of: float | None
    min_length: int | None
    max_length: int | None
    min_items: int | None
    max_items: int | None
    unique_items: bool
    min_properties: int | None
    max_properties: int | None

    all_of: tuple[SchemaNode, ...]
    any_of: tuple[SchemaNode, ...]
    one_of: tuple[SchemaNode, ...]
    not_: SchemaNode | None
    rules: tuple[Rule, ...]
    title: str
    description: str

    go_name: str
    """Go type of a built-in (``v1.PodSpec``), which the decoder names in its complaints. Else ""."""
    go_embedded: str
    """Struct that Go embeds and that a field of a built-in is really in. Else ""."""
    prepared: Any
    """Room for what `check` has worked out from this node. None at first."""
    programs: Any
    """Room for the compiled rules. None at first."""

    def __init__(self, **attributes: object) -> None:
        self._load: Callable[[SchemaNode], None] | None = None
        set_defaults(self)
        for name, value in attributes.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> object:
        # Only called for a slot that is still empty: a part of a lazy node.
        if name in _LAZY:
            load = self._load
            if load is not None:
                self._load = None
                load(self)
                return object.__getattribute__(self, name)
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<SchemaNode {self.go_name or self.type or 'any'}>"


_LAZY = frozenset(("properties", "additional", "items"))


def set_defaults(node: SchemaNode) -> None:
    """Give every attribute of a node the value that says nothing."""
    node.type = node.format = node.list_type = node.map_type = node.patch_strategy = node.patch_merge_key = ""
    node.title = node.description = node.go_name = node.go_embedded = ""
    node.properties = {}
    node.additional = node.items = node.not_ = node.enum = node.pattern = node.prepared = node.programs = None
    node.required = node.list_map_keys = node.all_of = node.any_of = node.one_of = node.rules = ()
    node.nullable = node.int_or_string = node.preserve_unknown = node.embedded = node.unique_items = False
    node.exclusive_minimum = node.exclusive_maximum = node.has_defaults = node.has_embedded = node.has_rules = False
    node.default = UNSET
    node.minimum = node.maximum = node.multiple_of = node.min_length = node.max_length = None
    node.min_items = node.max_items = node.min_properties = node.max_properties = None


def lazy(load: Callable[[SchemaNode], None], **attributes: object) -> SchemaNode:
    """A node whose `properties`, `additional` and `items` are set by `load` when one of them is first looked at.

    `load` must set all three. Everything else is given here.
    """
    node = SchemaNode(**attributes)
    for name in _LAZY:
        delattr(node, name)
    node._load = load
    return node
