"""Inputs of the gateway: GatewayRoutes, and the addresses that EndpointSlices have for their Services. Pure.

What the API server lets through and Envoy would refuse is left out here where one entry is at fault (an address that is
none); the rest is Envoy's to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from pilotage.api.names import LABEL_KEEP_ALIVE
from pilotage.kube import Object, ObjectKey, Resource
from pilotage.kube.names import is_address

ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
LABEL_SERVICE = "kubernetes.io/service-name"
HTTP = "http"
"""The name of the port that is used where a slice has several."""

_SERVICE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_COPIES = "copies"
_CLUSTER = re.compile(rf"(?P<namespace>[^_]+)_(?P<service>[^_]+)_(?P<port>[0-9]+)(_{_COPIES}(?P<copies>[0-9]+))?")

Service = ObjectKey


class GatewayBackend(NamedTuple):
    """A Service of the route's namespace, and its share of the requests."""

    service: str
    port: int
    weight: int


class GatewayBranch(NamedTuple):
    """Requests with these headers (name and value), and the Services that get them."""

    headers: tuple[tuple[str, str], ...]
    backends: tuple[GatewayBackend, ...]


class GatewayCopies(NamedTuple):
    """A Service that gets copies of some percent of the requests, so many at a time (0: any number)."""

    service: str
    port: int
    percent: int
    concurrent_max: int = 0


class GatewayAssignment(NamedTuple):
    """Places of the key by which requests are assigned, as kind (header or body) and name; and the salt."""

    keys: tuple[tuple[str, str], ...]
    salt: str = ""


class GatewayRevision(NamedTuple):
    """A revision with a path of its own."""

    number: int
    service: str
    port: int


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
    branches: tuple[GatewayBranch, ...] = ()
    copies: tuple[GatewayCopies, ...] = ()
    assign: GatewayAssignment | None = None
    revisions: tuple[GatewayRevision, ...] = ()
    measure: bool = False
    warmup_seconds: int = 0
    slots: tuple[tuple[str, ...], ...] = ()
    """Clusters of the slots of keys (`division`): of requests that no branch matches, and of each branch."""

    @property
    def age(self) -> tuple[str, ObjectKey]:
        """Sort key: the oldest wins."""
        return self.created, self.key

    def shared_out(self) -> tuple[tuple[GatewayBackend, ...], ...]:
        """The backends of requests that no branch matches, and then those of each branch."""
        return self.backends, *(each.backends for each in self.branches)

    def clusters(self) -> dict[str, Service]:
        """The names of the clusters that it needs, and the Service of each. Those without a share are kept warm."""
        namespace = self.key.namespace
        plain = [(each.service, each.port) for backends in self.shared_out() for each in backends]
        plain += [(each.service, each.port) for each in self.revisions]
        found = {cluster_name(namespace, *each): Service(namespace, each[0]) for each in plain}
        return found | {copies_name(namespace, each): Service(namespace, each.service) for each in self.copies}

    def weighted(self) -> set[str]:
        """Those of its clusters that have a share of the requests."""
        given = [each for backends in self.shared_out() for each in backends if each.weight]
        return {cluster_name(self.key.namespace, each.service, each.port) for each in given}

    def live(self) -> set[str]:
        """Those of its clusters that get copies, or requests for one revision."""
        namespace = self.key.namespace
        direct = {cluster_name(namespace, each.service, each.port) for each in self.revisions}
        return direct | {copies_name(namespace, each) for each in self.copies}


class UpstreamHost(NamedTuple):
    """One address of a Service. `draining`: it serves what it has, and gets nothing new."""

    address: str
    port: int
    draining: bool = False
    keep_seconds: int = 0
    """Seconds for which it keeps a connection open that has no request; 0: a connection has one request only."""


Hosts = tuple[UpstreamHost, ...]


def cluster_name(namespace: str, service: str, port: int) -> str:
    """Envoy's name of a Service and its port. Names of Kubernetes have no underscore, so it can be split."""
    return f"{namespace}_{service}_{port}"


def copies_name(namespace: str, copies: GatewayCopies) -> str:
    """Envoy's name of a Service that gets copies: another cluster, whose limit and numbers are those of copies alone.

    The limit is a part of the name, so that a cluster never changes.
    """
    return f"{cluster_name(namespace, copies.service, copies.port)}_{_COPIES}{copies.concurrent_max}"


class ClusterName(NamedTuple):
    """The parts of a name of a cluster."""

    service: Service
    port: int
    copies_max: int | None = None
    """Limit of a cluster that gets copies (0: none); None: it gets requests."""


def parsed_name(cluster: str) -> ClusterName | None:
    """The inverse of `cluster_name` and `copies_name`; None for a name that is not of these forms."""
    found = _CLUSTER.fullmatch(cluster)
    if found is None:
        return None
    limit = None if found["copies"] is None else int(found["copies"])
    return ClusterName(Service(found["namespace"], found["service"]), int(found["port"]), limit)


def read_route(obj: Object) -> ProxiedRoute:
    """A GatewayRoute. Its schema has seen to it that it is one."""
    spec = obj.decode_as(_GatewayRoute).spec
    assign = spec.assign
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
        _backends(spec.backends),
        spec.leaving,
        tuple(
            GatewayBranch(
                tuple((header.name.lower(), header.exact) for header in each.headers), _backends(each.backends)
            )
            for each in spec.branches
            if each.headers
        ),
        tuple(
            GatewayCopies(each.service, each.port, each.percent, each.max_concurrent or 0)
            for each in spec.copies
            if each.percent > 0 and _can_be(each.service)
        ),
        None if assign is None else GatewayAssignment(_places(assign.keys), assign.salt),
        tuple(
            GatewayRevision(each.number, each.service, each.port) for each in spec.revisions if _can_be(each.service)
        ),
        spec.measure,
        spec.warmup_seconds,
    )


def _backends(listed: Iterable[_Backend]) -> tuple[GatewayBackend, ...]:
    return tuple(GatewayBackend(each.service, each.port, each.weight) for each in listed if _can_be(each.service))


def _can_be(service: str) -> bool:
    """Whether a Service can have this name. Others would make names of clusters that cannot be taken apart."""
    return _SERVICE.fullmatch(service) is not None


def _places(keys: Iterable[_Key]) -> tuple[tuple[str, str], ...]:
    places = [("header", each.header.lower()) if each.header else ("body", each.body or "") for each in keys]
    return tuple((kind, name) for kind, name in places if name)


def service_of(endpoint_slice: Object) -> Service | None:
    """The Service of an EndpointSlice."""
    name = endpoint_slice.meta.labels.get(LABEL_SERVICE)
    return Service(endpoint_slice.meta.namespace, name) if name else None


def read_hosts(slices: Iterable[Object]) -> Hosts:
    """The addresses of all slices of one Service, in a fixed order. Two that name the same one: the better word counts.

    Ready ones take requests (unset means ready). One that is not, and serves still, is draining; any other is left out.
    """
    found: dict[tuple[str, int], bool] = {}
    kept: dict[tuple[str, int], int] = {}
    for each in slices:
        keep_seconds = _keep_seconds(each)
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
                    kept[address, port] = min(kept.get((address, port), keep_seconds), keep_seconds)
    return tuple(UpstreamHost(*each, draining, kept[each]) for each, draining in sorted(found.items()))


def keep_seconds(hosts: Hosts) -> int:
    """Seconds for which all of them keep a connection open that has no request; 0 where one does not."""
    return min((each.keep_seconds for each in hosts), default=0)


def _keep_seconds(endpoint_slice: Object) -> int:
    """Its label. Anything but a plain number is none."""
    text = endpoint_slice.meta.labels.get(LABEL_KEEP_ALIVE, "")
    return int(text) if re.fullmatch("[0-9]{1,4}", text) else 0


def takes_requests(hosts: Hosts) -> bool:
    """Whether one of them does."""
    return any(not each.draining for each in hosts)


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


class _Header(msgspec.Struct):
    name: str
    exact: str


class _Branch(msgspec.Struct):
    headers: list[_Header] = []
    backends: list[_Backend] = []


class _Copies(msgspec.Struct, rename="camel"):
    service: str
    port: int = 80
    percent: int = 100
    max_concurrent: int | None = None


class _Key(msgspec.Struct):
    header: str | None = None
    body: str | None = None


class _Assignment(msgspec.Struct):
    keys: list[_Key] = []
    salt: str = ""


class _Revision(msgspec.Struct):
    number: int
    service: str
    port: int = 80


class _Spec(msgspec.Struct):
    endpoint: str
    models: list[str] = []
    host: str | None = None
    path: str = "/"
    backends: list[_Backend] = []
    leaving: bool = False
    branches: list[_Branch] = []
    copies: list[_Copies] = []
    assign: _Assignment | None = None
    revisions: list[_Revision] = []
    measure: bool = False
    warmup_seconds: int = msgspec.field(name="warmupSeconds", default=0)


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
