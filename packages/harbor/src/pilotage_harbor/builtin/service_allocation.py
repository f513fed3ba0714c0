"""Cluster IPs and node ports of Services: taken from what other Services leave free.

There is no record of what is taken but the Services themselves, so nothing can leak.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.errors import internal
from pilotage_harbor.apimachinery.errors import invalid as invalid_status
from pilotage_harbor.apimachinery.field_errors import invalid
from pilotage_harbor.builtin.addresses import parse_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.apimachinery.errors import StatusCause, StatusError
    from pilotage_harbor.kinds import Json, View

RANGE = ipaddress.ip_network("10.0.0.0/16")
PORTS = range(30000, 32768)
_FIRST = int(RANGE.network_address) + 1
_COUNT = RANGE.num_addresses - 2
# As the real one does it: the lower part is for addresses that somebody chooses.
_CHOSEN = 256


def refusal(service: Json, causes: list[StatusCause]) -> StatusError:
    """Answer (422) to a Service for which nothing could be allocated."""
    return invalid_status("", "Service", service["metadata"].get("name", ""), causes)


def init_families(service: Json) -> None:
    """IP families and their policy. This cluster knows IPv4 alone."""
    spec = service["spec"]
    headless_alone = spec.get("clusterIP") == "None" and not spec.get("selector")
    policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if headless_alone else "SingleStack")
    families, field = spec.get("ipFamilies", []), "spec.ipFamilyPolicy"
    problems: list[StatusCause] = []
    if policy == "SingleStack":
        why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
        if len(spec.get("clusterIPs", ())) == 2:
            problems.append(invalid(field, policy, f"{why} cluster IPs are specified"))
        if len(families) == 2:
            problems.append(invalid(field, policy, f"{why} IP families are specified"))
    if problems:
        raise refusal(service, problems)
    if headless_alone:
        families = families or ["IPv4"]
        if len(families) == 1 and policy != "SingleStack":
            families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
        spec["ipFamilies"] = families
        return
    if policy == "RequireDualStack":
        problems.append(invalid(field, policy, "this cluster is not configured for dual-stack services"))
    for index, family in enumerate(families):
        if family != "IPv4":
            problems.append(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
    if problems:
        raise refusal(service, problems)
    spec["ipFamilies"] = families or ["IPv4"]


def allocate_address(service: Json, view: View) -> None:
    """Give a Service its cluster IP, or check the one that it wants. Raises what kube-apiserver answers."""
    spec = service["spec"]
    wanted = (spec.get("clusterIPs") or [spec.get("clusterIP", "")])[0]
    if wanted == "None":
        return
    taken = {
        address
        for other in view.objects("services")
        if not _same(other, service)
        for address in other["spec"].get("clusterIPs", ())
    }
    if wanted:
        address = parse_address(wanted)
        why = ""
        if address is None or address not in RANGE or not _FIRST <= int(address) < _FIRST + _COUNT:
            why = "the provided network does not match the current range"
        elif wanted in taken:
            why = "provided IP is already allocated"
        if why:
            cause = invalid("spec.clusterIPs", [wanted], f"failed to allocate IP {wanted}: {why}")
            raise refusal(service, [cause])
    else:
        wanted = _free(taken, service["metadata"].get("uid", "") or service["metadata"].get("name", ""))
        if not wanted:
            name = service["metadata"].get("name", "")
            raise internal(f'failed to allocate a serviceIP for Service "{name}": range is full')
    spec["clusterIP"] = wanted
    spec["clusterIPs"] = [wanted]


def _same(other: Json, service: Json) -> bool:
    one, two = other["metadata"], service["metadata"]
    return (one.get("namespace"), one.get("name")) == (two.get("namespace"), two.get("name"))


def _free(taken: set[str], seed: str) -> str:
    """A free address, from somewhere that depends on the seed, so that neighbours in time are not neighbours."""
    start = int.from_bytes(seed.encode()[-8:], "big") % (_COUNT - _CHOSEN)
    for step in range(_COUNT - _CHOSEN):
        address = str(ipaddress.IPv4Address(_FIRST + _CHOSEN + (start + step) % (_COUNT - _CHOSEN)))
        if address not in taken:
            return address
    for step in range(_CHOSEN):
        address = str(ipaddress.IPv4Address(_FIRST + step))
        if address not in taken:
            return address
    return ""


def allocate_ports(service: Json, view: View) -> None:
    """Give the ports of a NodePort or LoadBalancer Service their node ports, or check those that it wants."""
    spec = service["spec"]
    ports = spec.get("ports", [])
    automatic = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
    if not any(port.get("nodePort") or automatic for port in ports) and not needs_health_check(spec):
        return
    taken = set(_node_ports(other for other in view.objects("services") if not _same(other, service)))
    given: dict[int, int] = {}
    for index, port in enumerate(ports):
        wanted = port.get("nodePort") or given.get(port["port"])
        if wanted:
            if wanted in taken or wanted not in PORTS:
                raise refusal(service, [_port_problem(index, wanted)])
        elif automatic:
            wanted = _next_port(taken | set(given.values()) | {each.get("nodePort", 0) for each in ports})
        else:
            continue
        port["nodePort"] = given[port["port"]] = wanted
    if needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _next_port(taken | set(given.values()))


def needs_health_check(spec: Json) -> bool:
    """Whether a load balancer has to ask which nodes have endpoints."""
    return bool(spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def _port_problem(index: int, wanted: int) -> StatusCause:
    why = "provided port is already allocated"
    if wanted not in PORTS:
        why = f"provided port is not in the valid range. The range of valid ports is {PORTS[0]}-{PORTS[-1]}"
    return invalid(f"spec.ports[{index}].nodePort", wanted, why)


def _node_ports(services: Iterable[Json]) -> Iterable[int]:
    for service in services:
        yield service["spec"].get("healthCheckNodePort", 0)
        for port in service["spec"].get("ports", ()):
            yield port.get("nodePort", 0)


def _next_port(taken: set[int]) -> int:
    found = next((port for port in PORTS if port not in taken), 0)
    if not found:
        raise internal("failed to allocate a nodePort: range is full")
    return found
