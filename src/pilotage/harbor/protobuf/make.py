"""Makes `messages.txt`: ``python -m pilotage.harbor.protobuf.make FOLDER…``, folders of k8s.io/api and apimachinery.

One line for a message: its name, then ``number:field:type`` for each field. A type is a scalar's name or, after ``@``,
a message's; ``*`` before it means repeated, ``%`` a map from text to it, ``~`` that its fields stand in JSON beside the
others, and not inside of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pilotage.harbor.schema.builtin import definition

PACKAGES = re.compile(
    r"k8s\.io\.(api\.(core|apps|batch|networking|policy|rbac|coordination|events|discovery|scheduling|storage"
    r"|admissionregistration|authentication|authorization)\.v1|api\.autoscaling\.v[12]"
    r"|apimachinery\.pkg\.(apis\.meta\.v1|api\.resource|util\.intstr|runtime))"
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
    full = f"io.k8s.{package.removeprefix('k8s.io.')}.{name}"
    fields = []
    for field in _FIELD.finditer(body):
        label, rest = field[1], field["rest"].split()
        type_, field_name = (field["value"], rest[0]) if field["value"] else (rest[0], rest[1])
        kind = _type(package, type_)
        mark = "%" if field["value"] else "*" if label == "repeated" else ""
        if not mark and kind.startswith("@") and field_name not in _properties(full):
            mark = "~"
        fields.append(f"{field['number']}:{field_name}:{mark}{kind}")
    return " ".join([full, *fields])


def _type(package: str, name: str) -> str:
    if name in ("string", "bytes", "bool", "int32", "int64", "double"):
        return name
    full = name.removeprefix(".") if name.startswith(".") else f"{package}.{name}"
    return f"@io.k8s.{full.removeprefix('k8s.io.')}"


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
