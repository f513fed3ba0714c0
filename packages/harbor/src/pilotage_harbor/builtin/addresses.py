"""Validation of IP addresses and ranges."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import each_invalid, invalid
from pilotage_harbor.apimachinery.names import dns_subdomain

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address | None:
    """The address, or None."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def address_problems(text: str, field: str) -> list[StatusCause]:
    """An IPv4 or IPv6 address."""
    if parse_address(text) is not None:
        return []
    return [invalid(field, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]


def endpoint_problems(text: str, field: str) -> list[StatusCause]:
    """An address that traffic can be sent to. Loopback is fine: on one machine, that is where the servers are."""
    address = parse_address(text)
    if address is None:
        return [invalid(field, text, "must be a valid IP address")]
    problems = []
    if address.is_unspecified:
        problems.append(invalid(field, text, f"may not be unspecified ({text})"))
    if address.is_link_local:
        problems.append(invalid(field, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if text.startswith("224.0.0.") or (address.version == 6 and text.lower().startswith("ff02:")):
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        problems.append(invalid(field, text, why))
    return problems


def ingress_problems(points: list[Json], field: str) -> list[StatusCause]:
    """Problems of where a load balancer takes traffic."""
    problems: list[StatusCause] = []
    for index, point in enumerate(points):
        here = f"{field}[{index}]"
        if ip := point.get("ip"):
            problems += address_problems(ip, f"{here}.ip")
        if host := point.get("hostname"):
            problems += each_invalid(f"{here}.hostname", host, dns_subdomain(host))
            if parse_address(host) is not None:
                problems.append(invalid(f"{here}.hostname", host, "must be a DNS name, not an IP address"))
    return problems


def range_problems(text: str, field: str) -> list[StatusCause]:
    """A range in CIDR notation."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        return [invalid(field, text, why)]
    return (
        [] if "/" in text else [invalid(field, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    )
