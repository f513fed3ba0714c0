"""Snapshot of Envoy's resources, made of claims and addresses; versions are hashes of the content.

The same claims and addresses give the same bytes and the same versions in any process, at any time. So an Envoy that
already has them gets nothing, whoever asks and however often the control plane is restarted.

A change costs what it changes: `Snapshot.change` makes the resources of the routes and Services in question and of no
others, and the version of a type is a sum of those of its resources, so that none of the rest is read for it.
"""

import hashlib
from collections import ChainMap
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

# Messages within messages are found by their name, once their module is loaded.
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_components_pb2, route_pb2, scoped_route_pb2
from envoy.extensions.access_loggers.file.v3 import file_pb2  # noqa: F401
from envoy.extensions.access_loggers.filters.cel.v3 import cel_pb2  # noqa: F401
from envoy.extensions.filters.http.buffer.v3 import buffer_pb2  # noqa: F401
from envoy.extensions.filters.http.json_to_metadata.v3 import json_to_metadata_pb2  # noqa: F401
from envoy.extensions.filters.http.lua.v3 import lua_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2  # noqa: F401
from envoy.extensions.http.early_header_mutation.header_mutation.v3 import header_mutation_pb2  # noqa: F401
from envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2  # noqa: F401
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2  # noqa: F401
from google.protobuf import any_pb2, json_format
from google.protobuf.message import Message

from pilotage.gateway import own_routes, resources, scopes, server_paths
from pilotage.gateway.claims import Claim
from pilotage.gateway.division import RouteDivision, divide
from pilotage.gateway.inputs import Hosts, Service, keep_seconds, parsed_name
from pilotage.kube import Json

CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
EDS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
LDS = "type.googleapis.com/envoy.config.listener.v3.Listener"
SRDS = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
ORDER = (CDS, EDS, LDS, SRDS)
"""The order of sending: a resource comes before those that refer to it."""
_MODULUS = 1 << 64


class XdsResource(NamedTuple):
    """One resource, packed, and the hash of it."""

    version: str
    packed: any_pb2.Any


class XdsResources:
    """All resources of one type, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, XdsResource] = {}
        self._sum = 0

    @property
    def version(self) -> str:
        """Version of all of them, whatever the order in which they came."""
        return f"{self._sum:016x}"

    def set(self, name: str, resource: XdsResource | None) -> None:
        """Add or replace a resource, or remove it (None)."""
        before = self.by_name.pop(name, None)
        self._sum -= int(before.version, 16) if before is not None else 0
        if resource is not None:
            self.by_name[name] = resource
            self._sum += int(resource.version, 16)
        self._sum %= _MODULUS


Changes = Mapping[str, Mapping[str, XdsResource | None]]
"""Resources that are added or replaced, and those that are removed (None), by type and name."""


class SnapshotChange(NamedTuple):
    """A change that was computed and not made."""

    resources: Changes
    claims: Mapping[str, Claim | None]
    """Claims by the uid of the route, as they are to be; None: the route is gone."""
    divisions: Mapping[str, RouteDivision]
    """Division of the requests of routes that are affected, by their uid."""


class ListenerConfig(NamedTuple):
    """The address of the listener, its access log, the gateway's own names, and the log of what is measured."""

    host: str
    port: int
    access_log: str = ""
    names: tuple[str, ...] = ()
    measured_log: str = ""


class Snapshot:
    """All resources that one Envoy has, and what they were made of."""

    def __init__(self, address: ListenerConfig) -> None:
        self.types = {each: XdsResources() for each in ORDER}
        self.claims: dict[str, Claim] = {}
        """Claims by the uid of the route."""
        self.divisions: dict[str, RouteDivision] = {}
        """Division of the requests by the uid of the route."""
        self.leading_to: dict[str, dict[str, None]] = {}
        """The uids of the routes that lead to a cluster, those with weight 0 for it included, by cluster."""
        self._address = address
        self._clusters: dict[Service, dict[str, None]] = {}
        self._by_host: dict[str, dict[str, None]] = {}
        self._served: frozenset[tuple[str, str]] = frozenset()
        """Models, each with the namespace that serves it."""

    @property
    def version(self) -> str:
        """Version of its routes: what a GatewayRoute calls the version that carries it."""
        return self.types[SRDS].version

    def change(
        self,
        claims: Mapping[str, Claim | None],
        hosts: Mapping[Service, Hosts],
        *,
        moved: Iterable[Service] = (),
        keep: Iterable[str] = (),
        drop: Iterable[str] = (),
    ) -> SnapshotChange:
        """The change to these claims (None: the route is gone), with the addresses of Services that have `moved`.

        `keep` are clusters that have to be there though no route leads to them. Clusters go only where `drop` says so,
        and no route leads to them.
        """
        services = {*moved}
        old_clusters = {name for each in services for name in self._clusters.get(each, ())}
        now = dict(claims)
        for name in old_clusters:
            now |= {uid: self.claims[uid] for uid in self.leading_to.get(name, ()) if uid not in now}
        divisions = {uid: divide(claim.route, hosts) for uid, claim in now.items() if claim}
        clusters = {name: _service(name) for name in keep}
        clusters |= {name: each for claim in now.values() if claim for name, each in claim.route.clusters().items()}
        assigned = clusters | {name: _service(name) for name in old_clusters}
        gone: dict[str, XdsResource | None] = {name: None for name in drop if name not in clusters}
        made: Changes = {
            CDS: gone | self._made_clusters(assigned, hosts),
            EDS: gone | {name: _assignment(name, hosts.get(each, ())) for name, each in assigned.items()},
            LDS: {resources.LISTENER: _listener(self._address)},
            SRDS: self._scopes(now, divisions),
        }
        return SnapshotChange({each: self._differing(each, made[each]) for each in ORDER}, claims, divisions)

    def apply(self, change: SnapshotChange) -> None:
        """Make the change."""
        for type_url, changed in change.resources.items():
            for name, each in changed.items():
                self.types[type_url].set(name, each)
        for name, cluster in change.resources[CDS].items():
            if cluster is None:
                self._clusters.get(_service(name), {}).pop(name, None)
            else:
                self._clusters.setdefault(_service(name), {})[name] = None
        self._served = self._serving(change.claims)
        for uid, new in change.claims.items():
            old = self.claims.pop(uid, None)
            self._note(uid, old, new)
            self.divisions.pop(uid, None)
            if new is not None:
                self.claims[uid] = new
        self.divisions |= change.divisions

    def _note(self, uid: str, old: Claim | None, new: Claim | None) -> None:
        for name in old.route.clusters() if old else ():
            _discard(self.leading_to, name, uid)
        for name in new.route.clusters() if new else ():
            self.leading_to.setdefault(name, {})[uid] = None
        if old and old.host:
            _discard(self._by_host, old.host, uid)
        if new and new.host:
            self._by_host.setdefault(new.host, {})[uid] = None

    def _made_clusters(
        self, clusters: Mapping[str, Service], hosts: Mapping[Service, Hosts]
    ) -> dict[str, XdsResource | None]:
        """Clusters for these Services. One without any address stays as it is: another would be made in its place."""
        there = self.types[CDS].by_name
        found = {name: hosts.get(each, ()) for name, each in clusters.items()}
        return {name: _cluster(name, keep_seconds(each)) for name, each in found.items() if each or name not in there}

    def _differing(self, type_url: str, made: Mapping[str, XdsResource | None]) -> dict[str, XdsResource | None]:
        """Those that this snapshot does not have as they are."""
        there = self.types[type_url].by_name
        return {
            name: each
            for name, each in made.items()
            if (each.version if each else "") != (there[name].version if name in there else "")
        }

    def _serving(self, claims: Mapping[str, Claim | None]) -> frozenset[tuple[str, str]]:
        old = {pair for uid in claims if uid in self.claims for pair in _models(self.claims[uid])}
        new = {pair for each in claims.values() if each for pair in _models(each)}
        return self._served if old == new else (self._served - old) | new

    def _scopes(
        self, now: Mapping[str, Claim | None], divisions: Mapping[str, RouteDivision]
    ) -> dict[str, XdsResource | None]:
        """The route tables of these claims, and those that others share with them."""
        were = [self.claims[uid] for uid in now if uid in self.claims]
        are = [each for each in now.values() if each is not None]
        found: dict[str, XdsResource | None] = dict.fromkeys(name for each in were for name in _own_scopes(each))
        for each in are:
            division = divisions[each.route.uid]
            if each.path:
                found[each.path] = _table(each.path, _path_routes(each, division))
            for model in each.models:
                name = scopes.of_model(model)
                found[name] = _table(name, _model_routes(each, model, division))
        divided = ChainMap(dict(divisions), self.divisions)
        for host in {each.host for each in (*were, *are) if each.host}:
            at_host = self._at_host(host, now)
            found[scopes.of_host(host)] = _host_table(host, at_host, divided) if at_host else None
        found |= self._shared(now, {each.host for each in (*were, *are) if each.host})
        return found

    def _shared(self, now: Mapping[str, Claim | None], touched: set[str]) -> dict[str, XdsResource]:
        """The main table and the list of models, where hosts or models come or go."""
        there = self.types[SRDS].by_name
        come = {host for host in touched if host not in self._by_host and self._at_host(host, now)}
        gone = {host for host in touched if host in self._by_host and not self._at_host(host, now)}
        served = self._serving(now)
        found: dict[str, XdsResource] = {}
        if scopes.MAIN not in there or come or gone:
            found[scopes.MAIN] = _main_table((self._by_host.keys() | come) - gone, self._address.names)
        if scopes.MODELS not in there or served != self._served:
            listed = b"".join(map(_route, scopes.model_list(sorted(served))))
            found[scopes.MODELS] = _table(scopes.MODELS, listed)
        return found

    def _at_host(self, host: str, now: Mapping[str, Claim | None]) -> list[Claim]:
        """The claims that have a host, once these are as they are to be."""
        uids = {**self._by_host.get(host, {}), **dict.fromkeys(now)}
        found = (now[uid] if uid in now else self.claims[uid] for uid in uids)
        return [each for each in found if each is not None and each.host == host]


def _discard(index: dict[str, dict[str, None]], key: str, uid: str) -> None:
    """Remove an entry; without any, its key goes, too."""
    entries = index[key]
    del entries[uid]
    if not entries:
        del index[key]


def _service(cluster: str) -> Service:
    parsed = parsed_name(cluster)
    assert parsed is not None
    return parsed[0]


def _models(claim: Claim) -> list[tuple[str, str]]:
    return [(each, claim.route.key.namespace) for each in claim.models]


def _own_scopes(claim: Claim) -> list[str]:
    """Names of the tables that lead to this route alone."""
    return [*filter(None, [claim.path]), *map(scopes.of_model, claim.models)]


def _path_routes(claim: Claim, division: RouteDivision) -> bytes:
    return b"".join(map(_route, resources.path_routes(claim.route, claim.path, division)))


def _model_routes(claim: Claim, model: str, division: RouteDivision) -> bytes:
    info = own_routes.model_info(model, claim.route.key.namespace)
    return _route(info) + b"".join(map(_route, resources.model_routes(claim.route, division)))


def _host_table(host: str, claims: Iterable[Claim], divisions: Mapping[str, RouteDivision]) -> XdsResource:
    """The first route that matches is taken, so longer paths of a host come before shorter ones."""
    found = []
    for each in sorted(claims, key=lambda each: (-len(each.route.path), each.route.path)):
        found += [] if each.route.path.strip("/") else [_below_hosts()]
        found += map(_route, resources.host_routes(each.route, divisions[each.route.uid]))
    return _table(scopes.of_host(host), b"".join([*found, _unknown_path()]))


def _main_table(hosts: Iterable[str], own: tuple[str, ...]) -> XdsResource:
    virtual_hosts = [
        _virtual_host(name, domains) + b"".join(map(_route, routes))
        for name, domains, routes in scopes.main_hosts(hosts, own)
    ]
    return _scope(scopes.MAIN, virtual_hosts)


def _table(name: str, routes: bytes) -> XdsResource:
    """A scope with these routes, for any host."""
    return _scope(name, [_virtual_host("any", ("*",)) + routes])


def _scope(name: str, virtual_hosts: Iterable[bytes]) -> XdsResource:
    """Put together from packed parts, most of which are the same in all of them."""
    table = _bytes(_parsed(resources.route_configuration(name), route_pb2.RouteConfiguration()))
    table += b"".join(_framed(_VIRTUAL_HOSTS, each) for each in virtual_hosts)
    scope = _bytes(_parsed(resources.scope(name), scoped_route_pb2.ScopedRouteConfiguration()))
    return _versioned(any_pb2.Any(type_url=SRDS, value=scope + _framed(_TABLE, table)), name)


def _versioned(packed: any_pb2.Any, name: str) -> XdsResource:
    digest = hashlib.blake2b(f"{len(name)} {name} ".encode(), digest_size=8)
    digest.update(packed.value)
    return XdsResource(digest.hexdigest(), packed)


_ROUTES = route_components_pb2.VirtualHost.DESCRIPTOR.fields_by_name["routes"].number
_VIRTUAL_HOSTS = route_pb2.RouteConfiguration.DESCRIPTOR.fields_by_name["virtual_hosts"].number
_TABLE = scoped_route_pb2.ScopedRouteConfiguration.DESCRIPTOR.fields_by_name["route_configuration"].number
_LENGTH_DELIMITED = 2
_SEVEN_BITS = 0x7F


def _framed(field: int, packed: bytes) -> bytes:
    """A message as one entry of a field of another: these can be put one after the other."""
    frame = bytearray([field << 3 | _LENGTH_DELIMITED])
    left = len(packed)
    while left > _SEVEN_BITS:
        frame.append(left & _SEVEN_BITS | _SEVEN_BITS + 1)
        left >>= 7
    frame.append(left)
    return bytes(frame) + packed


def _parsed(body: Json, message: Any) -> Any:  # noqa: ANN401 - generated messages have no types
    return json_format.ParseDict(body, message)


def _pack(message: Message, name: str) -> XdsResource:
    packed = any_pb2.Any()
    packed.Pack(message, deterministic=True)
    return _versioned(packed, name)


def _route(body: Json) -> bytes:
    return _framed(_ROUTES, _bytes(_parsed(body, route_components_pb2.Route())))


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


@lru_cache(maxsize=10_000)
def _cluster(name: str, keep_seconds: int) -> XdsResource:
    return _pack(_parsed(resources.cluster(name, keep_seconds), cluster_pb2.Cluster()), name)


@lru_cache(maxsize=10_000)
def _assignment(name: str, hosts: Hosts) -> XdsResource:
    return _pack(_parsed(resources.assignment(name, hosts), endpoint_pb2.ClusterLoadAssignment()), name)


@lru_cache(maxsize=8)
def _listener(address: ListenerConfig) -> XdsResource:
    made = resources.listener(address.host, address.port, address.access_log, address.measured_log)
    return _pack(_parsed(made, listener_pb2.Listener()), resources.LISTENER)


@lru_cache(maxsize=1)
def _below_hosts() -> bytes:
    return b"".join(map(_route, server_paths.below_hosts()))


@lru_cache(maxsize=1)
def _unknown_path() -> bytes:
    return _route(own_routes.last_routes()[-1])


@lru_cache(maxsize=1_000)
def _virtual_host(name: str, domains: tuple[str, ...]) -> bytes:
    return _bytes(_parsed(resources.virtual_host(name, domains), route_components_pb2.VirtualHost()))
