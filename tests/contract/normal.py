"""Values that differ between two runs of the same requests, replaced by names that keep equality: UID-1, RV-2, IP-1.

One `Normaliser` serves one case: the same uid has the same name in all of its answers. Values that a case chose itself
stay: times before 2024, uids that begin with zeros.
"""

from __future__ import annotations

import re
from typing import Any

_UID = re.compile(r"\b(?!00000000)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b20(?:2[4-9]|[3-9]\d)-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| ?[+-]\d\d:?\d\d(?: \w+)?)?")
_ADDRESS = re.compile(r"\b10\.0\.\d{1,3}\.\d{1,3}\b")
_HOST = re.compile(r"\b(?:127\.0\.0\.1|localhost):\d{2,5}\b")
_DATE = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} 20(?:2[4-9]|[3-9]\d) \d\d:\d\d:\d\d [+-]\d{4}")
_VERSION_WORDS = re.compile(
    r"(ResourceVersion in (?:precondition|object meta): |ResourceVersion in record \(|, current: |"
    r"[Tt]oo old resource version: \d+ \(|\"resourceVersion\": ?\")(\d+)"
)
_DUMP = re.compile(r'Invalid value: "\{\\".*\}(?:\\n)?": ', re.DOTALL)
"""A whole object as text in a message, with everything in it that differs."""
_MOUNT = re.compile(r"kube-api-access-[a-z0-9]{5}\b")
_PEM = "LS0tLS1CRUdJTi"

_DROPPED = frozenset({"storageVersionHash"})
_PORTS = frozenset({"nodePort", "healthCheckNodePort"})


class Normaliser:
    """Names for the values that one case has shown so far."""

    def __init__(self, *, managed: bool = False) -> None:
        """`managed`: keep metadata.managedFields, sorted, since their order depends on the second they were written."""
        self._managed = managed
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._generated: dict[str, str] = {}

    def value(self, value: Any) -> Any:
        """Any decoded JSON, as a copy."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def text(self, text: str) -> str:
        """Any text, such as a message."""
        if text.startswith(_PEM):
            return "PEM"
        text = _DUMP.sub('Invalid value: "OBJECT": ', text)
        text = _UID.sub(lambda found: self._name("UID", found[0]), text)
        text = _DATE.sub("TIME", _TIME.sub("TIME", text))
        text = _ADDRESS.sub(lambda found: self._name("IP", found[0]), text)
        text = _HOST.sub("HOST:PORT", text)
        text = _VERSION_WORDS.sub(lambda found: found[1] + self._version_word(found[2]), text)
        text = _MOUNT.sub("kube-api-access-XXXXX", text)
        for name, replacement in self._generated.items():
            text = text.replace(name, replacement)
        return text

    def _name(self, family: str, value: str) -> str:
        if (family, value) not in self._names:
            self._counts[family] = self._counts.get(family, 0) + 1
            self._names[family, value] = f"{family}-{self._counts[family]}"
        return self._names[family, value]

    def _version_word(self, value: str) -> str:
        # A value that a case made up stays: a low number that no object has shown.
        return self._name("RV", value) if len(value) > 2 or ("RV", value) in self._names else value

    def _object(self, value: dict[str, Any], *, of_list: bool = False) -> dict[str, Any]:
        meta = value.get("metadata")
        if isinstance(meta, dict):
            self._learn_generated(meta)
        if isinstance(value.get("causes"), list):
            value = value | {"causes": sorted(value["causes"], key=str)}
        if isinstance(value.get("details"), dict) and isinstance(value.get("message"), str):
            value = value | {"message": _sorted_message(value["message"], value["details"].get("causes"))}
        has_items = "items" in value or "rows" in value
        return {
            self.text(key): self._field(key, each, of_list=of_list, has_items=has_items)
            for key, each in sorted(value.items())  # names are given in an order that no server chooses
            if key not in _DROPPED and (key != "managedFields" or self._managed)
        }

    def _field(self, key: str, value: Any, *, of_list: bool, has_items: bool) -> Any:
        if key == "metadata" and isinstance(value, dict):
            return self._object(value, of_list=has_items)
        if key == "resourceVersion" and isinstance(value, str) and value.isdigit():
            # A list's version moves with every write to the server, also of other cases.
            return "RV" if of_list else self._name("RV", value)
        if key == "continue" and value:
            return "CONTINUE"
        if key == "managedFields" and isinstance(value, list):
            return sorted((self.value(entry) for entry in value), key=_entry_order)
        if key in _PORTS and isinstance(value, int) and value >= 30_000:
            return self._name("PORT", str(value))
        if key == "token" and isinstance(value, str) and value.startswith("ey"):
            return "TOKEN"
        return self.value(value)

    def _learn_generated(self, meta: dict[str, Any]) -> None:
        prefix, name = meta.get("generateName"), meta.get("name")
        if not isinstance(prefix, str) or not isinstance(name, str) or not prefix or name in self._generated:
            return
        if name.startswith(prefix[:58]) and len(name) == len(prefix[:58]) + 5:
            self._generated[name] = f"{prefix[:58]}GEN-{len(self._generated) + 1}"


def _entry_order(entry: Any) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("operation", "manager", "subresource", "apiVersion"))


def _sorted_message(message: str, causes: Any) -> str:
    """Several causes come in any order, both in the details and in the message that joins them."""
    if not isinstance(causes, list) or len(causes) < 2:
        return message
    words = [f"{cause.get('field')}: {cause.get('message')}" for cause in causes]
    return message.replace(f"[{', '.join(words)}]", f"[{', '.join(sorted(words))}]")
