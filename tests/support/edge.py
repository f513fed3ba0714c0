"""The fixture `edge`: a real Contour and a real Envoy beside the cluster of the session. `tools` builds Contour."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from controlplane import Access, Cluster
from field.edge import LISTENER_PORT, Edge, NoNetwork
from tests.support.tools import unavailable
from tests.teardown.staged import Json, force_away, install, theirs

GATEWAYS = "/apis/gateway.networking.k8s.io/v1"
CONTROLLER = "projectcontour.io/gateway-controller"
# All that it watches here: each kind costs the API server something.
CONTOUR_KINDS = ("httpproxies.projectcontour.io", "tlscertificatedelegations.projectcontour.io")
GATEWAY_KINDS = tuple(
    f"{each}.gateway.networking.k8s.io" for each in ("gatewayclasses", "gateways", "httproutes", "referencegrants")
)


@dataclass(frozen=True, slots=True)
class Place:
    """Namespace for the routes of tests: Contour watches no other. The tests remove their routes."""

    cluster: Cluster
    namespace: str
    gateway: str
    edge: Edge


@pytest.fixture(scope="session")
def edge(cluster: Access) -> Iterator[Place]:
    """Edge (`Place`). Skipped, or failed under CI, where Contour, Envoy or a network namespace is unavailable."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    name = f"edge-{secrets.token_hex(4)}"
    install(cluster, theirs("contour", *CONTOUR_KINDS))
    install(cluster, theirs("gateway-api", *GATEWAY_KINDS))
    with cluster.namespace(name, for_pods=False) as namespace:
        gateway_class = {"metadata": {"name": name}, "spec": {"controllerName": CONTROLLER}}
        cluster.request("POST", f"{GATEWAYS}/gatewayclasses", whole("GatewayClass", gateway_class))
        listener = {"name": "http", "protocol": "HTTP", "port": LISTENER_PORT}
        gateway = {"metadata": {"name": name}, "spec": {"gatewayClassName": name, "listeners": [listener]}}
        cluster.request("POST", f"{GATEWAYS}/namespaces/{namespace}/gateways", whole("Gateway", gateway))
        try:
            with Edge(cluster.kubeconfig, namespace, name, print) as running:
                yield Place(cluster, namespace, name, running)
        except NoNetwork as error:
            unavailable(str(error))
        finally:
            force_away(cluster, f"{GATEWAYS}/gatewayclasses/{name}")


def whole(kind: str, body: Json) -> Json:
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind} | body
