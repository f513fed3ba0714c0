"""Choice of a proxy for a server: the kubeconfig's, else the environment's, by the rules that kubectl follows."""

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from pilotage.kube.config import ClusterConfig
from pilotage.kube.errors import ConfigError

PORTS = {"http": 80, "https": 443}
"""Port of a server whose address names none, by scheme."""


def proxy_for(config: ClusterConfig, env: Mapping[str, str] = os.environ) -> SplitResult | None:
    """The proxy's address, or None where there is none. ConfigError for an address that cannot be used."""
    if config.proxy_url:
        return urlsplit(config.proxy_url)
    server = urlsplit(config.server)
    name = f"{server.scheme.upper()}_PROXY"
    url = env.get(name) or env.get(name.lower()) or ""
    if not url or _is_excepted(server, env.get("NO_PROXY") or env.get("no_proxy") or ""):
        return None
    proxy = urlsplit(url if "://" in url else f"http://{url}")
    if proxy.scheme not in ("http", "https") or not proxy.hostname:
        raise ConfigError(f"{name}: {proxy.scheme}://… is no address of an HTTP proxy. Correct it, or unset it.")
    return proxy


def _is_excepted(server: SplitResult, exceptions: str) -> bool:
    """Loopback always; and what NO_PROXY lists: hosts with what is below them, addresses, networks, or ``*``.

    Of a host with a dot (or ``*.``) in front it is only what is below. A host or an address may come with a port.
    """
    host = server.hostname or ""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in filter(None, (each.strip().lower() for each in exceptions.split(","))):
        name, port = _split(entry)
        if port and port != str(server.port or PORTS.get(server.scheme)):
            continue
        if entry == "*" or (_is_below(host, name) if address is None else _contains(entry, name, address)):
            return True
    return False


def _is_below(host: str, name: str) -> bool:
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")


def _split(entry: str) -> tuple[str, str]:
    """A name or an address, and its port if it has one; an address of IPv6 then stands in brackets."""
    name, _, port = entry.rpartition(":")
    if name.startswith("[") and name.endswith("]"):
        return name[1:-1], port
    return (entry, "") if not name or ":" in name else (name, port)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _contains(entry: str, name: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether it is that address, or lies in that network; a network has no port."""
    try:
        return address == _address(name) or address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
