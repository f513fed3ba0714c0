"""Structural schemas of API types, which is all that a CustomResourceDefinition may have.

Structural means: no references, every value has one type, and alternatives are an exception that has a name of its own
(`x-kubernetes-int-or-string`). A constraint that is not known here is an error and not a constraint that is lost.

Nothing is without a bound: where a type has none, a text, a list and a map get one here that is larger than anything
that makes sense, so that the API server refuses values that could stall its clients.

Descriptions are the docstrings of types and the texts below fields. Python does not keep the latter, so they are read
from the source.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import FieldInfo

from pilotage.kube import Json

TEXT_MAX = 32768
ITEMS_MAX = 10_000
"""A ledger of an endpoint with a thousand replicas has some thousand entries while one revision follows another."""
ENTRIES_MAX = 1000
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_CONSTRAINTS = {"ge": "minimum", "le": "maximum", "pattern": "pattern", "description": "description"}
_UNKNOWN = ("gt", "lt", "multiple_of", "tz", "title", "examples", "extra")

Rules: TypeAlias = "Mapping[type[msgspec.Struct], list[Json]]"


class NotStructural(ValueError):
    """A type that no structural schema can describe."""


def structural(type_: Any, rules: Rules) -> Json:  # noqa: ANN401 - a type with its annotations
    """The structural schema of a type; `rules` are the x-kubernetes-validations of the structs in it.

    A struct that may be left out, and has defaults within, has all of them as its own default: rules hold for a default
    as it is written, before missing fields within it are filled in.
    """
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Annotated:
        made = structural(arguments[0], rules)
        for meta in arguments[1:]:
            made |= _keywords(meta, made)
    elif origin in (Union, UnionType):
        made = _union([structural(each, rules) for each in arguments if each is not NoneType])
    elif origin is Literal:
        made = {"type": "string", "enum": list(arguments)}
    elif origin is list:
        made = {"type": "array", "items": _bounded(structural(arguments[0], rules))}
    elif origin is dict:
        made = {"type": "object"} | _values(arguments[1], rules)
    elif inspect.isclass(type_) and issubclass(type_, msgspec.Struct):
        made = _struct(type_, rules)
    elif type_ in _SCALARS:
        made = {"type": _SCALARS[type_]}
    else:
        raise NotStructural(f"{type_} has no place in a structural schema")
    return made


def _keywords(meta: msgspec.Meta, schema: Json) -> Json:
    if unknown := [name for name in _UNKNOWN if getattr(meta, name) is not None]:
        raise NotStructural(f"{schema}: {', '.join(unknown)}")
    made: Json = {}
    for name, keyword in _CONSTRAINTS.items():
        if (value := getattr(meta, name)) is not None:
            made[keyword] = value
    for name, side in (("min_length", "min"), ("max_length", "max")):
        if (value := getattr(meta, name)) is not None:
            made[f"{side}{_LENGTHS[schema['type']]}"] = value
    return made | (meta.extra_json_schema or {})


def _union(choices: list[Json]) -> Json:
    if len(choices) == 1:
        return choices[0]
    by_type = {each.get("type"): each for each in choices}
    if by_type.keys() != {"integer", "string"}:
        raise NotStructural(f"{choices}: is one of several things")
    checks = {name: value for name, value in by_type["string"].items() if name != "type"}
    return {**checks, "x-kubernetes-int-or-string": True}


def _values(type_: Any, rules: Rules) -> Json:  # noqa: ANN401 - a type
    if type_ is Any:
        return {"x-kubernetes-preserve-unknown-fields": True}
    return {"additionalProperties": _bounded(structural(type_, rules))}


def _struct(type_: type[msgspec.Struct], rules: Rules) -> Json:
    hints = get_type_hints(type_, include_extras=True)
    texts = _texts_of_fields(type_.__module__)[type_.__name__]
    fields = [each for each in msgspec.structs.fields(type_) if each.name != "metadata"]
    made: Json = {
        "description": _unwrapped(type_.__doc__ or ""),
        "type": "object",
        "properties": {each.encode_name: _property(each, hints[each.name], texts, rules) for each in fields},
    }
    if required := [each.encode_name for each in fields if each.required]:
        made["required"] = required
    if type_ in rules:
        made["x-kubernetes-validations"] = rules[type_]
    return made


def _property(field: FieldInfo, hint: Any, texts: Mapping[str, str], rules: Rules) -> Json:  # noqa: ANN401 - a type
    made = _bounded(structural(hint, rules))
    if field.name in texts:
        made = {"description": texts[field.name]} | made | {"description": texts[field.name]}
    default = field.default
    if isinstance(default, msgspec.Struct):
        within = {name: each["default"] for name, each in made["properties"].items() if "default" in each}
        return made | ({"default": within} if within else {})
    return made if default is None or default is msgspec.NODEFAULT else made | {"default": default}


@cache
def _texts_of_fields(module: str) -> dict[str, dict[str, str]]:
    """The descriptions of fields, by class and by field."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: dict(_texts(each.body)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _texts(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            yield field.target.id, _unwrapped(ast.literal_eval(text.value))


def _unwrapped(text: str) -> str:
    """A docstring with one line for each paragraph."""
    return "\n".join(" ".join(each.split()) for each in text.split("\n\n"))


def _bounded(schema: Json) -> Json:
    """The schema with the bound of a value that has none of its own."""
    if schema.get("type") == "string" and "enum" not in schema:
        return {"maxLength": TEXT_MAX} | schema
    if schema.get("type") == "array":
        return {"maxItems": ITEMS_MAX} | schema
    if "additionalProperties" in schema or "x-kubernetes-preserve-unknown-fields" in schema:
        return {"maxProperties": ENTRIES_MAX} | schema
    return schema
