"""A stand-in for the controllers of HTTPRoutes and HTTPProxies: it accepts every route and says so in its status."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from controlplane import Cluster
from controlplane.access import ApiError
from tests.teardown.staged import install, theirs

PATHS = {
    "HTTPRoute": "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes",
    "HTTPProxy": "/apis/projectcontour.io/v1/namespaces/{}/httpproxies",
}
POLL_SECONDS = 0.2


def route(kind: str, name: str) -> dict[str, Any]:
    """Route field of the spec of an endpoint."""
    if kind == "None":
        return {"kind": kind}
    gateway = {"gateway": {"name": "somewhere"}} if kind == "HTTPRoute" else {}
    return {"kind": kind, "host": f"{name}.example.com", **gateway}


@contextlib.contextmanager
def accepting_routers(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Both kinds are served, and what is in this namespace is accepted."""
    install(cluster, theirs("gateway-api", "httproutes.gateway.networking.k8s.io"))
    install(cluster, theirs("contour", "httpproxies.projectcontour.io"))
    stop = threading.Event()
    thread = threading.Thread(target=_accept, args=(cluster, namespace, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def routes(cluster: Cluster, namespace: str) -> list[str]:
    """Routes of both kinds."""
    return [
        f"{kind.lower()}/{each['metadata']['name']}"
        for kind, path in PATHS.items()
        for each in cluster.request("GET", path.format(namespace))["items"]
    ]


def _accept(cluster: Cluster, namespace: str, stop: threading.Event) -> None:
    seen: dict[str, int] = {}
    while not stop.wait(POLL_SECONDS):
        for kind, path in PATHS.items():
            for each in cluster.request("GET", path.format(namespace))["items"]:
                meta = each["metadata"]
                if seen.get(meta["uid"]) == meta["generation"]:
                    continue
                each["status"] = _status(kind, each)
                try:
                    cluster.request("PUT", f"{path.format(namespace)}/{meta['name']}/status", each)
                except ApiError:
                    continue  # it has changed, or is gone: the next list shows it
                seen[meta["uid"]] = meta["generation"]


def _status(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    types = ("Accepted", "ResolvedRefs") if kind == "HTTPRoute" else ("Valid",)
    conditions = [
        {
            "type": each,
            "status": "True",
            "reason": "Valid",
            "message": "",
            "observedGeneration": obj["metadata"]["generation"],
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for each in types
    ]
    if kind == "HTTPProxy":
        return {"currentStatus": "valid", "conditions": conditions}
    parent = {"parentRef": obj["spec"]["parentRefs"][0], "controllerName": "example.com/accepting"}
    return {"parents": [parent | {"conditions": conditions}]}
