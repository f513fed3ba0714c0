"""Snapshot of Envoy's resources, made of routes and addresses; versions are hashes of the content.

The same routes and addresses give the same bytes and the same versions in any process, at any time. So an Envoy that
already has them gets nothing, whoever asks and however often the control plane is restarted.

Most of a snapshot is like the one before: what is packed is remembered by what it was made of.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

# Messages within messages are found by their name, once their module is loaded.
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_components_pb2, route_pb2
from envoy.extensions.access_loggers.file.v3 import file_pb2  # noqa: F401
from envoy.extensions.access_loggers.filters.cel.v3 import cel_pb2  # noqa: F401
from envoy.extensions.filters.http.buffer.v3 import buffer_pb2  # noqa: F401
from envoy.extensions.filters.http.json_to_metadata.v3 import json_to_metadata_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2  # noqa: F401
from envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2  # noqa: F401
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2  # noqa: F401
from google.protobuf import any_pb2, json_format
from google.protobuf.message import Message

from pilotage.gateway import own_routes, resources, server_paths
from pilotage.gateway.claims import Claim
from pilotage.gateway.inputs import Hosts, ProxiedRoute, Service, shares
from pilotage.kube import Json

CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
EDS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
LDS = "type.googleapis.com/envoy.config.listener.v3.Listener"
RDS = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
ORDER = (CDS, EDS, LDS, RDS)
"""The order of sending: a resource comes before those that refer to it."""


class XdsResources(NamedTuple):
    """All resources of one type, packed, by name."""

    version: str
    packed: Mapping[str, any_pb2.Any]


class Snapshot(NamedTuple):
    """All resources that one Envoy should have."""

    types: Mapping[str, XdsResources]
    claims: Mapping[str, Claim]
    """Claims by the uid of the route."""
    referenced: frozenset[str]
    """The clusters that routes lead to, those at weight 0 included."""

    @property
    def version(self) -> str:
        """Version of its routes: what a GatewayRoute calls the version that carries it."""
        return self.types[RDS].version


class ListenerConfig(NamedTuple):
    """The address of the listener, its access log, and the gateway's own names."""

    host: str
    port: int
    access_log: str = ""
    names: tuple[str, ...] = ()


def compiled(
    address: ListenerConfig, claims: Iterable[Claim], hosts: Mapping[Service, Hosts], kept: Mapping[str, Service]
) -> Snapshot:
    """The resources for these claims and addresses. `kept` are clusters that stay though no route leads to them."""
    made = [*claims]
    clusters = {name: service for each in made for name, service in each.route.clusters().items()}
    referenced = frozenset(clusters)
    clusters = dict(sorted({**kept, **clusters}.items()))
    return Snapshot(
        {
            CDS: _resources({name: _cluster(name) for name in clusters}),
            EDS: _resources({name: _assignment(name, hosts.get(service, ())) for name, service in clusters.items()}),
            LDS: _resources({resources.LISTENER: _listener(address.host, address.port, address.access_log)}),
            RDS: _resources({resources.ROUTES: _routes(address, made, hosts)}),
        },
        {each.route.uid: each for each in made},
        referenced,
    )


def _resources(packed: dict[str, any_pb2.Any]) -> XdsResources:
    digest = hashlib.blake2b(digest_size=8)
    for name, each in packed.items():
        digest.update(f"{len(name)} {name} {len(each.value)} ".encode())
        digest.update(each.value)
    return XdsResources(digest.hexdigest(), packed)


def _routes(address: ListenerConfig, made: list[Claim], hosts: Mapping[Service, Hosts]) -> any_pb2.Any:
    """The route table. The first route that matches is taken, so longer paths of a host come before shorter ones.

    Put together from packed routes: most of them are those of the last time, and Envoy gets all of them each time.
    """
    by_host: dict[str, list[tuple[int, str, bytes]]] = {}
    by_path: list[tuple[str, bytes]] = []
    by_model: list[bytes] = []
    served: list[tuple[str, str]] = []
    for each in made:
        route = each.route
        weights = tuple(shares(route, hosts).items())
        if each.host:
            leading = (b"" if route.path.strip("/") else _below_hosts()) + _host_route(route, weights)
            by_host.setdefault(each.host, []).append((-len(route.path), route.path, leading))
        if each.path:
            by_path.append((each.path, _path_routes(route, each.path, weights)))
        by_model += [_model_route(route, model, weights) for model in each.models]
        served += [(model, route.key.namespace) for model in each.models]
    virtual_hosts = [
        _virtual_host(host, (host,)) + b"".join(packed for *_, packed in sorted(by_host[host])) + _last_routes()[-1]
        for host in sorted(by_host)
    ]
    everything = (
        # Its own names, too: a name goes before a wildcard that covers it.
        _virtual_host("any", ("*", *address.names)),
        _model_list(tuple(sorted(served))),
        _below_endpoints(),
        *by_model,
        *(packed for _, packed in sorted(by_path)),
        *_body_routes(),
        *(_model_info(*each) for each in sorted(served)),
        *_last_routes(),
    )
    virtual_hosts.append(b"".join(everything))
    packed = _configuration() + b"".join(_framed(_VIRTUAL_HOSTS, each) for each in virtual_hosts)
    return any_pb2.Any(type_url=RDS, value=packed)


_ROUTES = route_components_pb2.VirtualHost.DESCRIPTOR.fields_by_name["routes"].number
_VIRTUAL_HOSTS = route_pb2.RouteConfiguration.DESCRIPTOR.fields_by_name["virtual_hosts"].number
_LENGTH_DELIMITED = 2
_SEVEN_BITS = 0x7F


def _framed(field: int, packed: bytes) -> bytes:
    """A message as one entry of a repeated field of another: these can be put one after the other."""
    frame = bytearray([field << 3 | _LENGTH_DELIMITED])
    left = len(packed)
    while left > _SEVEN_BITS:
        frame.append(left & _SEVEN_BITS | _SEVEN_BITS + 1)
        left >>= 7
    frame.append(left)
    return bytes(frame) + packed


def _parsed(body: Json, message: Any) -> Any:  # noqa: ANN401 - generated messages have no types
    return json_format.ParseDict(body, message)


def _pack(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message, deterministic=True)
    return packed


def _route(body: Json) -> bytes:
    return _framed(_ROUTES, _bytes(_parsed(body, route_components_pb2.Route())))


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


@lru_cache(maxsize=10_000)
def _cluster(name: str) -> any_pb2.Any:
    return _pack(_parsed(resources.cluster(name), cluster_pb2.Cluster()))


@lru_cache(maxsize=10_000)
def _assignment(name: str, hosts: Hosts) -> any_pb2.Any:
    return _pack(_parsed(resources.assignment(name, hosts), endpoint_pb2.ClusterLoadAssignment()))


@lru_cache(maxsize=8)
def _listener(host: str, port: int, access_log: str) -> any_pb2.Any:
    return _pack(_parsed(resources.listener(host, port, access_log), listener_pb2.Listener()))


Weights = tuple[tuple[str, int], ...]


@lru_cache(maxsize=10_000)
def _model_route(route: ProxiedRoute, model: str, weights: Weights) -> bytes:
    return _route(resources.model_route(route, model, dict(weights)))


@lru_cache(maxsize=20_000)
def _path_routes(route: ProxiedRoute, prefix: str, weights: Weights) -> bytes:
    return b"".join(map(_route, resources.path_routes(route, prefix, dict(weights))))


@lru_cache(maxsize=10_000)
def _host_route(route: ProxiedRoute, weights: Weights) -> bytes:
    return _route(resources.host_route(route, dict(weights)))


@lru_cache(maxsize=8)
def _model_list(served: tuple[tuple[str, str], ...]) -> bytes:
    return _route(own_routes.model_list(served))


@lru_cache(maxsize=10_000)
def _model_info(model: str, namespace: str) -> bytes:
    return b"".join(map(_route, own_routes.model_info(model, namespace)))


@lru_cache(maxsize=1)
def _below_endpoints() -> bytes:
    return b"".join(map(_route, server_paths.below_endpoints()))


@lru_cache(maxsize=1)
def _below_hosts() -> bytes:
    return b"".join(map(_route, server_paths.below_hosts()))


@lru_cache(maxsize=1)
def _body_routes() -> tuple[bytes, ...]:
    return tuple(map(_route, own_routes.body_routes()))


@lru_cache(maxsize=1)
def _last_routes() -> tuple[bytes, ...]:
    return tuple(map(_route, own_routes.last_routes()))


@lru_cache(maxsize=1_000)
def _virtual_host(name: str, domains: tuple[str, ...]) -> bytes:
    return _bytes(_parsed(resources.virtual_host(name, domains), route_components_pb2.VirtualHost()))


@lru_cache(maxsize=1)
def _configuration() -> bytes:
    return _bytes(_parsed(resources.route_configuration(), route_pb2.RouteConfiguration()))
