"""Makes the table of built-in kinds from the schemas that Kubernetes publishes. It is a script:
``python -m pilotage_harbor.schema.make``.

The source is the package kubernetes-validate, 70 MB of JSON schemas; `builtin.py` needs a hundredth of it. What is kept
is types, keys and strategies: no prose. `named_types.txt` adds the Go names of fields whose type is a named string.

The table is text, a line per definition, so that a change of it can be read: the name, a tab, and JSON. A field is a
few words: its type (``string``, ``int32``, ``@definition``, with ``[]`` and ``{}`` in front for lists and maps), then
what is said about it: ``list=map:containerPort,protocol map=atomic patch=merge by=name go=v1.Protocol default="TCP"``.
``in=`` names the Go struct that a field is embedded from.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Json = dict[str, Any]

VERSION = "1.36.0"
HERE = Path(__file__).parent
TABLE = HERE / "builtin.txt"
NAMED_TYPES = HERE / "named_types.txt"

# Parts of the keys of list maps that a client may leave out: server-side apply fills them in. The source lacks them.
_KEY_DEFAULTS = {
    "io.k8s.api.core.v1.ContainerPort.protocol": "TCP",
    "io.k8s.api.core.v1.ServicePort.protocol": "TCP",
    "io.k8s.api.core.v1.EndpointPort.protocol": "TCP",
}
_SCALARS = {
    ("string", ""): "string",
    ("string", "byte"): "bytes",
    ("string", "date-time"): "time",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("integer", ""): "int64",
    ("number", "double"): "double",
    ("number", ""): "double",
    ("boolean", ""): "boolean",
    ("object", ""): "object",
    ("", ""): "any",
}


def definitions() -> dict[str, Json]:
    """The schemas as published, by name. Needs kubernetes-validate, which is not there at run time."""
    spec = find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise SystemExit("kubernetes-validate is not installed: pip install kubernetes-validate")
    folder = Path(spec.origin).parent / "kubernetes-json-schema" / f"v{VERSION}-local"
    found: dict[str, Json] = json.loads((folder / "_definitions.json").read_text())["$defs"]
    return found


def named_types(text: str) -> dict[str, list[str]]:
    """Field to what is said about its Go type, from `named_types.txt`."""
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, *fields = line.split()
        for field in fields if name != "#" else ():
            said.setdefault(field, []).append(f"in={name[1:]}" if name.startswith("+") else f"go={name}")
    return said


def table(source: dict[str, Json], named: dict[str, list[str]]) -> str:
    """The text of the table."""
    kinds = {
        f"{gvk['group']}/{gvk['version']}/{gvk['kind']}": name
        for name, definition in sorted(source.items())
        # Those that every group has (WatchEvent, DeleteOptions) are not kinds of a group.
        if len(gvks := definition.get("x-kubernetes-group-version-kind", ())) == 1
        for gvk in gvks
    }
    lines = [f"{VERSION}\t{_dumps(kinds)}"]
    lines += [f"{name}\t{_dumps(_definition(name, source[name], named))}" for name in sorted(source)]
    return "\n".join(lines) + "\n"


def _definition(name: str, schema: Json, named: dict[str, list[str]]) -> Json:
    if "properties" not in schema:
        return {"type": _words(schema)}
    fields = {}
    for key, part in schema["properties"].items():
        path = f"{name}.{key}"
        words = [_words(part), *named.get(path, ())]
        if path in _KEY_DEFAULTS:
            words.append(f"default={json.dumps(_KEY_DEFAULTS[path])}")
        fields[key] = " ".join(words)
    result: Json = {"fields": fields}
    if schema.get("required"):
        result["required"] = schema["required"]
    if schema.get("x-kubernetes-map-type"):
        result["map"] = schema["x-kubernetes-map-type"]
    return result


def _words(schema: Json) -> str:
    words = [_type(schema)]
    if list_type := schema.get("x-kubernetes-list-type"):
        keys = schema.get("x-kubernetes-list-map-keys")
        words.append(f"list={list_type}" + (f":{','.join(keys)}" if keys else ""))
    for key, short in (("map-type", "map"), ("patch-strategy", "patch"), ("patch-merge-key", "by")):
        if value := schema.get(f"x-kubernetes-{key}"):
            words.append(f"{short}={value}")
    return " ".join(words)


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return "@" + str(schema["$ref"]).removeprefix("#/$defs/")
    if "oneOf" in schema:  # Quantity and IntOrString: `builtin.py` knows them by name
        return "any"
    types = schema.get("type", "")
    kind = next((t for t in types if t != "null"), "") if isinstance(types, list) else types
    if kind == "array":
        return "[]" + _type(schema.get("items", {}))
    if isinstance(schema.get("additionalProperties"), dict):
        return "{}" + _type(schema["additionalProperties"])
    return _SCALARS[kind, schema.get("format", "")]


def _dumps(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def main() -> None:
    """Write the table, or with ``--check`` say whether it is current."""
    text = table(definitions(), named_types(NAMED_TYPES.read_text()))
    if "--check" in sys.argv[1:]:
        if TABLE.read_text() != text:
            raise SystemExit(f"{TABLE} is not current: run python -m pilotage_harbor.schema.make")
        return
    TABLE.write_text(text)


if __name__ == "__main__":
    main()
