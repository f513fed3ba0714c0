"""managedFields: who owns which fields.

An entry is one manager: known by its name, its operation, the subresource it wrote to and, for updates, the version of
the API it used. Someone who applies has one entry whichever version they use.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from pilotage_harbor.patching.fieldset import Tree, decoded, difference, union

if TYPE_CHECKING:
    from pilotage_harbor.patching.values import Json, Value

UPDATERS_MAX = 10
ANCIENT = "ancient-changes"


class FieldManager(NamedTuple):
    """The identity of an entry."""

    name: str
    operation: str
    api_version: str
    """"" for Apply."""
    subresource: str

    @property
    def sort_key(self) -> str:
        """kube-apiserver sorts managers by the JSON of their identity."""
        identity = {"manager": self.name, "operation": self.operation}
        if self.api_version:
            identity["apiVersion"] = self.api_version
        if self.subresource:
            identity["subresource"] = self.subresource
        return json.dumps(identity, separators=(",", ":"), ensure_ascii=False)

    def __str__(self) -> str:
        words = json.dumps(self.name, ensure_ascii=False)
        if self.subresource:
            words += f' with subresource "{self.subresource}"'
        return f"{words} using {self.api_version}" if self.operation == "Update" else words


class Owned(NamedTuple):
    """Fields that a manager owns."""

    fields: Tree
    api_version: str
    time: str | None


Managers = dict[FieldManager, Owned]


def identity(name: str, operation: str, api_version: str, subresource: str) -> FieldManager:
    """The identity of the one who writes."""
    return FieldManager(name or "unknown", operation, "" if operation == "Apply" else api_version, subresource)


def read(entries: Value, *, trusted: bool = True) -> Managers:
    """The managers of an object. Entries that a client sent are not trusted: they are checked and brought into form.

    Raises:
        ValueError: an entry of a client is not valid.
    """
    managers: Managers = {}
    for entry in entries or ():
        if not trusted:
            _check(entry)
        operation = entry["operation"]
        api_version = entry["apiVersion"]
        manager = FieldManager(
            entry.get("manager", ""),
            operation,
            "" if operation == "Apply" else api_version,
            entry.get("subresource", ""),
        )
        fields = entry.get("fieldsV1") or {}
        if not trusted:
            fields = decoded(fields)
            fields.pop(".", None)
        managers[manager] = Owned(fields, api_version, entry.get("time"))
    return managers


def _check(entry: Value) -> None:
    if type(entry) is not dict or entry.get("operation") not in ("Apply", "Update"):
        raise ValueError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise ValueError("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1":
        raise ValueError("fieldsType must be FieldsV1")


def write(managers: Managers) -> list[Json]:
    """The entries of the managers, in the order of kube-apiserver."""
    entries: list[Json] = []
    for manager, owned in managers.items():
        entry: Json = {"manager": manager.name, "operation": manager.operation, "apiVersion": owned.api_version}
        if not manager.name:
            del entry["manager"]
        if owned.time is not None:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = owned.fields
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def _order(entry: Json) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def taken(managers: Managers, changed: Tree, gone: Tree, *, keep: FieldManager | None = None) -> Managers:
    """The managers after a write: nobody but `keep` owns what it changed, and nobody what is gone."""
    result: Managers = {}
    for manager, owned in managers.items():
        fields = owned.fields
        if manager != keep:
            if changed:
                fields = difference(fields, changed)
            if gone:
                fields = difference(fields, gone)
        if fields:
            result[manager] = owned if fields is owned.fields else owned._replace(fields=fields)
    return result


def capped(managers: Managers) -> Managers:
    """Entries with at most UPDATERS_MAX updaters: the oldest ones of a version are merged."""
    updaters = [manager for manager in managers if manager.operation == "Update"]
    count = len(updaters)
    if count <= UPDATERS_MAX:
        return managers
    managers = dict(managers)
    first: dict[str, FieldManager] = {}
    for manager in sorted(updaters, key=lambda one: (managers[one].time or "", one.sort_key)):
        if count <= UPDATERS_MAX:
            break
        owned = managers[manager]
        if owned.api_version not in first:
            first[owned.api_version] = manager
            continue
        bucket = FieldManager(ANCIENT, "Update", owned.api_version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first[owned.api_version])
        both = union(owned.fields, managers[bucket].fields)
        del managers[manager]
        managers[bucket] = Owned(both, owned.api_version, owned.time)
        count -= 1
    return managers
