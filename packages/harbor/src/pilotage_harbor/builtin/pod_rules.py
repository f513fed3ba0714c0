"""Validation of a pod's spec or template, and of changes to a Pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    forbidden,
    invalid,
    not_supported,
    required,
)
from pilotage_harbor.apimachinery.metadata_rules import annotation_problems, label_problems, selector_problems
from pilotage_harbor.apimachinery.names import dns_label, dns_subdomain, label_value, qualified_name
from pilotage_harbor.builtin.addresses import address_problems
from pilotage_harbor.builtin.affinity_rules import affinity_problems
from pilotage_harbor.builtin.container_rules import container_problems
from pilotage_harbor.builtin.volume_rules import volume_problems

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause

Json = dict[str, Any]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MAX = 2**31 - 1
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RESTART = ("Always", "OnFailure", "Never")
UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
    " (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was"
    " previously negative)"
)


def template_problems(template: Json, field: str) -> list[StatusCause]:
    """Problems of a workload's pod template."""
    meta = template["metadata"]
    problems = label_problems(meta.get("labels"), f"{field}.labels")
    problems += annotation_problems(meta.get("annotations"), f"{field}.annotations")
    problems += spec_problems(template["spec"], f"{field}.spec")
    if template["spec"].get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        problems.append(forbidden(f"{field}.spec.ephemeralContainers", why))
    return problems


def spec_problems(spec: Json, field: str) -> list[StatusCause]:
    """Problems of a pod's spec."""
    volumes, problems = volume_problems(spec.get("volumes", []), f"{field}.volumes")
    problems += container_problems(spec, volumes, field)
    if spec.get("hostNetwork"):
        problems += _host_network(spec, field)
    for name, supported in (("restartPolicy", _RESTART), ("dnsPolicy", _DNS)):
        if spec[name] not in supported:
            problems.append(not_supported(f"{field}.{name}", spec[name], supported))
    problems += label_problems(spec.get("nodeSelector"), f"{field}.nodeSelector")
    problems += affinity_problems(spec.get("affinity"), f"{field}.affinity")
    problems += _dns_config(spec, f"{field}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates", ())):
        here = f"{field}.readinessGates[{index}].conditionType"
        problems += each_invalid(here, gate["conditionType"], qualified_name(gate["conditionType"]))
    problems += _scheduling_gates(spec, f"{field}.schedulingGates")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        problems += _spread(constraint, f"{field}.topologySpreadConstraints[{index}]")
    problems += _names(spec, field)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _MAX:
        why = f"must be between 1 and {_MAX}, inclusive"
        problems.append(invalid(f"{field}.activeDeadlineSeconds", seconds, why))
    for name in ("hostname", "subdomain"):
        if value := spec.get(name):
            problems += each_invalid(f"{field}.{name}", value, dns_label(value))
    problems += toleration_problems(spec.get("tolerations", []), f"{field}.tolerations")
    problems += _host_aliases(spec, field)
    if class_ := spec.get("priorityClassName"):
        problems += each_invalid(f"{field}.priorityClassName", class_, dns_subdomain(class_))
    if (policy := spec.get("preemptionPolicy")) not in (None, "PreemptLowerPriority", "Never"):
        problems.append(not_supported(f"{field}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))
    return problems


def _names(spec: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for name in ("serviceAccountName", "nodeName"):
        if value := spec.get(name):
            problems += each_invalid(f"{field}.{name}", value, dns_subdomain(value))
    return problems


def _host_network(spec: Json, field: str) -> list[StatusCause]:
    why = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{field}.containers[{index}].ports[{place}].hostPort", port.get("hostPort", 0), why)
        for index, container in enumerate(spec.get("containers") or ())
        for place, port in enumerate(container.get("ports", ()))
        if port.get("hostPort") and port["hostPort"] != port["containerPort"]
    ]


def _dns_config(spec: Json, field: str) -> list[StatusCause]:
    config = spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None":
        if config is None:
            return [required(field, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{field}.nameservers", why)]
    problems: list[StatusCause] = []
    for index, address in enumerate((config or {}).get("nameservers", ())):
        problems += address_problems(address, f"{field}.nameservers[{index}]")
    return problems


def _scheduling_gates(spec: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        problems += each_invalid(f"{field}[{index}]", gate["name"], qualified_name(gate["name"]))
        if gate["name"] in seen:
            problems.append(duplicate(f"{field}[{index}]", gate["name"]))
        seen.add(gate["name"])
    return problems


def _spread(constraint: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if constraint["maxSkew"] <= 0:
        problems.append(invalid(f"{field}.maxSkew", constraint["maxSkew"], "must be greater than zero"))
    if not constraint["topologyKey"]:
        problems.append(required(f"{field}.topologyKey", "can not be empty"))
    if constraint["whenUnsatisfiable"] not in ("DoNotSchedule", "ScheduleAnyway"):
        supported = ("DoNotSchedule", "ScheduleAnyway")
        problems.append(not_supported(f"{field}.whenUnsatisfiable", constraint["whenUnsatisfiable"], supported))
    return problems + selector_problems(constraint.get("labelSelector"), f"{field}.labelSelector")


def toleration_problems(tolerations: list[Json], field: str) -> list[StatusCause]:
    """Problems of tolerations."""
    problems: list[StatusCause] = []
    for index, toleration in enumerate(tolerations):
        here = f"{field}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            problems += each_invalid(f"{here}.key", key, qualified_name(key))
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            problems.append(invalid(f"{here}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            problems.append(invalid(f"{here}.effect", effect, why))
        if operator in ("Equal", ""):
            if why_value := label_value(value):
                problems.append(invalid(f"{here}.operator", value, ";".join(why_value)))
        elif operator == "Exists":
            if value:
                problems.append(invalid(f"{here}.operator", value, "value must be empty when `operator` is 'Exists'"))
        else:
            problems.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in EFFECTS:
            problems.append(not_supported(f"{here}.effect", effect, EFFECTS))
    return problems


def _host_aliases(spec: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, alias in enumerate(spec.get("hostAliases", ())):
        here = f"{field}.hostAliases[{index}]"
        problems += address_problems(alias["ip"], f"{here}.ip")
        for place, name in enumerate(alias.get("hostnames", ())):
            problems += each_invalid(f"{here}.hostnames[{place}]", name, dns_subdomain(name))
    return problems


def pod_change_problems(obj: Json, old: Json) -> list[StatusCause]:
    """Changes to fields of a Pod's spec that are immutable."""
    new, was = obj["spec"], old["spec"]
    problems: list[StatusCause] = []
    for name in ("containers", "initContainers"):
        if len(new.get(name) or ()) != len(was.get(name) or ()):
            problems.append(forbidden(f"spec.{name}", "pod updates may not add or remove containers"))
            return problems
    found = _deadline_change(new, was)
    if found and new.get("activeDeadlineSeconds") is not None:
        return found
    problems += found
    problems += _tolerations_change(new, was)
    problems += _gates_change(new, was)
    if new == was:
        return problems
    if _unchangeable(new, was) != was:
        problems.append(forbidden("spec", f"pod updates may not change fields other than {UPDATABLE}\n"))
    return problems


def _unchangeable(new: Json, was: Json) -> Json:
    """The new spec with all that may change put back."""
    munged = dict(new)
    for name in ("containers", "initContainers"):
        if name in new:
            pairs = zip(new[name], was[name], strict=True)
            munged[name] = [each | {"image": before.get("image")} for each, before in pairs]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged.pop(name, None)
        if name in was:
            munged[name] = was[name]
    if was.get("schedulingGates"):
        for name in ("nodeSelector", "affinity"):
            munged.pop(name, None)
            if name in was:
                munged[name] = was[name]
    if was.get("terminationGracePeriodSeconds", 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = was["terminationGracePeriodSeconds"]
    return munged


def _deadline_change(new: Json, was: Json) -> list[StatusCause]:
    field = "spec.activeDeadlineSeconds"
    seconds, before = new.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds")
    if seconds is None:
        if before is None:
            return []
        return [invalid(field, None, "must not update from a positive integer to nil value")]
    if not 0 <= seconds <= _MAX:
        return [invalid(field, seconds, f"must be between 0 and {_MAX}, inclusive")]
    if before is not None and before < seconds:
        return [invalid(field, seconds, "must be less than or equal to previous value")]
    return []


def _tolerations_change(new: Json, was: Json) -> list[StatusCause]:
    def key(toleration: Json) -> Json:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    present = [key(each) for each in new.get("tolerations", ())]
    if any(key(each) not in present for each in was.get("tolerations", ())):
        why = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", why)]
    return []


def _gates_change(new: Json, was: Json) -> list[StatusCause]:
    known = {gate["name"] for gate in was.get("schedulingGates", ())}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(new.get("schedulingGates", ()))
        if gate["name"] not in known
    ]
