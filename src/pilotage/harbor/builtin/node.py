"""What nodes can do: RuntimeClasses, and the storage drivers of a node (CSINodes). As objects; nothing runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.harbor.builtin.base import Builtin, kind, path
from pilotage.harbor.builtin.cells import at, text
from pilotage.harbor.builtin.container_rules import resource_problems
from pilotage.harbor.builtin.pod_rules import toleration_problems
from pilotage.harbor.metadata_rules import label_problems
from pilotage.harbor.names import dns_label, dns_subdomain, qualified_name
from pilotage.harbor.problems import duplicate, each_invalid, immutable, invalid, nonnegative, required, too_long
from pilotage.harbor.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage.harbor.errors import Cause
    from pilotage.harbor.kinds import Json, Kind

_DRIVER_MAX = 63
_NODE_ID_MAX = 256


class RuntimeClassStrategy(Builtin):
    """A RuntimeClass: its handler is immutable."""

    go_type = "node.RuntimeClass"
    status = False
    create_on_update = True
    unconditional_update = False
    qualified_finalizers = False

    def check(self, obj: Json) -> list[Cause]:
        """All of it."""
        handler = obj.get("handler", "")
        problems = each_invalid("handler", handler, dns_label(handler)) if handler else [required("handler")]
        problems += resource_problems({"limits": path(obj, "overhead", "podFixed") or {}}, "overhead")
        scheduling = obj.get("scheduling") or {}
        problems += label_problems(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        tolerations = scheduling.get("tolerations") or []
        problems += toleration_problems(tolerations, "scheduling.tolerations")
        seen: list[Json] = []
        for index, toleration in enumerate(tolerations):
            key = {name.title(): toleration.get(name, "") for name in ("key", "operator", "value", "effect")}
            if key in seen:
                shown = {**key, "TolerationSeconds": toleration.get("tolerationSeconds")}
                problems.append(duplicate(f"scheduling.tolerations[{index}]", shown))
            seen.append(key)
        return problems

    def check_change(self, obj: Json, old: Json) -> list[Cause]:
        """What may not change."""
        return self.check(obj) + immutable("handler", obj.get("handler"), old.get("handler"))


class CSINodeStrategy(Builtin):
    """A CSINode: drivers come and go; of one that stays, only what it can allocate may change."""

    go_type = "storage.CSINode"
    status = False
    unconditional_update = False
    qualified_finalizers = False

    def check(self, obj: Json) -> list[Cause]:
        """Its drivers."""
        problems: list[Cause] = []
        names: set[str] = set()
        for index, driver in enumerate(obj["spec"].get("drivers") or ()):
            here = f"spec.drivers[{index}]"
            problems += _driver_name(driver["name"], f"{here}.name") + _node_id(driver["nodeID"], f"{here}.nodeID")
            problems += nonnegative(f"{here}.allocatable.count", path(driver, "allocatable", "count"))
            if driver["name"] in names:
                problems.append(duplicate(f"{here}.name", driver["name"]))
            names.add(driver["name"])
            problems += _topology(driver.get("topologyKeys") or [], here)
        return problems

    def check_change(self, obj: Json, old: Json) -> list[Cause]:
        """What may not change of a driver that stays."""
        problems = self.check(obj)
        for was in old["spec"].get("drivers") or ():
            for driver in obj["spec"].get("drivers") or ():
                if driver["name"] == was["name"] and _fixed(driver) != _fixed(was):
                    problems.append(invalid("spec.drivers", _fixed(driver), "field is immutable"))
        return problems


def _fixed(driver: Json) -> Json:
    """In the order, and with the fields, that Go would show."""
    return {
        "Name": driver["name"],
        "NodeID": driver["nodeID"],
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def _driver_name(name: str, field: str) -> list[Cause]:
    if not name:
        return [required(field)]
    problems = [too_long(field, _DRIVER_MAX)] if len(name) > _DRIVER_MAX else []
    return problems + each_invalid(field, name, dns_subdomain(name.lower()))


def _node_id(name: str, field: str) -> list[Cause]:
    if not name:
        return [required(field)]
    return [invalid(field, name, f"must be {_NODE_ID_MAX} characters or less")] if len(name) > _NODE_ID_MAX else []


def _topology(keys: list[str], field: str) -> list[Cause]:
    problems: list[Cause] = []
    for index, key in enumerate(keys):
        if not key:
            problems.append(required(field))
        if key in keys[:index]:
            problems.append(duplicate(field, key))
        problems += each_invalid(field, key, qualified_name(key))
    return problems


def kinds() -> list[Kind]:
    """The kinds of this family."""
    drivers = text("Drivers", lambda obj: len(path(obj, "spec", "drivers") or ()), type_="integer")
    return [
        kind(
            "node.k8s.io/v1",
            "runtimeclasses",
            "RuntimeClass",
            RuntimeClassStrategy(),
            (NAME, text("Handler", at("handler")), AGE),
            namespaced=False,
        ),
        kind("storage.k8s.io/v1", "csinodes", "CSINode", CSINodeStrategy(), (NAME, drivers, AGE), namespaced=False),
    ]
