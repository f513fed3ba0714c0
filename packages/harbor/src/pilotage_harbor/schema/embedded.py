"""Objects inside custom resources (x-kubernetes-embedded-resource): what they need to be objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.builtin import OBJECT_META, definition
from pilotage_harbor.schema.causes import child, invalid, key, required
from pilotage_harbor.schema.decode import decode_problem

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.schema.node import SchemaNode, Value

Json = dict[str, Any]

_LABEL = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_HELP = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def embedded_problems(schema: SchemaNode, obj: Value) -> list[StatusCause]:
    """Problems of the objects inside an object. The object itself is not looked at."""
    causes: list[StatusCause] = []
    if schema.has_embedded:
        _walk(schema, obj, "", causes)
    return causes


def _walk(node: SchemaNode, value: Value, path: str, causes: list[StatusCause]) -> None:
    if isinstance(value, dict):
        if node.embedded:
            causes += _problems(value, path)
        for name, part in value.items():
            known = node.properties.get(name)
            if known is not None:
                if known.has_embedded:
                    _walk(known, part, child(path, name), causes)
            elif node.additional is not None:
                _walk(node.additional, part, key(path, name), causes)
    elif isinstance(value, list) and node.items is not None:
        for at, part in enumerate(value):
            _walk(node.items, part, f"{path}[{at}]", causes)


def _problems(value: Json, path: str) -> list[StatusCause]:
    causes = [required(child(path, name)) for name in ("apiVersion", "kind") if name not in value]
    if "apiVersion" in value:
        causes += _api_version_problems(value["apiVersion"], child(path, "apiVersion"))
    if "kind" in value:
        causes += _kind_problems(value["kind"], child(path, "kind"))
    if "metadata" in value:
        problem = decode_problem(definition(OBJECT_META), value["metadata"], "ObjectMeta")
        if problem:
            causes.append(invalid(child(path, "metadata"), value["metadata"], problem))
    return causes


def _api_version_problems(value: object, path: str) -> list[StatusCause]:
    if not isinstance(value, str):
        return [invalid(path, value, "must be a string")]
    if not value:
        return [invalid(path, value, "must not be empty")]
    if value.count("/") > 1:
        return [invalid(path, value, f"unexpected GroupVersion string: {value}")]
    return []


def _kind_problems(value: object, path: str) -> list[StatusCause]:
    if not isinstance(value, str):
        return [invalid(path, value, "must be a string")]
    if not value:
        return [invalid(path, value, "must not be empty")]
    if not _LABEL.fullmatch(value.lower()) or len(value) > 63:
        return [invalid(path, value, f"may have mixed case, but should otherwise match: {_LABEL_HELP}")]
    return []
