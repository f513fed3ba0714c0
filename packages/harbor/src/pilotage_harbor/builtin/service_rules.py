"""Validation of a Service."""

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
from pilotage_harbor.apimachinery.metadata_rules import label_problems
from pilotage_harbor.apimachinery.names import dns_label, dns_subdomain, port_number, qualified_name
from pilotage_harbor.builtin.addresses import address_problems, endpoint_problems, range_problems
from pilotage_harbor.builtin.container_rules import PROTOCOLS, port_or_name
from pilotage_harbor.builtin.service_allocation import needs_health_check

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_LOAD_BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"


def is_headless(spec: Json) -> bool:
    """Whether it has no cluster IP, on purpose."""
    return spec.get("clusterIPs") == ["None"]


def externally_accessible(spec: Json) -> bool:
    """Whether traffic may come from outside of the cluster."""
    return spec["type"] in ("LoadBalancer", "NodePort") or (
        spec["type"] == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def service_problems(service: Json) -> list[StatusCause]:
    """Problems of a Service by itself, in kube-apiserver's order."""
    spec = service["spec"]
    ports, headless = spec.get("ports", []), is_headless(spec)
    problems: list[StatusCause] = []
    if not ports and not headless and spec["type"] != "ExternalName":
        problems.append(required("spec.ports"))
    problems += _of_type(spec, headless=headless)
    names: set[str] = set()
    for index, port in enumerate(ports):
        problems += _port(port, f"spec.ports[{index}]", names, alone=len(ports) == 1)
    problems += label_problems(spec.get("selector"), "spec.selector")
    problems += _affinity(spec)
    problems += address_field_problems(spec)
    for index, address in enumerate(spec.get("externalIPs", ())):
        here = f"spec.externalIPs[{index}]"
        wrong = address_problems(address, here) or endpoint_problems(address, here)
        if not wrong and (address.startswith("127.") or address == "::1"):
            wrong = [invalid(here, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
        problems += wrong
    if spec["type"] not in _TYPES:
        problems.append(not_supported("spec.type", spec["type"], _TYPES))
    problems += _port_clashes(spec, ports)
    problems += _load_balancer(service)
    return problems + _traffic(spec)


def _of_type(spec: Json, *, headless: bool) -> list[StatusCause]:
    if spec["type"] in ("LoadBalancer", "NodePort"):
        why = f"may not be set to 'None' for {spec['type']} services"
        return [invalid("spec.clusterIPs[0]", "None", why)] if headless else []
    if spec["type"] != "ExternalName":
        return []
    problems = [
        forbidden(f"spec.{name}", "may not be set for ExternalName services")
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(name)
    ]
    if name := spec.get("externalName", "").removesuffix("."):
        return problems + each_invalid("spec.externalName", name, dns_subdomain(name))
    return [*problems, required("spec.externalName")]


def _port(port: Json, field: str, names: set[str], *, alone: bool) -> list[StatusCause]:
    problems: list[StatusCause] = []
    name = port.get("name")
    if name:
        problems += each_invalid(f"{field}.name", name, dns_label(name))
        if name in names:
            problems.append(duplicate(f"{field}.name", name))
        names.add(name)
    elif not alone:
        problems.append(required(f"{field}.name"))
    problems += each_invalid(f"{field}.port", port["port"], port_number(port["port"]))
    if port["protocol"] not in PROTOCOLS:
        problems.append(not_supported(f"{field}.protocol", port["protocol"], PROTOCOLS))
    problems += port_or_name(port["targetPort"], f"{field}.targetPort")
    if (protocol := port.get("appProtocol")) is not None:
        problems += each_invalid(f"{field}.appProtocol", protocol, qualified_name(protocol))
    return problems


def _affinity(spec: Json) -> list[StatusCause]:
    affinity = spec["sessionAffinity"]
    if affinity not in ("ClientIP", "None"):
        return [not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None"))]
    config = spec.get("sessionAffinityConfig")
    if affinity == "None":
        why = "must not be set when session affinity is None"
        return [forbidden("spec.sessionAffinityConfig", why)] if config is not None else []
    seconds = config["clientIP"]["timeoutSeconds"] if config else 10800
    if not 0 < seconds <= 86400:
        field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        return [invalid(field, seconds, "must be greater than 0 and less than 86400")]
    return []


def address_field_problems(spec: Json) -> list[StatusCause]:
    """Problems of clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy."""
    if spec["type"] == "ExternalName":
        return []
    problems: list[StatusCause] = []
    first, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    if first and not addresses:
        problems.append(required("spec.clusterIPs"))
    elif first and addresses[0] != first:
        problems.append(invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`"))
    elif not first and addresses:
        problems.append(invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified"))
    seen: set[str] = set()
    for index, family in enumerate(spec.get("ipFamilies", ())):
        if family not in _FAMILIES:
            problems.append(not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES))
        if family in seen:
            problems.append(duplicate(f"spec.ipFamilies[{index}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        problems.append(not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    return problems + _cluster_ips(addresses)


def _cluster_ips(addresses: list[str]) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                why = "'None' must be the first and only value"
                problems.append(invalid("spec.clusterIPs", addresses, why))
            continue
        problems += address_problems(address, f"spec.clusterIPs[{index}]")
    if len(addresses) > 2:
        problems.append(invalid("spec.clusterIPs", addresses, "may only hold up to 2 values"))
    return problems


def _port_clashes(spec: Json, ports: list[Json]) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if spec["type"] == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                why = "may not be used when `type` is 'ClusterIP'"
                problems.append(forbidden(f"spec.ports[{index}].nodePort", why))
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if number := port.get("nodePort"):
            if (port["protocol"], number) in seen:
                problems.append(duplicate(f"spec.ports[{index}].nodePort", number))
            seen.add((port["protocol"], number))
    seen.clear()
    for index, port in enumerate(ports):
        key = (port["protocol"], port["port"])
        if key in seen:
            shown = {
                "Name": "", "Protocol": port["protocol"], "AppProtocol": None, "Port": port["port"], "TargetPort": 0,
                "NodePort": 0,
            }  # fmt: skip
            problems.append(duplicate(f"spec.ports[{index}]", shown))
        seen.add(key)
    return problems


def _load_balancer(service: Json) -> list[StatusCause]:
    spec = service["spec"]
    balanced = spec["type"] == "LoadBalancer"
    problems: list[StatusCause] = []
    if ranges := spec.get("loadBalancerSourceRanges"):
        field = "spec.LoadBalancerSourceRanges"
        if not balanced:
            problems.append(forbidden(field, _LOAD_BALANCER_ONLY))
        for index, each in enumerate(ranges):
            problems += range_problems(each.strip(), f"{field}[{index}]")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        problems.append(forbidden("spec.allocateLoadBalancerNodePorts", _LOAD_BALANCER_ONLY))
    if (class_ := spec.get("loadBalancerClass")) is not None:
        if balanced:
            problems += each_invalid("spec.loadBalancerClass", class_, qualified_name(class_))
        else:
            problems.append(forbidden("spec.loadBalancerClass", _LOAD_BALANCER_ONLY))
    return problems


def _traffic(spec: Json) -> list[StatusCause]:
    problems: list[StatusCause] = []
    external = spec.get("externalTrafficPolicy")
    if not externally_accessible(spec):
        if external:
            why = "may only be set for externally-accessible services"
            problems.append(invalid("spec.externalTrafficPolicy", external, why))
    elif external not in ("Cluster", "Local"):
        problems.append(not_supported("spec.externalTrafficPolicy", external, ("Cluster", "Local")))
    if spec.get("healthCheckNodePort") and not needs_health_check(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        problems.append(invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], why))
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in ("Cluster", "Local"):
        problems.append(not_supported("spec.internalTrafficPolicy", inside, ("Cluster", "Local")))
    distribution = spec.get("trafficDistribution")
    if distribution not in (None, "PreferClose", "PreferSameZone", "PreferSameNode"):
        supported = ("PreferClose", "PreferSameZone", "PreferSameNode")
        problems.append(not_supported("spec.trafficDistribution", distribution, supported))
    return problems


def service_change_problems(service: Json, old: Json) -> list[StatusCause]:
    """Changes to a Service that are refused: its addresses stay."""
    spec, was = service["spec"], old["spec"]
    if "ExternalName" in (spec["type"], was["type"]):
        return []
    problems: list[StatusCause] = []
    new, before = spec.get("clusterIPs", []), was.get("clusterIPs", [])
    if not (is_headless(spec) and is_headless(was)):
        if before and not new:
            problems.append(invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset"))
        elif before and new[0] != before[0]:
            problems.append(invalid("spec.clusterIPs[0]", new, "may not change once set"))
    families, old_families = spec.get("ipFamilies", []), was.get("ipFamilies", [])
    same_kind = is_headless(spec) == is_headless(was)
    if same_kind and not is_headless(spec) and families and old_families and families[0] != old_families[0]:
        problems.append(invalid("spec.ipFamilies[0]", families, "may not change once set"))
    if spec["type"] == was["type"] == "LoadBalancer" and spec.get("loadBalancerClass") != was.get("loadBalancerClass"):
        problems.append(invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set"))
    return problems
