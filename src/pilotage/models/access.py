"""Access rules of the fetcher: what it may reach, and as whom. Set by its owner, never by a Model.

A Model is written by a user; the fetcher runs where it can see more than that user: other files of its host, services
of the cluster, the cloud's metadata address with the operator's own identity. So by default a Model reaches public
addresses over https, and nothing else; the rest is opened here, piece by piece.
"""

import ipaddress
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pilotage.models.limits import Limits

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(map(ipaddress.ip_address, ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")))
"""Metadata services of clouds. The usual one, 169.254.169.254, is link-local."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Access:
    """Rules for what may be reached."""

    roots: tuple[Path, ...] = ()
    """Folders below which file:// sources may be read."""
    networks: tuple[Network, ...] = ()
    """Addresses that are not public and may be connected to all the same."""
    plain_http: bool = False
    """Whether http:// may be used, also by a redirect."""
    ambient: bool = False
    """Whether a bucket may be read with the credentials that this process happens to have (its environment, its cloud
    identity). Right for a pod that runs for one user; with it, an operator would read whatever it can for anybody."""
    hub: str = field(default_factory=lambda: os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    """Base URL of hf:// sources."""
    host: str = field(default_factory=platform.node)
    """The name of this machine, for messages."""
    limits: Limits = Limits()  # noqa: RUF009 - cannot be changed
    """Limits of disk space and time for one source."""

    def allows(self, address: str) -> bool:
        """Whether this address, as it is given to ``connect``, may be connected to."""
        try:
            ip = _inner(ipaddress.ip_address(address.partition("%")[0]))
        except ValueError:
            return False
        if any(ip.version == network.version and ip in network for network in self.networks):
            return True
        return ip.is_global and not ip.is_multicast and ip not in _METADATA


def _inner(ip: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip
    return ip


@dataclass(frozen=True, slots=True)
class SourceCredentials:
    """The entries of a Secret, by name. Never shown."""

    entries: Mapping[str, str] = field(default_factory=dict, repr=False)

    def get(self, *names: str) -> str:
        """The first entry of one of these names that is there and not empty; names are compared in lower case."""
        known = {name.lower(): value.strip() for name, value in self.entries.items()}
        return next((value for name in names if (value := known.get(name.lower(), ""))), "")
