"""Requests that only a kubelet could answer: to be inside of a container, or to be passed on to what it serves.

harbor stores pods and runs none, so it says that, and where to look instead. What is wrong with the request comes
first, as from kube-apiserver: no such pod, or one that has no node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import ServerResponse
from pilotage_harbor.core.objects import from_entry

if TYPE_CHECKING:
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json

_PROCESSES = "a server on a Host is a process of that machine: look at it there"
_ADDRESS = "connect to the address that `pilotage status` shows for an endpoint, or to the gateway"
_WHY = {
    "log": (
        "harbor runs no containers, so there are no logs",
        "`pilotage logs` prints those of an endpoint's servers on Hosts",
    ),
    "exec": ("harbor runs no containers, so there is nothing to run a command in", _PROCESSES),
    "attach": ("harbor runs no containers, so there is nothing to attach to", _PROCESSES),
    "portforward": ("harbor runs no containers, so there is no port to forward", _ADDRESS),
    "proxy": ("harbor passes no requests on", _ADDRESS),
}
_VERBS = {"log": ("get",), "proxy": ("get", "create", "update", "patch", "delete")}


def is_for_a_kubelet(scope: Scope) -> bool:
    """Whether a request is one of those."""
    return scope.subresource in _WHY and scope.verb in _VERBS.get(scope.subresource, ("get", "create"))


def answer(core: Core, scope: Scope) -> ServerResponse:
    """No log of a pod without a node (204); everything else is refused."""
    found = _object(core, scope)
    if scope.kind.storage == "pods" and scope.subresource != "proxy" and not (found.get("spec") or {}).get("nodeName"):
        if scope.subresource == "log":
            return ServerResponse(204, b"")
        raise errors.bad_request(f"pod {scope.name} does not have a host assigned")
    why, instead = _WHY[scope.subresource]
    raise errors.not_implemented(scope.kind.group, scope.kind.plural, scope.name, f"{why}; {instead}")


def _object(core: Core, scope: Scope) -> Json:
    name = scope.name
    if scope.subresource == "proxy" and ":" in name:  # name:port, or scheme:name:port
        parts = name.split(":")
        name = parts[1] if len(parts) > 2 else parts[0]
    entry = core.store.get(scope.kind.storage, scope.namespace, name)
    if entry is None:
        raise errors.not_found(scope.kind.group, scope.kind.plural, name)
    return from_entry(scope.kind, entry)
