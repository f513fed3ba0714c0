"""The kinds of routes: one file each, with one `ROUTER`, listed here.

A router is pure. It turns backends into a manifest, and a manifest and its status into backends and into what its
controller says. Who moves weights, and what proxies say, is not its business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.traffic.routers import gateway, httpproxy, httproute, ingress, none

if TYPE_CHECKING:
    from pilotage.traffic.routers.base import Router

ROUTERS: dict[str, Router] = {
    each.kind: each for each in (none.ROUTER, ingress.ROUTER, httproute.ROUTER, httpproxy.ROUTER, gateway.ROUTER)
}


def find(kind: str) -> Router | None:
    """The router of a route's kind, or None where there is none (yet)."""
    return ROUTERS.get(kind)


__all__ = ["ROUTERS", "find"]
