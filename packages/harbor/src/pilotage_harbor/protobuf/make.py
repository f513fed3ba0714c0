"""Makes `messages.txt`: ``python -m pilotage_harbor.protobuf.make FOLDER…``, folders of Kubernetes's Go modules.

They are k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator.

One line for a message: its name, then ``number:field:type`` for each field. A type is a scalar's name or, after ``@``,
a message's; ``*`` before it means repeated, ``%`` a map from text to it, ``~`` that its fields stand in JSON beside the
others, and not inside of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pilotage_harbor.schema.builtin import definition

PACKAGES = re.compile(
    r"k8s\.io\.(api\.(core|apps|batch|networking|policy|rbac|coordination|events|discovery|scheduling|storage|resource"
    r"|certificates|node|admissionregistration|authentication|authorization)\.v1|api\.autoscaling\.v[12]"
    r"|apimachinery\.pkg\.(apis\.meta\.v1|api\.resource|util\.intstr|runtime)"
    r"|(apiextensions_apiserver\.pkg\.apis\.apiextensions|kube_aggregator\.pkg\.apis\.apiregistration)\.v1)"
)
TARGET = Path(__file__).with_name("messages.txt")
_PACKAGE = re.compile(r"^package (\S+);", re.MULTILINE)
_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(
    r"^\s+(optional|repeated|map<string, (?P<value>\S+)>)\s+(?P<rest>.*?)\s*= (?P<number>\d+);", re.MULTILINE
)


def table(folders: list[Path]) -> str:
    """The text of the file."""
    lines = []
    for path in sorted(path for folder in folders for path in folder.rglob("generated.proto")):
        text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
        package = _PACKAGE.search(text)
        if package is not None and PACKAGES.fullmatch(package[1]):
            lines += [_line(package[1], name, body) for name, body in _MESSAGE.findall(text)]
    return "\n".join(sorted(lines)) + "\n"


def _line(package: str, name: str, body: str) -> str:
    full = _full_name(f"{package}.{name}")
    fields = []
    for field in _FIELD.finditer(body):
        label, rest = field[1], field["rest"].split()
        type_, field_name = (field["value"], rest[0]) if field["value"] else (rest[0], rest[1])
        kind = _type(package, type_)
        mark = "%" if field["value"] else "*" if label == "repeated" else ""
        field_name = _schema_keyword(field_name) if name == "JSONSchemaProps" else _json_name(full, field_name)
        if not mark and kind.startswith("@") and field_name not in _properties(full):
            mark = "~"
        fields.append(f"{field['number']}:{field_name}:{mark}{kind}")
    return " ".join([full, *fields])


def _type(package: str, name: str) -> str:
    if name in ("string", "bytes", "bool", "int32", "int64", "double"):
        return name
    return f"@{_full_name(name.removeprefix('.') if name.startswith('.') else f'{package}.{name}')}"


def _full_name(name: str) -> str:
    """A message's name as the published schemas have it."""
    return f"io.k8s.{name.removeprefix('k8s.io.').replace('_', '-')}"


def _schema_keyword(field: str) -> str:
    """The keywords of a JSON schema whose names are none in protobuf."""
    if field.startswith("xKubernetes"):
        return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", field)
    return f"${field}" if field in ("ref", "schema") else field


def _json_name(message: str, field: str) -> str:
    """A field's name in JSON; it may be spelled otherwise in protobuf: `uID`, `Webhooks`."""
    known = _properties(message)
    return field if field in known else next((each for each in known if each.lower() == field.lower()), field)


def _properties(name: str) -> set[str]:
    """The fields that the JSON of a message has; all of them, for one that the schemas do not know."""
    try:
        return set(definition(name).properties)
    except KeyError:
        return _Everything()


class _Everything(set[str]):
    def __contains__(self, _: object) -> bool:
        return True


if __name__ == "__main__":
    TARGET.write_text(table([Path(folder) for folder in sys.argv[1:]]))
