"""Ingress, IngressClass and NetworkPolicy."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    each_invalid,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.apimachinery.names import (
    dns_label,
    dns_subdomain,
    path_segment,
    port_name,
    port_number,
    wildcard_subdomain,
)
from pilotage_harbor.builtin.addresses import ingress_problems, parse_address, range_problems
from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.builtin.cells import at, selector, text
from pilotage_harbor.builtin.services import ingress_addresses
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_PROTOCOLS = ("TCP", "UDP", "SCTP")


def _host_problems(host: str, field: str) -> list[StatusCause]:
    return each_invalid(field, host, wildcard_subdomain(host) if "*" in host else dns_subdomain(host))


class IngressStrategy(Builtin):
    """An Ingress."""

    go_type = "networking.Ingress"
    counts = ("spec",)

    def prepare_create(self, obj: Json, view: View) -> None:
        """The default class."""
        super().prepare_create(obj, view)
        old_way = (obj["metadata"].get("annotations") or {}).get("kubernetes.io/ingress.class")
        if obj["spec"].get("ingressClassName") is None and old_way is None:
            classes = [each for each in view.objects("ingressclasses.networking.k8s.io") if _is_default(each)]
            if classes:
                newest = max(classes, key=lambda each: str(each["metadata"].get("creationTimestamp", "")))
                obj["spec"]["ingressClassName"] = newest["metadata"]["name"]

    def check(self, obj: Json) -> list[StatusCause]:
        """A new one."""
        problems = self._check_spec(obj["spec"])
        old_way = (obj["metadata"].get("annotations") or {}).get("kubernetes.io/ingress.class")
        name = obj["spec"].get("ingressClassName")
        if old_way is not None and name is not None and old_way != name:
            why = "must match `ingressClassName` when both are specified"
            problems.append(invalid("annotations.kubernetes.io/ingress.class", old_way, why))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Anything may change."""
        return self._check_spec(obj["spec"])

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """A class that is named in the old way."""
        name = "kubernetes.io/ingress.class"
        old_way = (obj["metadata"].get("annotations") or {}).get(name)
        if old is not None or old_way is None or obj["spec"].get("ingressClassName") is not None:
            return []
        return [f"annotation \"{name}\" is deprecated, please use 'spec.ingressClassName' instead"]

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Problems of the load balancer's ingress points."""
        points = path(obj, "status", "loadBalancer", "ingress") or []
        return ingress_problems(points, "status.loadBalancer.ingress")

    def _check_spec(self, spec: Json) -> list[StatusCause]:
        problems: list[StatusCause] = []
        rules = spec.get("rules") or []
        if not rules and spec.get("defaultBackend") is None:
            why = "either `defaultBackend` or `rules` must be specified"
            problems.append(invalid("spec", spec.get("rules"), why))
        if (backend := spec.get("defaultBackend")) is not None:
            problems += self._backend(backend, "spec.defaultBackend")
        for index, rule in enumerate(rules):
            problems += self._rule(rule, f"spec.rules[{index}]")
        for index, tls in enumerate(spec.get("tls", ())):
            for place, host in enumerate(tls.get("hosts", ())):
                problems += _host_problems(host, f"spec.tls[{index}].hosts[{place}]")
            if secret := tls.get("secretName"):
                problems += each_invalid(f"spec.tls[{index}].secretName", secret, dns_subdomain(secret))
        if (name := spec.get("ingressClassName")) is not None:
            problems += each_invalid("spec.ingressClassName", name, dns_subdomain(name))
        return problems

    def _rule(self, rule: Json, field: str) -> list[StatusCause]:
        problems: list[StatusCause] = []
        if host := rule.get("host"):
            if parse_address(host) is not None:
                problems.append(invalid(f"{field}.host", host, "must be a DNS name, not an IP address"))
            problems += _host_problems(host, f"{field}.host")
        if (http := rule.get("http")) is not None:
            paths = http.get("paths") or []
            if not paths:
                problems.append(required(f"{field}.http.paths"))
            for index, each in enumerate(paths):
                problems += self._path(each, f"{field}.http.paths[{index}]")
        return problems

    def _path(self, each: Json, field: str) -> list[StatusCause]:
        type_, text_ = each.get("pathType"), each.get("path", "")
        if type_ is None:
            return [required(f"{field}.pathType", "pathType must be specified")]
        problems: list[StatusCause] = []
        if type_ not in _PATH_TYPES:
            problems.append(not_supported(f"{field}.pathType", type_, _PATH_TYPES))
        elif not text_.startswith("/") and (text_ or type_ != "ImplementationSpecific"):
            problems.append(invalid(f"{field}.path", text_, "must be an absolute path"))
        if type_ in ("Exact", "Prefix"):
            parts = [f"must not contain '{part}'" for part in _BAD_PARTS if part in text_]
            ends = [f"cannot end with '{end}'" for end in ("/..", "/.") if text_.endswith(end)]
            problems += each_invalid(f"{field}.path", text_, parts + ends)
        return problems + self._backend(each["backend"], f"{field}.backend")

    def _backend(self, backend: Json, field: str) -> list[StatusCause]:
        service, resource = backend.get("service"), backend.get("resource")
        if service is not None and resource is not None:
            return [invalid(field, "", "cannot set both resource and service backends")]
        problems: list[StatusCause] = []
        if resource is not None:
            for name in ("kind", "name"):
                value = resource.get(name)
                here = f"{field}.resource.{name}"
                problems += each_invalid(here, value, path_segment(value)) if value else [required(here)]
            return problems
        if service is None:
            return [invalid(field, "", "resource or service backend is required")]
        name = service.get("name")
        here = f"{field}.service"
        problems += each_invalid(f"{here}.name", name, dns_label(name)) if name else [required(f"{here}.name")]
        port = service.get("port") or {}
        if port.get("name") and port.get("number"):
            problems.append(invalid(field, "", "cannot set both port name & port number"))
        elif port.get("name"):
            problems += each_invalid(f"{here}.port.name", port["name"], port_name(port["name"]))
        elif port.get("number"):
            problems += each_invalid(f"{here}.port.number", port["number"], port_number(port["number"]))
        else:
            problems.append(required(field, "port name or number is required"))
        return problems


class IngressClassStrategy(Builtin):
    """An IngressClass: its controller never changes."""

    go_type = "networking.IngressClass"
    status = False
    counts = ("spec",)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        parameters = obj["spec"].get("parameters")
        if parameters is not None and parameters["scope"] is None:
            parameters["scope"] = "Cluster"

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        controller, field = obj["spec"].get("controller", ""), "spec.controller"
        host, _, rest = controller.partition("/")
        if not controller:
            problems = [required(field)]
        elif not host or not rest:
            problems = [invalid(field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')]
        else:
            problems = each_invalid(field, host, dns_subdomain(host))
        if (parameters := obj["spec"].get("parameters")) is not None:
            problems += self._parameters(parameters, "spec.parameters")
        return problems

    def _parameters(self, parameters: Json, field: str) -> list[StatusCause]:
        problems: list[StatusCause] = []
        if (group := parameters.get("apiGroup")) is not None:
            problems += each_invalid(f"{field}.apiGroup", group, dns_subdomain(group))
        for name in ("kind", "name"):
            value = parameters.get(name)
            problems += (
                each_invalid(f"{field}.{name}", value, path_segment(value)) if value else [required(f"{field}.{name}")]
            )
        scope, namespace = parameters["scope"], parameters.get("namespace")
        if scope not in ("Cluster", "Namespace"):
            problems.append(not_supported(f"{field}.scope", scope, ("Cluster", "Namespace")))
        elif scope == "Namespace" and namespace is None:
            problems.append(required(f"{field}.namespace", "`parameters.scope` is set to 'Namespace'"))
        elif scope == "Cluster" and namespace is not None:
            problems.append(forbidden(f"{field}.namespace", "`parameters.scope` is set to 'Cluster'"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Its controller stays."""
        stays = immutable("spec.controller", obj["spec"].get("controller"), old["spec"].get("controller"))
        return stays + self.check(obj)


class NetworkPolicyStrategy(Builtin):
    """A NetworkPolicy, as an object: nothing is kept out here."""

    go_type = "networking.NetworkPolicy"
    status = False
    counts = ("spec",)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction, ()):
                for port in rule.get("ports", ()):
                    port.setdefault("protocol", "TCP")

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        spec = obj["spec"]
        problems = selector_problems(spec.get("podSelector"), "spec.podSelector")
        for direction, side in (("ingress", "from"), ("egress", "to")):
            for index, rule in enumerate(spec.get(direction, ())):
                here = f"spec.{direction}[{index}]"
                for place, port in enumerate(rule.get("ports", ())):
                    problems += self._port(port, f"{here}.ports[{place}]")
                for place, peer in enumerate(rule.get(side, ())):
                    problems += self._peer(peer, f"{here}.{side}[{place}]")
        types = spec["policyTypes"]
        if len(types) > 2:
            return [*problems, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
        for index, each in enumerate(types):
            if each not in ("Ingress", "Egress"):
                problems.append(not_supported(f"spec.policyTypes[{index}]", each, ("Ingress", "Egress")))
        return problems

    def _port(self, port: Json, field: str) -> list[StatusCause]:
        problems: list[StatusCause] = []
        if port["protocol"] not in _PROTOCOLS:
            problems.append(not_supported(f"{field}.protocol", port["protocol"], _PROTOCOLS))
        number, end = port.get("port"), port.get("endPort")
        if number is None:
            if end is not None:
                problems.append(invalid(f"{field}.endPort", end, "may not be specified when `port` is not specified"))
        elif isinstance(number, str):
            if end is not None:
                problems.append(invalid(f"{field}.endPort", end, "may not be specified when `port` is non-numeric"))
            problems += each_invalid(f"{field}.port", number, port_name(number))
        else:
            problems += each_invalid(f"{field}.port", number, port_number(number))
            if end is not None:
                if end < number:
                    problems.append(invalid(f"{field}.endPort", number, "must be greater than or equal to `port`"))
                problems += each_invalid(f"{field}.endPort", end, port_number(end))
        return problems

    def _peer(self, peer: Json, field: str) -> list[StatusCause]:
        problems: list[StatusCause] = []
        found = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
        for name in found:
            if name == "ipBlock":
                problems += self._block(peer[name], f"{field}.ipBlock")
            else:
                problems += selector_problems(peer[name], f"{field}.{name}")
        if not found:
            problems.append(required(field, "must specify a peer"))
        elif len(found) > 1 and "ipBlock" in found:
            problems.append(forbidden(field, "may not specify both ipBlock and another peer"))
        return problems

    def _block(self, block: Json, field: str) -> list[StatusCause]:
        if not block.get("cidr"):
            return [required(f"{field}.cidr")]
        problems = range_problems(block["cidr"], f"{field}.cidr")
        if problems:
            return problems
        whole = ipaddress.ip_network(block["cidr"], strict=False)
        for index, each in enumerate(block.get("except", ())):
            here = f"{field}.except[{index}]"
            if wrong := range_problems(each, here):
                problems += wrong
                continue
            part = ipaddress.ip_network(each, strict=False)
            inside = part.version == whole.version and part.network_address in whole
            if not inside or whole.prefixlen >= part.prefixlen:
                problems.append(invalid(here, each, "must be a strict subset of `cidr`"))
        return problems


def _is_default(obj: Json) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"


def _hosts(obj: Json) -> str:
    rules = obj["spec"].get("rules") or []
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    more = f" + {len(rules) - 3} more..." if len(hosts) > 3 else ""
    return ",".join(hosts[:3]) + more or "*"


def _parameters(obj: Json) -> str:
    found = path(obj, "spec", "parameters")
    if not found:
        return "<none>"
    group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
    return f"{found['kind']}{group}/{found['name']}"


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "networking.k8s.io/v1",
            "ingresses",
            "Ingress",
            IngressStrategy(),
            (
                NAME,
                text("Class", at("spec", "ingressClassName", default="<none>")),
                text("Hosts", _hosts),
                text("Address", ingress_addresses),
                text("Ports", lambda obj: "80, 443" if obj["spec"].get("tls") else "80"),
                AGE,
            ),
            short="ing",
            subresources="status",
        ),
        kind(
            "networking.k8s.io/v1",
            "ingressclasses",
            "IngressClass",
            IngressClassStrategy(),
            (
                NAME._replace(cell=lambda obj, _: obj["metadata"]["name"] + (" (default)" if _is_default(obj) else "")),
                text("Controller", at("spec", "controller")),
                text("Parameters", _parameters),
                AGE,
            ),
            namespaced=False,
        ),
        kind(
            "networking.k8s.io/v1",
            "networkpolicies",
            "NetworkPolicy",
            NetworkPolicyStrategy(),
            (NAME, text("Pod-Selector", lambda obj: selector(path(obj, "spec", "podSelector"))), AGE),
            short="netpol",
        ),
    ]
