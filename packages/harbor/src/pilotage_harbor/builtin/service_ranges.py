"""ServiceCIDRs and IPAddresses, as objects: harbor takes the addresses of Services from one fixed range."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import IMMUTABLE, each_invalid, immutable, invalid, required
from pilotage_harbor.apimachinery.names import dns_subdomain, path_segment
from pilotage_harbor.builtin.addresses import parse_address, range_problems
from pilotage_harbor.builtin.base import Builtin, kind, named, path
from pilotage_harbor.builtin.cells import text
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind

_RANGES_MAX = 2


def _address_name(name: str, *, prefix: bool) -> list[str]:  # noqa: ARG001 - a rule of names
    address = parse_address(name)
    if address is None:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if str(address) == name else [f'must be in canonical form ("{address}")']


class IPAddressStrategy(Builtin):
    """An IPAddress, whose name is the address: what it belongs to is immutable."""

    go_type = "networking.IPAddress"
    status = False
    name_problems = named(_address_name)

    def check(self, obj: Json) -> list[StatusCause]:
        """Problems of the reference to the object that the address belongs to."""
        field, parent = "spec.parentRef", path(obj, "spec", "parentRef")
        if parent is None:
            return [required(field)]
        problems: list[StatusCause] = []
        if group := parent.get("group"):
            problems += each_invalid(f"{field}.group", group, dns_subdomain(group))
        for name in ("resource", "name"):
            if value := parent.get(name):
                problems += each_invalid(f"{field}.{name}", value, path_segment(value))
            else:
                problems.append(required(f"{field}.{name}"))
        if namespace := parent.get("namespace"):
            problems += each_invalid(f"{field}.namespace", namespace, path_segment(namespace))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a changed object: its parent is immutable."""
        new, was = (_as_go_shows(path(each, "spec", "parentRef")) for each in (obj, old))
        return self.check(obj) + immutable("spec.parentRef", new, was)


class ServiceCIDRStrategy(Builtin):
    """A ServiceCIDR: one range of each family; a second family may be added."""

    go_type = "networking.ServiceCIDR"

    def check(self, obj: Json) -> list[StatusCause]:
        """The ranges."""
        field, ranges = "spec.cidrs", obj["spec"].get("cidrs") or []
        if not ranges:
            return [required(field, "at least one CIDR required")]
        if len(ranges) > _RANGES_MAX:
            return [invalid(field, {"CIDRs": ranges}, "may only hold up to 2 values")]
        problems: list[StatusCause] = []
        for index, each in enumerate(ranges):
            problems += _canonical_range(each, f"{field}[{index}]")
        families = [":" in each for each in ranges]
        if not problems and len(set(families)) < len(families):
            why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            problems.append(invalid(field, ranges, why))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Ranges stay; one may become two."""
        field = "spec.cidrs"
        new, was = (each["spec"].get("cidrs") or [] for each in (obj, old))
        added = len(was) == 1 and len(new) == _RANGES_MAX
        if len(new) != len(was) and not added:
            return [invalid(field, new, IMMUTABLE)]
        problems = [
            invalid(f"{field}[{index}]", now, IMMUTABLE)
            for index, (now, before) in enumerate(zip(new, was, strict=False))
            if now != before
        ]
        return problems + (self.check(obj) if added else [])


def _canonical_range(text_: str, field: str) -> list[StatusCause]:
    if problems := range_problems(text_, field):
        return problems
    network = ipaddress.ip_network(text_, strict=False)
    return [] if str(network) == text_ else [invalid(field, text_, f'must be in canonical form ("{network}")')]


def _as_go_shows(parent: Json | None) -> Json | None:
    if parent is None:
        return None
    return {name.title(): parent.get(name, "") for name in ("group", "resource", "namespace", "name")}


def _parent(obj: Json) -> str:
    parent = path(obj, "spec", "parentRef")
    if parent is None:
        return "<none>"
    group, namespace = parent.get("group"), parent.get("namespace")
    resource = f"{parent.get('resource', '')}.{group}" if group else parent.get("resource", "")
    return "/".join(part for part in (resource.lower(), namespace, parent.get("name", "")) if part)


def kinds() -> list[Kind]:
    """The kinds of this family."""
    api = "networking.k8s.io/v1"
    return [
        kind(
            api,
            "ipaddresses",
            "IPAddress",
            IPAddressStrategy(),
            (NAME, text("ParentRef", _parent)),
            namespaced=False,
            short="ip",
        ),
        kind(
            api,
            "servicecidrs",
            "ServiceCIDR",
            ServiceCIDRStrategy(),
            (NAME, text("CIDRs", lambda obj: ",".join(path(obj, "spec", "cidrs") or ())), AGE),
            namespaced=False,
            subresources="status",
        ),
    ]
