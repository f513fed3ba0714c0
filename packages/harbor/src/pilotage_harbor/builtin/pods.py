"""Pods and PodTemplates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.field_errors import forbidden, immutable, invalid
from pilotage_harbor.apimachinery.names import dns_label
from pilotage_harbor.builtin.base import Builtin, kind, now
from pilotage_harbor.builtin.cells import labels, template_columns, text
from pilotage_harbor.builtin.pod_admission import admit_pod, check_pod
from pilotage_harbor.builtin.pod_cells import POD_COLUMNS
from pilotage_harbor.builtin.pod_defaults import fill_pod, fill_pod_spec, fill_template
from pilotage_harbor.builtin.pod_rules import pod_change_problems, spec_problems, template_problems
from pilotage_harbor.builtin.quantity import parse
from pilotage_harbor.kinds.table import NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodStrategy(Builtin):
    """A Pod: most of its spec never changes, and it is deleted gracefully."""

    go_type = "core.Pod"
    grace_seconds = 30
    counts = ("spec",)
    kept_by_status = ("ownerReferences",)
    reset_fields = {  # noqa: RUF012 - as in the base class
        "": ("status",),
        "status": ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    }

    def fill(self, obj: Json) -> None:
        """Defaults."""
        fill_pod_spec(obj["spec"])
        fill_pod(obj["spec"])
        if (status := obj.get("status")) and (address := status.get("podIP")):
            # The one address and the list of all are kept in step.
            several = status.get("podIPs")
            if not several or several[0].get("ip") != address:
                status["podIPs"] = [{"ip": address}]

    def prepare_create(self, obj: Json, view: View) -> None:
        """Admission, then a fresh status."""
        admit_pod(obj, view)
        super().prepare_create(obj, view)

    def new_status(self, obj: Json) -> Json:
        """Pending, with its class of service."""
        status: Json = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            status["conditions"] = [_GATED | {"lastTransitionTime": now()}]
        return status

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        """Keep all but the status, and its class of service if it says none."""
        super().prepare_status_update(obj, old)
        status = obj.setdefault("status", {})
        for name in ("qosClass", "observedGeneration"):
            if not status.get(name) and old.get("status", {}).get(name):
                status[name] = old["status"][name]

    def check(self, obj: Json) -> list[StatusCause]:
        """A new Pod."""
        problems = self._check_spec(obj)
        if obj["spec"].get("ephemeralContainers"):
            problems.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if obj["spec"].get("nodeName") and obj["spec"].get("schedulingGates"):
            why = "cannot be set until all schedulingGates have been cleared"
            problems.append(forbidden("spec.nodeName", why))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """A changed Pod."""
        return self._check_spec(obj) + pod_change_problems(obj, old)

    def admit(self, obj: Json, old: Json | None, view: View) -> None:
        """Limits and runtime of a new one."""
        if old is None:
            check_pod(obj, view)

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its class of service never changes."""
        new, was = obj.get("status", {}), old.get("status", {})
        return immutable("status.qosClass", new.get("qosClass", ""), was.get("qosClass", ""))

    def _check_spec(self, obj: Json) -> list[StatusCause]:
        problems = spec_problems(obj["spec"], "spec")
        for name in ("containers", "initContainers"):
            for index, container in enumerate(obj["spec"].get(name) or ()):
                image = container.get("image", "")
                if image != image.strip():
                    why = "must not have leading or trailing whitespace"
                    problems.append(invalid(f"spec.{name}[{index}].image", image, why))
        return problems

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        spec, status = obj["spec"], obj.get("status", {})
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": status.get("podIP", ""),
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """A name that is no host name."""
        name = obj["metadata"].get("name", "")
        if old is not None or not (why := dns_label(name)):
            return []
        words = (
            "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        )
        return [f"metadata.name: {words}: [{' '.join(why)}]"]


def grace_period(pod: Json, requested: int | None) -> int:
    """Seconds that a Pod has to end if it is deleted now: 0 if nothing runs."""
    spec = pod["spec"]
    seconds: int = spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if seconds < 0 else seconds


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, by what its containers request and may use."""
    if (own := spec.get("resources")) and (own.get("limits") or own.get("requests")):
        containers = [{"resources": own}]
    else:
        containers = [*(spec.get("containers") or ()), *spec.get("initContainers", ())]
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    guaranteed = True
    for container in containers:
        resources = container.get("resources", {})
        limited = set()
        for kind_, total in (("requests", requests), ("limits", limits)):
            for name, value in resources.get(kind_, {}).items():
                amount = parse(value)
                if name in ("cpu", "memory") and amount is not None and amount > 0:
                    total[name] = total.get(name, 0) + amount
                    if kind_ == "limits":
                        limited.add(name)
        guaranteed = guaranteed and limited == {"cpu", "memory"}
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


class PodTemplateStrategy(Builtin):
    """A template that stands by itself."""

    go_type = "core.PodTemplate"
    status = False
    counts = ("template",)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        fill_template(obj["template"])

    def check(self, obj: Json) -> list[StatusCause]:
        """Its template."""
        return template_problems(obj["template"], "template")


def kinds() -> list[Kind]:
    """The kinds of this family."""
    containers, images = template_columns("template", "spec")
    return [
        kind(
            "v1",
            "pods",
            "Pod",
            PodStrategy(),
            POD_COLUMNS,
            short="po",
            categories="all",
            subresources="status binding eviction log ephemeralcontainers resize attach exec portforward proxy",
            selectable="spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork"
            " status.phase status.podIP status.podIPs status.nominatedNodeName",
        ),
        kind(
            "v1",
            "podtemplates",
            "PodTemplate",
            PodTemplateStrategy(),
            (
                NAME,
                containers._replace(priority=0),
                images._replace(priority=0),
                text("Pod Labels", lambda obj: labels(obj["template"]["metadata"].get("labels"))),
            ),
        ),
    ]
