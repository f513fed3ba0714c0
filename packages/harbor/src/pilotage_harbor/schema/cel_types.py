"""The types that a rule sees, from the schema of its place: so that a rule that cannot work is refused.

CEL knows structured types only as protobuf messages. So the schema becomes a set of message descriptors, which exist
for checking alone: rules run on plain dicts.
"""

from __future__ import annotations

from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

from pilotage_harbor.schema.cel_names import escape
from pilotage_harbor.schema.node import SchemaNode

_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "selftype"
_WELL_KNOWN = {"timestamp": "Timestamp", "duration": "Duration", "dyn": "Value"}
_SCALARS = {
    "string": (_Field.TYPE_STRING, cel.Type.STRING),
    "int": (_Field.TYPE_INT64, cel.Type.INT),
    "double": (_Field.TYPE_DOUBLE, cel.Type.DOUBLE),
    "bool": (_Field.TYPE_BOOL, cel.Type.BOOL),
    "bytes": (_Field.TYPE_BYTES, cel.Type.BYTES),
}
_TYPES = {"timestamp": cel.Type.TIMESTAMP, "duration": cel.Type.DURATION, "dyn": cel.Type.DYN}
_STRING_FORMATS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_JSON_SCALARS = {"integer": "int", "number": "double", "boolean": "bool"}


def scalar(node: SchemaNode) -> str:
    """The CEL type of a node that is no list, map or object: "" if it is none of those either."""
    if node.int_or_string:
        return "dyn"
    if node.type == "string":
        return _STRING_FORMATS.get(node.format, "string")
    return _JSON_SCALARS.get(node.type, "")


class SelfType:
    """The type of ``self`` for the rules of one node, and the pool in which its messages are."""

    def __init__(self, node: SchemaNode, *, root: bool) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(
            name="self.proto",
            package=_PACKAGE,
            syntax="proto2",  # proto3 has no room for both ``aB`` and ``a_b``
            dependency=[module.DESCRIPTOR.name for module in (duration_pb2, struct_pb2, timestamp_pb2)],
        )
        self.type = self._variable(node, root=root)
        """None if rules cannot see anything here."""
        self.pool = descriptor_pool.DescriptorPool()
        for module in (duration_pb2, struct_pb2, timestamp_pb2):
            self.pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        self.pool.AddSerializedFile(self._file.SerializeToString())

    def _variable(self, node: SchemaNode, *, root: bool = False) -> Any:  # noqa: ANN401 - the stub has no name for it
        name = scalar(node)
        if name:
            return _TYPES.get(name) or _SCALARS[name][1]
        if node.type == "array" and node.items is not None:
            element = self._variable(node.items, root=node.items.embedded)
            return cel.Type.List(element) if element is not None else None
        if node.type != "object":
            return None
        if node.additional is not None and not root:
            element = self._variable(node.additional, root=node.additional.embedded)
            return cel.Type.Map(cel.Type.STRING, element) if element is not None else None
        return cel.Type(f"{_PACKAGE}.{self._message(node, root=root)}")

    def _message(self, node: SchemaNode, *, root: bool) -> str:
        name = f"Object{len(self._file.message_type)}"
        message = self._file.message_type.add(name=name)
        for property_name, part in node.properties.items():
            if part.go_name:
                continue
            if property_name == "metadata" and (root or node.embedded):
                self._field(message, "metadata", _META, repeated=False)
                continue
            if escaped := escape(property_name):
                self._property(message, escaped, part)
        return name

    def _property(self, message: descriptor_pb2.DescriptorProto, name: str, node: SchemaNode) -> None:
        if node.type == "array" and node.items is not None and not node.int_or_string:
            if self._variable_exists(node.items):
                # A list of lists or of maps has no field type: its elements are then of any type.
                self._field(message, name, node.items, repeated=True)
        elif node.type == "object" and node.additional is not None and not node.embedded:
            if self._variable_exists(node.additional):
                self._map(message, name, node.additional)
        elif scalar(node) or node.type == "object":
            self._field(message, name, node, repeated=False)

    def _variable_exists(self, node: SchemaNode) -> bool:
        if scalar(node):
            return True
        if node.type == "array":
            return node.items is not None and self._variable_exists(node.items)
        return node.type == "object" and (node.additional is None or self._variable_exists(node.additional))

    def _field(self, message: descriptor_pb2.DescriptorProto, name: str, node: SchemaNode, *, repeated: bool) -> None:
        number = len(message.field) + 1
        label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        field = message.field.add(name=name, number=number, label=label, json_name=f"f{number}")
        kind = scalar(node)
        if kind in _SCALARS:
            field.type = _SCALARS[kind][0]
            return
        field.type = _Field.TYPE_MESSAGE
        if kind or node.type == "array" or node.additional is not None:
            field.type_name = f".google.protobuf.{_WELL_KNOWN[kind or 'dyn']}"
        else:
            field.type_name = f".{_PACKAGE}.{self._message(node, root=node.embedded)}"

    def _map(self, message: descriptor_pb2.DescriptorProto, name: str, node: SchemaNode) -> None:
        # protobuf wants exactly this name for the entries of a map.
        entry_name = f"{''.join(word[:1].upper() + word[1:] for word in name.split('_'))}Entry"
        if any(entry.name == entry_name for entry in message.nested_type):
            self._field(message, name, _ANYTHING, repeated=False)
            return
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
        number = len(message.field) + 1
        field = message.field.add(name=name, number=number, label=_Field.LABEL_REPEATED, json_name=f"f{number}")
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry_name}"
        self._field(entry, "value", node, repeated=False)


_META = SchemaNode(type="object", properties={name: SchemaNode(type="string") for name in ("name", "generateName")})
_ANYTHING = SchemaNode(int_or_string=True)
