"""Which proxy leads to a server: what the kubeconfig names, else the environment, by the rules that kubectl follows."""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from pilotage.kube.config_error import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube.config import ClusterConfig


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
    """Loopback always; and what NO_PROXY lists: hosts with what is below them, addresses, networks, or ``*``."""
    host = server.hostname or ""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in filter(None, (each.strip().lower() for each in exceptions.split(","))):
        name, _, port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        if port and port != str(server.port or ""):
            continue
        if entry == "*" or host == name.lstrip(".") or host.endswith("." + name.lstrip("*.")):
            return True
        if address is not None and _contains(name, address):
            return True
    return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _contains(network: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
