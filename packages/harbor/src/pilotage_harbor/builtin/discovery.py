"""EndpointSlices and Endpoints. They may hold loopback addresses here, which kube-apiserver refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    immutable,
    invalid,
    not_supported,
    required,
    too_many,
)
from pilotage_harbor.apimachinery.names import dns_label, dns_subdomain, label_value, port_number, qualified_name
from pilotage_harbor.builtin.addresses import address_problems, endpoint_problems, parse_address
from pilotage_harbor.builtin.base import Builtin, kind
from pilotage_harbor.builtin.cells import at, few, text
from pilotage_harbor.builtin.container_rules import PROTOCOLS
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind

_TYPES = ("FQDN", "IPv4", "IPv6")


class EndpointSliceStrategy(Builtin):
    """An EndpointSlice."""

    go_type = "discovery.EndpointSlice"
    status = False
    counts = ("addressType", "endpoints", "ports")

    def fill(self, obj: Json) -> None:
        """Defaults."""
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def count(self, obj: Json, old: Json) -> None:
        """Changes of labels count, too."""
        super().count(obj, old)
        if obj["metadata"].get("labels") != old["metadata"].get("labels"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def check(self, obj: Json) -> list[StatusCause]:
        """All of it."""
        type_ = obj.get("addressType", "")
        problems: list[StatusCause] = []
        if not type_:
            problems.append(required("addressType"))
        elif type_ not in _TYPES:
            problems.append(not_supported("addressType", type_, _TYPES))
        problems += self._ports(obj.get("ports") or [])
        return problems + self._endpoints(obj, type_)

    def _endpoints(self, obj: Json, type_: str) -> list[StatusCause]:
        problems: list[StatusCause] = []
        endpoints = obj.get("endpoints") or []
        if len(endpoints) > 1000:
            return [*problems, too_many("endpoints", len(endpoints), 1000)]
        for index, endpoint in enumerate(endpoints):
            problems += self._endpoint(endpoint, type_, f"endpoints[{index}]")
        return problems

    def _ports(self, ports: list[Json]) -> list[StatusCause]:
        problems: list[StatusCause] = []
        names: set[str] = set()
        for index, port in enumerate(ports):
            here, name = f"ports[{index}]", port["name"]
            if name:
                problems += each_invalid(f"{here}.name", name, dns_label(name))
            if name in names:
                problems.append(duplicate(f"{here}.name", name))
            names.add(name)
            if port["protocol"] not in PROTOCOLS:
                problems.append(not_supported(f"{here}.protocol", port["protocol"], PROTOCOLS))
            if (protocol := port.get("appProtocol")) is not None:
                problems += each_invalid(f"{here}.appProtocol", protocol, qualified_name(protocol))
        return problems

    def _endpoint(self, endpoint: Json, type_: str, field: str) -> list[StatusCause]:
        problems: list[StatusCause] = []
        addresses = endpoint.get("addresses") or []
        if not addresses:
            problems.append(required(f"{field}.addresses", "must contain at least 1 address"))
        elif len(addresses) > 100:
            problems.append(too_many(f"{field}.addresses", len(addresses), 100))
        for index, address in enumerate(addresses):
            problems += self._address(address, type_, f"{field}.addresses", index)
        if (node := endpoint.get("nodeName")) is not None:
            problems += each_invalid(f"{field}.nodeName", node, dns_subdomain(node))
        if (host := endpoint.get("hostname")) is not None:
            problems += each_invalid(f"{field}.hostname", host, dns_label(host))
        for index, zone in enumerate((endpoint.get("hints") or {}).get("forZones", ())):
            problems += each_invalid(f"{field}.hints.forZones[{index}].name", zone["name"], label_value(zone["name"]))
        return problems

    def _address(self, address: str, type_: str, field: str, index: int) -> list[StatusCause]:
        here = f"{field}[{index}]"
        if type_ == "FQDN":
            name = address.removesuffix(".")
            if why := dns_subdomain(name):
                return [invalid(here, name, ",".join(why))]
            if "." not in name:
                return [invalid(here, name, "should be a domain with at least two segments separated by dots")]
            return []
        if type_ not in ("IPv4", "IPv6"):
            return []
        if wrong := address_problems(address, here):
            return wrong
        parsed = parse_address(address)
        problems: list[StatusCause] = []
        if parsed is not None and f"IPv{parsed.version}" != type_:
            problems.append(invalid(field, address, f"must be an {type_} address"))
        return problems + endpoint_problems(address, here)

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The type of its addresses stays."""
        same = obj.get("endpoints") == old.get("endpoints")
        problems = self.check(obj | {"endpoints": []} if same else obj)
        return problems + immutable("addressType", obj.get("addressType"), old.get("addressType"))


class EndpointsStrategy(Builtin):
    """Endpoints, the older form."""

    go_type = "core.Endpoints"
    status = False
    create_on_update = True

    def fill(self, obj: Json) -> None:
        """Defaults."""
        for subset in obj.get("subsets", ()):
            for port in subset.get("ports", ()):
                port.setdefault("protocol", "TCP")

    def check(self, obj: Json) -> list[StatusCause]:
        """All subsets."""
        problems: list[StatusCause] = []
        for index, subset in enumerate(obj.get("subsets", ())):
            here = f"subsets[{index}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                problems.append(required(here, "must specify `addresses` or `notReadyAddresses`"))
            for name in ("addresses", "notReadyAddresses"):
                for place, address in enumerate(subset.get(name, ())):
                    problems += self._address(address, f"{here}.{name}[{place}]")
            ports = subset.get("ports", [])
            for place, port in enumerate(ports):
                problems += self._port(port, f"{here}.ports[{place}]", alone=len(ports) == 1)
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of changed subsets; unchanged ones are not validated again."""
        return [] if obj.get("subsets") == old.get("subsets") else self.check(obj)

    def _address(self, address: Json, field: str) -> list[StatusCause]:
        problems = address_problems(address["ip"], f"{field}.ip")
        if host := address.get("hostname"):
            problems += each_invalid(f"{field}.hostname", host, dns_label(host))
        if (node := address.get("nodeName")) is not None:
            problems += each_invalid(f"{field}.nodeName", node, dns_subdomain(node))
        return problems + endpoint_problems(address["ip"], f"{field}.ip")

    def _port(self, port: Json, field: str, *, alone: bool) -> list[StatusCause]:
        problems: list[StatusCause] = []
        if name := port.get("name"):
            problems += each_invalid(f"{field}.name", name, dns_label(name))
        elif not alone:
            problems.append(required(f"{field}.name"))
        problems += each_invalid(f"{field}.port", port["port"], port_number(port["port"]))
        if port["protocol"] not in PROTOCOLS:
            problems.append(not_supported(f"{field}.protocol", port["protocol"], PROTOCOLS))
        return problems

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """The kind is on its way out."""
        return ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]


def _slice_ports(obj: Json) -> str:
    ports = obj.get("ports") or ()
    return few([str(each["port"]) if each.get("port") is not None else each.get("name", "*") for each in ports])


def _slice_endpoints(obj: Json) -> str:
    return few([address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()])


def _endpoints(obj: Json) -> str:
    shown: list[str] = []
    for subset in obj.get("subsets", ()):
        addresses = [f"[{each['ip']}]" if ":" in each["ip"] else each["ip"] for each in subset.get("addresses", ())]
        ports = [f":{port['port']}" for port in subset.get("ports", ())] or [""]
        shown += [f"{address}{port}" if port else address.strip("[]") for port in ports for address in addresses]
    if not obj.get("subsets"):
        return "<none>"
    return few(shown) if shown else ""


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "discovery.k8s.io/v1",
            "endpointslices",
            "EndpointSlice",
            EndpointSliceStrategy(),
            (
                NAME,
                text("AddressType", at("addressType")),
                text("Ports", _slice_ports),
                text("Endpoints", _slice_endpoints),
                AGE,
            ),
        ),
        kind(
            "v1",
            "endpoints",
            "Endpoints",
            EndpointsStrategy(),
            (NAME, text("Endpoints", _endpoints), AGE),
            short="ep",
            singular="endpoints",
        ),
    ]
