"""Inputs of the gateway: GatewayRoutes, and the addresses that EndpointSlices have for their Services. Pure.

What the API server lets through and Envoy would refuse is left out here where one entry is at fault (an address that is
none); the rest is Envoy's to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from pilotage.kube import Object, ObjectKey, Resource
from pilotage.kube.names import is_address

ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
LABEL_SERVICE = "kubernetes.io/service-name"
HTTP = "http"
"""The name of the port that is used where a slice has several."""

Service = ObjectKey


class GatewayBackend(NamedTuple):
    """A Service of the route's namespace, and its share of the requests."""

    service: str
    port: int
    weight: int


class ProxiedRoute(NamedTuple):
    """A GatewayRoute, as far as Envoy is concerned."""

    key: ObjectKey
    uid: str
    generation: int
    created: str
    endpoint: str
    models: tuple[str, ...] = ()
    host: str = ""
    path: str = "/"
    backends: tuple[GatewayBackend, ...] = ()
    leaving: bool = False

    @property
    def age(self) -> tuple[str, ObjectKey]:
        """Sort key: the oldest wins."""
        return self.created, self.key

    def clusters(self) -> dict[str, Service]:
        """The names of the clusters that it needs, and the Service of each. Those without a share are kept warm."""
        namespace = self.key.namespace
        return {
            cluster_name(namespace, each.service, each.port): Service(namespace, each.service) for each in self.backends
        }


class UpstreamHost(NamedTuple):
    """One address of a Service. `draining`: it serves what it has, and gets nothing new."""

    address: str
    port: int
    draining: bool = False


Hosts = tuple[UpstreamHost, ...]


def cluster_name(namespace: str, service: str, port: int) -> str:
    """Envoy's name of a Service and its port. Names of Kubernetes have no underscore, so it can be split."""
    return f"{namespace}_{service}_{port}"


def parsed_name(cluster: str) -> tuple[Service, int] | None:
    """The inverse of `cluster_name`; None for a name that is not of that form."""
    parts = cluster.split("_")
    if len(parts) != 3 or not parts[2].isdigit():
        return None
    return Service(parts[0], parts[1]), int(parts[2])


def read_route(obj: Object) -> ProxiedRoute:
    """A GatewayRoute. Its schema has seen to it that it is one."""
    spec = obj.decode_as(_GatewayRoute).spec
    meta = obj.meta
    return ProxiedRoute(
        obj.key,
        meta.uid,
        meta.generation,
        meta.creation_timestamp,
        spec.endpoint,
        tuple(dict.fromkeys(spec.models)),
        (spec.host or "").lower(),
        spec.path,
        tuple(GatewayBackend(each.service, each.port, each.weight) for each in spec.backends),
        spec.leaving,
    )


def service_of(endpoint_slice: Object) -> Service | None:
    """The Service of an EndpointSlice."""
    name = endpoint_slice.meta.labels.get(LABEL_SERVICE)
    return Service(endpoint_slice.meta.namespace, name) if name else None


def read_hosts(slices: Iterable[Object]) -> Hosts:
    """The addresses of all slices of one Service, in a fixed order. Two that name the same one: the better word counts.

    Ready ones take requests (unset means ready). One that is not, and serves still, is draining; any other is left out.
    """
    found: dict[tuple[str, int], bool] = {}
    for each in slices:
        decoded = each.decode_as(_Slice)
        port = _port(decoded.ports or ())
        if port is None:
            continue
        for endpoint in decoded.endpoints or ():
            ready, serving = endpoint.conditions.ready, endpoint.conditions.serving
            if ready is False and not serving:
                continue
            draining = ready is False
            for address in endpoint.addresses:
                if is_address(address):
                    found[address, port] = found.get((address, port), True) and draining
    return tuple(UpstreamHost(address, port, draining) for (address, port), draining in sorted(found.items()))


def takes_requests(hosts: Hosts) -> bool:
    """Whether one of them does."""
    return any(not each.draining for each in hosts)


def shares(route: ProxiedRoute, hosts: Mapping[Service, Hosts]) -> dict[str, int]:
    """The weight of each cluster of a route; empty where it has none at all.

    A Service without any address that takes requests would answer its share with 503, while another could serve it: its
    share goes to the others. Where none of those with a share can serve, the weights stay as they are.
    """
    namespace = route.key.namespace
    wanted: dict[str, int] = {}
    able: dict[str, int] = {}
    for each in route.backends:
        name = cluster_name(namespace, each.service, each.port)
        wanted[name] = wanted.get(name, 0) + each.weight
        if takes_requests(hosts.get(Service(namespace, each.service), ())):
            able[name] = wanted[name]
    if not any(wanted.values()):
        return {}
    return {name: able.get(name, 0) for name in wanted} if any(able.values()) else wanted


def _port(ports: Iterable[_Port]) -> int | None:
    """The one port; among several the one that is called http."""
    numbered = [each for each in ports if each.port is not None]
    if len(numbered) == 1:
        return numbered[0].port
    return next((each.port for each in numbered if each.name == HTTP), None)


class _Backend(msgspec.Struct):
    service: str
    port: int = 80
    weight: int = 100


class _Spec(msgspec.Struct):
    endpoint: str
    models: list[str] = []
    host: str | None = None
    path: str = "/"
    backends: list[_Backend] = []
    leaving: bool = False


class _GatewayRoute(msgspec.Struct):
    """A GatewayRoute without the constraints of its type: one that an earlier CRD allowed must not stop the gateway."""

    spec: _Spec


class _Port(msgspec.Struct):
    port: int | None = None
    name: str | None = None


class _Conditions(msgspec.Struct):
    ready: bool | None = None
    serving: bool | None = None


class _Endpoint(msgspec.Struct):
    addresses: list[str] = []
    conditions: _Conditions = msgspec.field(default_factory=_Conditions)


class _Slice(msgspec.Struct):
    endpoints: list[_Endpoint] | None = None
    ports: list[_Port] | None = None
