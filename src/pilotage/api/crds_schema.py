"""From pydantic's JSON schema to a structural one, which is all that a CustomResourceDefinition may have.

Structural means: no references, every value has one type, and alternatives are an exception that has a name of its own
(`x-kubernetes-int-or-string`). A keyword that is not known here is an error and not a constraint that is lost.

Nothing is without a bound: where a type has none, a text, a list and a map get one here that is larger than anything
that makes sense, so that the API server refuses what could stall those who read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube import Json

_KEPT = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
TEXT_MAX = 32768
ITEMS_MAX = 10_000
"""A ledger of an endpoint with a thousand replicas has some thousand entries while one revision follows another."""
ENTRIES_MAX = 1000
_HANDLED = ("$defs", "$ref", "anyOf", "title", "default", "required", "properties", "items", "additionalProperties")


class NotStructural(ValueError):
    """A type that no structural schema can describe."""


def structural(schema: Json, rules: Mapping[str, list[Json]]) -> Json:
    """The structural schema of a type; `rules` are the x-kubernetes-validations of the types it uses, by their names.

    A part that may be left out, and has defaults within, has all of them as its own: rules hold for a default as it is
    written, before what is missing within it is filled in.
    """
    return _Maker(schema.get("$defs", {}), rules).made(schema)


class _Maker:
    def __init__(self, definitions: Json, rules: Mapping[str, list[Json]]) -> None:
        self._definitions = definitions
        self._rules = rules

    def made(self, schema: Json) -> Json:
        schema = self._resolved(schema)
        if unknown := set(schema) - {*_KEPT, *_HANDLED, "x-kubernetes-int-or-string"}:
            raise NotStructural(f"{schema.get('title', schema)}: {', '.join(sorted(unknown))}")
        made = {name: schema[name] for name in _KEPT if name in schema}
        if schema.get("default") is not None:
            made["default"] = schema["default"]
        if "x-kubernetes-int-or-string" in schema:
            return made | {"x-kubernetes-int-or-string": True}
        made |= _bound(schema)
        if schema.get("type") == "object":
            made |= self._object(schema)
        elif schema.get("type") == "array":
            made["items"] = self.made(schema["items"])
        elif "type" not in schema:
            raise NotStructural(f"{schema} has no type")
        if "properties" in made and (rules := self._rules.get(schema["title"])):
            made["x-kubernetes-validations"] = rules
        return made

    def _resolved(self, schema: Json) -> Json:
        """Without a reference and without alternatives. What stands beside them wins over what they say."""
        beside = {name: value for name, value in schema.items() if name not in ("$ref", "anyOf")}
        if "$ref" in schema:
            return {**self._definitions[schema["$ref"].rpartition("/")[2]], **beside}
        if "anyOf" not in schema:
            return schema
        choices = [self._resolved(each) for each in schema["anyOf"] if each != {"type": "null"}]
        if len(choices) == 1:
            title = choices[0].get("title", "")
            return {**choices[0], **beside, "title": title}
        if {each.get("type") for each in choices} == {"integer", "string"} and len(choices) == 2:
            text = next(each for each in choices if each["type"] == "string")
            checks: Json = {name: text[name] for name in ("pattern", "maxLength") if name in text}
            return {**beside, **checks, "x-kubernetes-int-or-string": True}
        raise NotStructural(f"{schema} is one of several things")

    def _object(self, schema: Json) -> Json:
        made: Json = {}
        if "properties" in schema:
            required = schema.get("required", [])
            made["properties"] = {
                name: self._property(each, required=name in required) for name, each in schema["properties"].items()
            }
            if required:
                made["required"] = required
        values = schema.get("additionalProperties", False)
        if values is True:
            made["x-kubernetes-preserve-unknown-fields"] = True
        elif values:
            made["additionalProperties"] = self.made(values)
        return made

    def _property(self, schema: Json, *, required: bool) -> Json:
        made = self.made(schema)
        optional = "anyOf" in schema  # and without it is something else than with its defaults
        within = {name: each["default"] for name, each in made.get("properties", {}).items() if "default" in each}
        if not required and not optional and within:
            made.setdefault("default", within)
        return made


def _bound(schema: Json) -> Json:
    """The bound of a value that has none of its own."""
    if schema.get("type") == "string" and "enum" not in schema:
        return {} if "maxLength" in schema else {"maxLength": TEXT_MAX}
    if schema.get("type") == "array":
        return {} if "maxItems" in schema else {"maxItems": ITEMS_MAX}
    if schema.get("type") == "object" and schema.get("additionalProperties"):
        return {} if "maxProperties" in schema else {"maxProperties": ENTRIES_MAX}
    return {}
