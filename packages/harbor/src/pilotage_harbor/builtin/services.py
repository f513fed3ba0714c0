"""Services, with their addresses and ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import forbidden, required
from pilotage_harbor.apimachinery.names import dns_label
from pilotage_harbor.builtin.addresses import ingress_problems
from pilotage_harbor.builtin.base import Builtin, kind, named, path
from pilotage_harbor.builtin.cells import at, labels, text
from pilotage_harbor.builtin.service_allocation import (
    allocate_address,
    allocate_ports,
    init_families,
    needs_health_check,
    refusal,
)
from pilotage_harbor.builtin.service_rules import (
    address_field_problems,
    externally_accessible,
    service_change_problems,
    service_problems,
)
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_ADDRESSES = ("clusterIP", "clusterIPs")


class ServiceStrategy(Builtin):
    """A Service: what was allocated for it survives an update that does not mention it."""

    go_type = "core.Service"
    create_on_update = True
    allocates = True
    name_problems = named(dns_label)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        affinity = spec.setdefault("sessionAffinity", "None")
        if affinity == "None":
            spec.pop("sessionAffinityConfig", None)
        elif affinity == "ClientIP" and path(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
        type_ = spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports", ()):
            port.setdefault("protocol", "TCP")
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port["port"]
        if externally_accessible(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if type_ in ("NodePort", "LoadBalancer", "ClusterIP"):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if type_ == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in path(obj, "status", "loadBalancer", "ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_create(self, obj: Json, view: View) -> None:
        """Allocate."""
        spec = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        self._allocate(obj, view)
        super().prepare_create(obj, view)

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Keep what was allocated; allocate what a new type needs."""
        super().prepare_update(obj, old, view)
        spec, was = obj["spec"], old["spec"]
        self._normalize(spec, was)
        if "ExternalName" not in (spec["type"], was["type"]):
            for name in _ADDRESSES:
                if not spec.get(name) and was.get(name):
                    spec[name] = was[name]
        self._keep_ports(spec, was)
        if spec["type"] == "ExternalName" != was["type"]:
            for name in (*_ADDRESSES, "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
                if spec.get(name) == was.get(name):
                    spec.pop(name, None)
        self._drop(obj, old)
        if spec["type"] != "ExternalName":
            for name in ("ipFamilies", "ipFamilyPolicy"):
                if name not in spec and name in was:
                    spec[name] = was[name]
            if spec.get("clusterIPs") and spec.get("clusterIPs") == was.get("clusterIPs"):
                allocate_ports_if_needed(obj, view)
            else:
                self._allocate(obj, view, old)

    def _normalize(self, spec: Json, was: Json) -> None:
        """Follow a client that knows the older of the two fields only."""
        if was.get("clusterIPs") and not spec.get("clusterIPs") and was.get("clusterIP") == spec.get("clusterIP"):
            spec["clusterIPs"] = was["clusterIPs"]
        if was.get("clusterIP") != spec.get("clusterIP") and was.get("clusterIPs") == spec.get("clusterIPs"):
            if spec.get("clusterIP"):
                spec["clusterIPs"] = [spec["clusterIP"]]
            else:
                spec.pop("clusterIPs", None)

    def _allocate(self, obj: Json, view: View, old: Json | None = None) -> None:
        if obj["spec"]["type"] == "ExternalName":
            return
        if problems := address_field_problems(obj["spec"]):
            raise refusal(obj, problems)
        if old is not None and (old["spec"]["type"] != "ExternalName" and old["spec"].get("clusterIPs")):
            return  # validation says what is wrong with another address
        init_families(obj)
        allocate_address(obj, view)
        allocate_ports_if_needed(obj, view)

    def _keep_ports(self, spec: Json, was: Json) -> None:
        if not (_uses_node_ports(spec) and _uses_node_ports(was)):
            return
        before = {port.get("name", ""): port.get("nodePort") for port in was.get("ports", ())}
        asked = {port.get("nodePort") for port in spec.get("ports", ())} & set(before.values())
        for port in spec.get("ports", ()):
            number = before.get(port.get("name", ""))
            if not port.get("nodePort") and number and number not in asked:
                port["nodePort"] = number
        if needs_health_check(spec) and needs_health_check(was) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = was.get("healthCheckNodePort", 0)

    def _drop(self, obj: Json, old: Json) -> None:
        """Forget what a new type has no use for, unless it was changed at the same time."""
        spec, was = obj["spec"], old["spec"]
        numbers = [[port.get("nodePort") for port in each.get("ports", ())] for each in (spec, was)]
        if _uses_node_ports(was) and not _uses_node_ports(spec) and numbers[0] == numbers[1]:
            for port in spec.get("ports", ()):
                port.pop("nodePort", None)
        gone = []
        if needs_health_check(was) and not needs_health_check(spec):
            gone.append("healthCheckNodePort")
        if was["type"] == "LoadBalancer" != spec["type"]:
            gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
        if externally_accessible(was) and not externally_accessible(spec):
            gone.append("externalTrafficPolicy")
        for name in gone:
            if spec.get(name) == was.get(name):
                spec.pop(name, None)
        if spec["type"] != "LoadBalancer":
            obj["status"] = (obj.get("status") or {}) | {"loadBalancer": {}}

    def check(self, obj: Json) -> list[StatusCause]:
        """A Service by itself."""
        return service_problems(obj)

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Its addresses stay."""
        return service_change_problems(obj, old) + service_problems(obj)

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Refuse an ingress on any Service that is no load balancer."""
        field, points = "status.loadBalancer.ingress", path(obj, "status", "loadBalancer", "ingress") or []
        if obj["spec"]["type"] != "LoadBalancer" and points:
            return [forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")]
        problems = ingress_problems(points, field)
        for index, point in enumerate(points):
            if point.get("ip") and point.get("ipMode") is None:
                problems.append(required(f"{field}[{index}].ipMode", "must be specified when `ip` is set"))
        return problems

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        return {"spec.clusterIP": obj["spec"].get("clusterIP", ""), "spec.type": obj["spec"].get("type", "")}


def allocate_ports_if_needed(service: Json, view: View) -> None:
    """Node ports, for the types that have them."""
    if service["spec"]["type"] in ("NodePort", "LoadBalancer"):
        allocate_ports(service, view)


def _uses_node_ports(spec: Json) -> bool:
    if spec["type"] == "LoadBalancer":
        return bool(spec.get("allocateLoadBalancerNodePorts", True))
    return bool(spec["type"] == "NodePort")


def ingress_addresses(obj: Json) -> str:
    """Addresses of the load balancer, joined by commas."""
    points = path(obj, "status", "loadBalancer", "ingress") or ()
    return ",".join(sorted({each.get("ip") or each.get("hostname", "") for each in points} - {""}))


def _external(obj: Json) -> str:
    spec, own = obj["spec"], obj["spec"].get("externalIPs", [])
    if spec["type"] == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec["type"] == "LoadBalancer":
        balancer = ingress_addresses(obj)
        return ",".join(([balancer] if balancer else []) + own) or "<pending>"
    return ",".join(own) or "<none>"


def _ports(obj: Json) -> str:
    shown = []
    for port in obj["spec"].get("ports", ()):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port['port']}{node}/{port['protocol']}")
    return ",".join(shown) or "<none>"


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "v1",
            "services",
            "Service",
            ServiceStrategy(),
            (
                NAME,
                text("Type", at("spec", "type")),
                text("Cluster-IP", lambda obj: (obj["spec"].get("clusterIPs") or ["<none>"])[0]),
                text("External-IP", _external),
                text("Port(s)", _ports),
                AGE,
                text("Selector", lambda obj: labels(path(obj, "spec", "selector")), wide=True),
            ),
            short="svc",
            categories="all",
            subresources="status proxy",
            selectable="spec.clusterIP spec.type",
        )
    ]
