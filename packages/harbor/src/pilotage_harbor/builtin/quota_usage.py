"""Usage of a ResourceQuota by one object, and which resources of one harbor can enforce."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from pilotage_harbor.builtin.base import path
from pilotage_harbor.builtin.pod_resources import limits_of, requests_of
from pilotage_harbor.builtin.quantity import ZERO, Amount

if TYPE_CHECKING:
    from pilotage_harbor.builtin.pod_resources import Amounts
    from pilotage_harbor.kinds import Json

PODS, SERVICES, CLAIMS = "pods", "services", "persistentvolumeclaims"
COUNTED_BY_NAME = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
"""Kinds whose number has a name besides count/…, from before there was one for every kind."""
_EVENTS = ("events", "events.events.k8s.io")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_CLASS = ".storageclass.storage.k8s.io/"
_OF_CLAIMS = (CLAIMS, "requests.storage")
STANDARD = frozenset(
    {
        PODS, SERVICES, *COUNTED_BY_NAME, *_OF_CLAIMS, "services.loadbalancers", "services.nodeports",
        *_COMPUTE, *(f"{which}.{name}" for which in ("requests", "limits") for name in _COMPUTE),
    }
)  # fmt: skip
WHOLE = frozenset({PODS, SERVICES, CLAIMS, *COUNTED_BY_NAME, "services.loadbalancers", "services.nodeports"})
"""Resources of which there is no fraction."""
_MUST_BE_SAID = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_ONE = Amount(Decimal(1))


def is_standard(name: str) -> bool:
    """Whether a resource without a slash is one that a quota may have."""
    return name in STANDARD or name.removeprefix("requests.").startswith(_HUGE_PAGES)


def is_enforced(name: str) -> bool:
    """Whether harbor counts what a quota calls so."""
    if "/" not in name:
        return is_standard(name)
    if name.startswith("count/"):
        return name.removeprefix("count/") not in _EVENTS
    if _CLASS in name:
        return name.endswith(tuple(f"{_CLASS}{each}" for each in _OF_CLAIMS))
    return name.startswith("requests.") and "kubernetes.io/" not in name and ".k8s.io/" not in name


def usage_of(storage: str, obj: Json) -> Amounts:
    """Usage of an object, by the name of the resource."""
    if storage in _EVENTS:
        return {}
    usage: Amounts = {f"count/{storage}": _ONE}
    if storage in COUNTED_BY_NAME:
        usage[storage] = _ONE
    elif storage == PODS:
        usage |= _of_pod(obj)
    elif storage == SERVICES:
        usage |= _of_service(obj["spec"])
    elif storage == CLAIMS:
        usage |= _of_claim(obj)
    return usage


def counts_changes(storage: str) -> bool:
    """Whether an update of an object may need more of a quota."""
    return storage in (SERVICES, CLAIMS)


def unsaid(pod: Json, hard: Amounts) -> str:
    """Resources that a quota requires each container of a pod to set and that are missing; empty if none is."""
    spec = pod["spec"]
    if path(spec, "resources", "requests") or path(spec, "resources", "limits"):
        return ""
    missing: dict[str, set[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        own = container.get("resources") or {}
        said = _computed(dict.fromkeys(own.get("requests") or (), ZERO), dict.fromkeys(own.get("limits") or (), ZERO))
        for name in _MUST_BE_SAID & hard.keys() - said.keys():
            missing.setdefault(name, set()).add(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _of_pod(pod: Json) -> Amounts:
    """Nothing of one that has ended: only count/pods counts those."""
    if path(pod, "status", "phase") in ("Failed", "Succeeded"):
        return {}
    spec = pod["spec"]
    return {PODS: _ONE} | _computed(requests_of(spec, overhead=True), limits_of(spec, overhead=True))


def _computed(requests: Amounts, limits: Amounts) -> Amounts:
    usage: Amounts = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(_HUGE_PAGES):
            usage[name] = amount
        if name in _COMPUTE or name.startswith(_HUGE_PAGES) or "/" in name:
            usage[f"requests.{name}"] = amount
    return usage | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}


def _of_service(spec: Json) -> Amounts:
    usage = {SERVICES: _ONE}
    ports = spec.get("ports") or []
    if spec.get("type") == "LoadBalancer":
        usage["services.loadbalancers"] = _ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        usage["services.nodeports"] = Amount(Decimal(len(ports)))
    return usage


def _of_claim(claim: Json) -> Amounts:
    usage = {CLAIMS: _ONE}
    asked = Amount.of(path(claim, "spec", "resources", "requests", "storage") or "0")
    given = Amount.of(path(claim, "status", "allocatedResources", "storage") or "0")
    size = given if given.value > asked.value else asked
    usage["requests.storage"] = size._replace(value=size.value.to_integral_value(ROUND_CEILING))
    old_name = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    if name := old_name or path(claim, "spec", "storageClassName"):
        usage |= {f"{name}{_CLASS}{each}": usage[each] for each in _OF_CLAIMS}
    return usage
