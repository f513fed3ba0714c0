"""RuntimeClasses, as objects; `pod_runtime` applies them to pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import duplicate, each_invalid, immutable, required
from pilotage_harbor.apimachinery.metadata_rules import label_problems
from pilotage_harbor.apimachinery.names import dns_label
from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.builtin.container_rules import resource_problems
from pilotage_harbor.builtin.pod_rules import toleration_problems
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind


class RuntimeClassStrategy(Builtin):
    """A RuntimeClass: its handler is immutable."""

    go_type = "node.RuntimeClass"
    status = False
    create_on_update = True
    unconditional_update = False
    qualified_finalizers = False

    def check(self, obj: Json) -> list[StatusCause]:
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

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a changed RuntimeClass: its handler is immutable."""
        return self.check(obj) + immutable("handler", obj.get("handler"), old.get("handler"))


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "node.k8s.io/v1",
            "runtimeclasses",
            "RuntimeClass",
            RuntimeClassStrategy(),
            (NAME, text("Handler", at("handler")), AGE),
            namespaced=False,
        ),
    ]
