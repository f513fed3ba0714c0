"""Node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    forbidden,
    invalid,
    not_supported,
    required,
)
from pilotage_harbor.apimachinery.names import label_value, qualified_name
from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.builtin.pod_rules import EFFECTS
from pilotage_harbor.builtin.quantity import parse
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View


class NodeStrategy(Builtin):
    """A Node: a new one may bring its status along, and is not ready for pods."""

    go_type = "core.Node"
    _NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}  # noqa: RUF012

    def fill(self, obj: Json) -> None:
        """Defaults."""
        status = obj["status"]
        if "allocatable" not in status and "capacity" in status:
            status["allocatable"] = dict(status["capacity"])
        spec = obj["spec"]
        if (first := spec.get("podCIDR")) and not spec.get("podCIDRs"):
            spec["podCIDRs"] = [first]

    def prepare_create(self, obj: Json, view: View) -> None:
        """Keep its status, and taint it."""
        taints = obj["spec"].setdefault("taints", [])
        if self._NOT_READY not in taints:
            taints.append(dict(self._NOT_READY))

    def check(self, obj: Json) -> list[StatusCause]:
        """Taints and resources."""
        problems: list[StatusCause] = []
        seen: set[tuple[str, str]] = set()
        for index, taint in enumerate(obj["spec"].get("taints", ())):
            here, key, effect = f"metadata.taints[{index}]", taint["key"], taint.get("effect", "")
            problems += each_invalid(f"{here}.key", key, qualified_name(key))
            if why := label_value(taint.get("value", "")):
                problems.append(invalid(f"{here}.value", taint["value"], ";".join(why)))
            if not effect:
                problems.append(required(f"{here}.effect"))
            elif effect not in EFFECTS:
                problems.append(not_supported(f"{here}.effect", effect, EFFECTS))
            if (key, effect) in seen:
                cause = duplicate(
                    here, {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": None}
                )
                why_twice = f"{cause.message}: taints must be unique by key and effect pair"
                problems.append(cause._replace(message=why_twice))
            seen.add((key, effect))
        for name in ("capacity", "allocatable"):
            for resource, value in obj["status"].get(name, {}).items():
                amount = parse(value)
                if amount is not None and amount < 0:
                    field = f"status.{name}.{resource}"
                    problems.append(invalid(field, value, "must be greater than or equal to 0"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a changed Node: its provider ID and its pod CIDRs stay once they are set."""
        problems = self.check(obj)
        new, was = obj["spec"], old.get("spec", {})
        if was.get("podCIDRs") and new.get("podCIDRs") != was["podCIDRs"]:
            why = 'node updates may not change podCIDR except from "" to valid'
            problems.append(forbidden("spec.podCIDRs", why))
        if was.get("providerID") and new.get("providerID") != was["providerID"]:
            why = 'node updates may not change providerID except from "" to valid'
            problems.append(forbidden("spec.providerID", why))
        return problems

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        return {"spec.unschedulable": "true" if path(obj, "spec", "unschedulable") else "false"}


def _node_status(obj: Json) -> str:
    ready = next((each for each in path(obj, "status", "conditions") or () if each.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if path(obj, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(obj: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    found = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(prefix) for key in found if key.startswith(prefix)} | {
        found.get("kubernetes.io/role", "")
    }
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(obj: Json, type_: str) -> str:
    found = (each["address"] for each in path(obj, "status", "addresses") or () if each.get("type") == type_)
    return next(found, "<none>")


def _info(obj: Json, name: str) -> str:
    return path(obj, "status", "nodeInfo", name) or "<unknown>"


def _kernel(obj: Json) -> str:
    architecture = path(obj, "status", "nodeInfo", "architecture")
    return _info(obj, "kernelVersion") + (f" ({architecture})" if architecture else "")


def kinds() -> list[Kind]:
    """The kind of this module."""
    return [
        kind(
            "v1",
            "nodes",
            "Node",
            NodeStrategy(),
            (
                NAME,
                text("Status", _node_status),
                text("Roles", _roles),
                AGE,
                text("Version", at("status", "nodeInfo", "kubeletVersion")),
                text("Internal-IP", lambda obj: _address(obj, "InternalIP"), wide=True),
                text("External-IP", lambda obj: _address(obj, "ExternalIP"), wide=True),
                text("OS-Image", lambda obj: _info(obj, "osImage"), wide=True),
                text("Kernel-Version", _kernel, wide=True),
                text("Container-Runtime", lambda obj: _info(obj, "containerRuntimeVersion"), wide=True),
            ),
            namespaced=False,
            short="no",
            subresources="status proxy",
            selectable="spec.unschedulable",
        ),
    ]
