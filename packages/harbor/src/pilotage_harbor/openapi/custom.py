"""The schemas of custom kinds, as a document carries them: what their definition says, with the metadata made plain.

Version 2 has no words for much of it (alternatives, null, unknown fields), and clients of it refuse what is not
described; so there everything that cannot be said is left open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.openapi.components import GROUP_VERSION_KIND, META, ComponentSchema, custom_name, gvk, reference

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json, Kind

OBJECT_META = META + "ObjectMeta"
LIST_META = META + "ListMeta"

_API_VERSION = {"type": "string", "description": "The group and version of the API that this object is written in."}
_KIND = {"type": "string", "description": "What this object is, in CamelCase."}
_METADATA = "What every object has: its name, its labels, who owns it."
_LIST_METADATA = "At which version the list was read, and how to go on with it."

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_EITHER = [{"type": "integer"}, {"type": "string"}]
# False is what an absent one means, too
_FLAGS = ("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", _PRESERVE, _EMBEDDED, _INT_OR_STRING)


def custom_components(kind: Kind, crd: Json | None, *, v2: bool = False) -> dict[str, ComponentSchema]:
    """The components of a custom kind and of its list. Without its definition it is any object."""
    name = custom_name(kind.group, kind.version, kind.kind)
    version = _version(kind, crd)
    selectable = [{"fieldPath": each["jsonPath"].removeprefix(".")} for each in version.get("selectableFields") or ()]
    said = {"x-kubernetes-selectable-fields": selectable} if selectable else {}
    schema = {**_object(version, v2), GROUP_VERSION_KIND: [gvk(kind.group, kind.version, kind.kind)], **said}
    items = {"type": "array", "items": reference(name, v2=v2), "description": f"The {kind.plural}."}
    listed = {
        "type": "object",
        "description": f"A list of {kind.plural}.",
        "required": ["items"],
        "properties": {
            "apiVersion": _API_VERSION,
            "items": items,
            "kind": _KIND,
            "metadata": _described_reference(LIST_META, _LIST_METADATA, v2),
        },
        GROUP_VERSION_KIND: [gvk(kind.group, kind.version, kind.list_kind)],
        **said,
    }
    return {
        name: ComponentSchema(_raw(schema), (OBJECT_META,)),
        custom_name(kind.group, kind.version, kind.list_kind): ComponentSchema(_raw(listed), (name, LIST_META)),
    }


def _version(kind: Kind, crd: Json | None) -> Json:
    versions = (crd or {}).get("spec", {}).get("versions", ())
    return next((version for version in versions if version["name"] == kind.version), {})


def _object(version: Json, v2: bool) -> Json:
    """The whole object. One without any schema has no properties at all: clients would take others for wrong."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None or (v2 and schema.get(_PRESERVE)):
        return {"type": "object"}
    made = _node(schema, v2)
    if "properties" in made or not v2:
        made["properties"] = {**made.get("properties", {}), **_type_meta(v2)}
    return made


def _type_meta(v2: bool) -> Json:
    metadata = _described_reference(OBJECT_META, _METADATA, v2)
    return {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata}


def _described_reference(name: str, description: str, v2: bool) -> Json:
    to = reference(name, v2=v2)
    return {**to, "description": description} if v2 else {"allOf": [to], "description": description}


def _node(schema: Json, v2: bool) -> Json:
    made = {key: value for key, value in schema.items() if value is not None and not (value is False and key in _FLAGS)}
    if v2:
        _say_less(made)
    elif made.get(_INT_OR_STRING):
        _say_either(made)
    if "properties" in made:
        made["properties"] = {name: _node(part, v2) for name, part in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _node(made[key], v2)
    if made.get(_EMBEDDED) and not (v2 and made.get(_PRESERVE)):
        made["properties"] = {**made.get("properties", {}), **_type_meta(v2)}
        required = list(made.get("required") or ())
        made["required"] = required + [name for name in ("kind", "apiVersion") if name not in required]
    return made


def _say_either(made: Json) -> None:
    """An integer or a string, in words that every client understands, unless they are there already."""
    any_of, all_of = made.get("anyOf"), made.get("allOf") or []
    if any_of is None and not (all_of and all_of[0].get("anyOf") == _EITHER):
        made["anyOf"] = _EITHER
    elif any_of is not None and any_of != _EITHER:
        made["allOf"] = [{"anyOf": _EITHER}, *all_of]


def _say_less(made: Json) -> None:
    """Leave out what version 2 cannot say, and what its clients would then misunderstand."""
    for key in (*_JUNCTORS, "default"):
        made.pop(key, None)
    properties: dict[str, Any] = made.get("properties") or {}
    required = [name for name in made.get("required") or () if not properties.get(name, {}).get("nullable")]
    additional = made.get("additionalProperties")
    if isinstance(additional, dict) and additional.get("nullable"):
        required = []
    made.pop("required", None)
    if required:
        made["required"] = required
    nullable = made.pop("nullable", False)
    if nullable or made.get(_PRESERVE):
        made.pop("items", None)
        made.pop("properties", None)
        if nullable or made.get("type") == "object":
            made.pop("type", None)
    if made.get("type") == "array" and "items" not in made:
        del made["type"]


def _raw(schema: Json) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(schema))
