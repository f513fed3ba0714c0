"""Configuration and counters of an Envoy that Contour configures, parsed from its admin interface. No I/O here.

A config dump keeps route configurations after the listener that used them is gone. So only those count that a listener
names. A draining listener accepts no new connections, but its open connections still use its routes. Configurations are
compared by content: versions in the dump are stale where a new version changed nothing.

Contour names clusters by namespace, service, port and a hash, and cuts long names. Their `alt_stat_name`, under which
Envoy counts, has all three in full; names of Kubernetes have no underscore, so it can be split again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

import msgspec

from pilotage.traffic.contract import ExpectedRoute

DUMP = "/config_dump"
STATS = (
    "/stats?type=Gauges&filter=%5Ecluster%5C..%2A%5C."
    "%28upstream_rq_active%7Cupstream_rq_pending_active%7Cmembership_healthy%29%24"
)
"""Active requests, requests that wait for a connection, and healthy addresses of each cluster.

The counters of single hosts do not suffice: they vanish with the host, while its requests go on.
"""

MARK = "contour"
"""A static cluster of every Envoy that Contour configures. Nothing is known about any other Envoy."""


class InvalidAnswer(Exception):
    """An answer that no Envoy of Contour's gives."""


class Service(NamedTuple):
    """The Service of a cluster."""

    namespace: str
    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.port}"


class EnvoyRoute(NamedTuple):
    """One route of a virtual host. `clusters` is None where the proxy answers by itself."""

    path: str
    clusters: tuple[tuple[str, int], ...] | None


class EnvoyConfig(NamedTuple):
    """Loaded configuration and counters of one Envoy."""

    routes: dict[str, list[EnvoyRoute]]
    """Routes by host, of active listeners; redirects are left out."""
    draining: dict[str, list[EnvoyRoute]]
    """The same, of draining listeners."""
    services: dict[str, Service]
    """Services of all active clusters, by the name of the cluster."""
    active: dict[tuple[str, str], int]
    """Requests active and pending, by namespace and service."""
    addresses: dict[tuple[str, str], int]


def parsed(dump: bytes, stats: bytes) -> EnvoyConfig:
    """The configuration, from the answers to `DUMP` and then `STATS`. Raises `InvalidAnswer`.

    In this order: a count of zero means something only after the route was seen.
    """
    try:
        configs = _dump.decode(dump).configs
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidAnswer(f"not the dump of an Envoy: {error}") from error
    if MARK not in {each.cluster.name for config in configs for each in config.static_clusters}:
        raise InvalidAnswer("this Envoy is not fed by Contour")
    active, addresses = _counted(stats)
    services = {each.cluster.name: _split(each.cluster.alt_stat_name) for config in configs for each in config.clusters}
    listeners = [each for config in configs for each in config.listeners]
    return EnvoyConfig(
        _rules(configs, {name for each in listeners for name in _named(each.active_state)}),
        _rules(configs, {name for each in listeners for name in _named(each.draining_state)}),
        {name: each for name, each in services.items() if each is not None},
        active,
        addresses,
    )


def lacks(loaded: EnvoyConfig, wanted: ExpectedRoute) -> str:
    """The first difference from the expected route, for people; empty if there is none."""
    rules = [each for each in loaded.routes.get(wanted.host.lower() or "*", ()) if each.path == _plain(wanted.path)]
    where = f"{wanted.host or '*'}{wanted.path}"
    if not wanted.mix.backends:
        return _leftover(loaded, rules, wanted, where)
    if not rules:
        return f"has no route for {where}"
    shares = _shares({Service(wanted.namespace, *each.key): each.weight for each in wanted.mix.backends}.items())
    for rule in rules:
        if rule.clusters is None:
            return f"answers {where} by itself"
        unknown = [name for name, _ in rule.clusters if name not in loaded.services]
        if unknown:
            return f"does not have the cluster {unknown[0]} yet"
        has = [(loaded.services[name], weight) for name, weight in rule.clusters]
        if _shares(has) != shares:
            return f"sends {where} to {', '.join(f'{service} {weight}' for service, weight in has)}"
    for service in sorted(wanted.reachable):
        if not loaded.addresses.get((wanted.namespace, service)):
            return f"knows no address of {wanted.namespace}/{service}"
    return ""


def in_flight(loaded: EnvoyConfig, wanted: ExpectedRoute) -> dict[str, int]:
    """Requests to each of the counted services, active or waiting for a connection."""
    return {each: loaded.active.get((wanted.namespace, each), 0) for each in wanted.counted}


def _leftover(loaded: EnvoyConfig, rules: list[EnvoyRoute], wanted: ExpectedRoute, where: str) -> str:
    if not wanted.counted:
        return f"still has a route for {where}" if rules else ""
    goes = {(wanted.namespace, each) for each in wanted.counted}
    for host, rule in _all_rules(loaded):
        for name, _ in rule.clusters or ():
            service = loaded.services.get(name)  # without its cluster a route leads nowhere
            if service is not None and service[:2] in goes:
                return f"still has a route from {host}{rule.path} to {service}"
    return ""


def _all_rules(loaded: EnvoyConfig) -> Iterator[tuple[str, EnvoyRoute]]:
    for hosts in (loaded.routes, loaded.draining):
        for host, rules in hosts.items():
            for rule in rules:
                yield host, rule


def _shares(weights: Iterable[tuple[Service, int]]) -> dict[Service, Fraction]:
    """The share of the requests that each service gets. A single one gets all."""
    found = list(weights)
    total = sum(weight for _, weight in found)
    shares: dict[Service, Fraction] = {}
    for service, weight in found:
        share = Fraction(weight, total) if total else Fraction(1, len(found))
        shares[service] = shares.get(service, Fraction(0)) + share
    return shares


def _rules(configs: list[_Config], used: set[str]) -> dict[str, list[EnvoyRoute]]:
    """Routes by host, of the route configurations with these names."""
    found: dict[str, list[EnvoyRoute]] = {}
    for config in configs:
        for each in config.routes:
            if each.route_config.name not in used:
                continue
            for host in each.route_config.virtual_hosts:
                rules = [rule for rule in map(_rule, host.routes) if rule is not None]
                for domain in host.domains:
                    found.setdefault(domain.lower(), []).extend(rules)
    return found


def _named(state: _ListenerState | None) -> Iterator[str]:
    """The route configurations that a listener uses."""
    for chain in state.listener.filter_chains if state else ():
        for each in chain.filters:
            if each.typed_config.rds is not None:
                yield each.typed_config.rds.route_config_name


def _rule(route: _Route) -> EnvoyRoute | None:
    match = route.match
    path = _plain(match.prefix or match.path_separated_prefix or match.path)
    if route.redirect is not None:
        return None
    action = route.route
    if action is None:
        return EnvoyRoute(path, None)
    if action.cluster:
        return EnvoyRoute(path, ((action.cluster, 1),))
    clusters = action.weighted_clusters.clusters if action.weighted_clusters else []
    return EnvoyRoute(path, tuple((each.name, each.weight) for each in clusters) or None)


def _plain(path: str) -> str:
    """Routers differ about a slash at the end."""
    return path.rstrip("/") or "/"


def _split(name: str) -> Service | None:
    """The Service of an `alt_stat_name`; None for a name that is not Contour's."""
    parts = name.split("_")
    if len(parts) != 3 or not parts[2].isdigit():
        return None
    return Service(parts[0], parts[1], int(parts[2]))


def _counted(stats: bytes) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """Requests and addresses, by namespace and service."""
    active: dict[tuple[str, str], int] = {}
    addresses: dict[tuple[str, str], int] = {}
    for line in stats.decode(errors="replace").splitlines():
        name, _, value = line.partition(": ")
        prefix, _, rest = name.partition(".")
        cluster, _, gauge = rest.partition(".")
        service = _split(cluster)
        if prefix != "cluster" or not value.isdigit():
            raise InvalidAnswer(f"{line[:80]!r} is no gauge of a cluster")
        if service is not None:
            counts = addresses if gauge == "membership_healthy" else active
            counts[service[:2]] = counts.get(service[:2], 0) + int(value)
    return active, addresses


# The parts of a dump that are read. msgspec skips everything else without creating objects.


class _Rds(msgspec.Struct):
    route_config_name: str = ""


class _Typed(msgspec.Struct):
    rds: _Rds | None = None


class _Filter(msgspec.Struct):
    typed_config: _Typed = msgspec.field(default_factory=_Typed)


class _Chain(msgspec.Struct):
    filters: list[_Filter] = []


class _Listener(msgspec.Struct):
    filter_chains: list[_Chain] = []


class _ListenerState(msgspec.Struct):
    listener: _Listener = msgspec.field(default_factory=_Listener)


class _DynamicListener(msgspec.Struct):
    active_state: _ListenerState | None = None
    draining_state: _ListenerState | None = None


class _Match(msgspec.Struct):
    prefix: str = ""
    path: str = ""
    path_separated_prefix: str = ""


class _WeightedCluster(msgspec.Struct):
    name: str = ""
    weight: int = 0


class _WeightedClusters(msgspec.Struct):
    clusters: list[_WeightedCluster] = []


class _Action(msgspec.Struct):
    cluster: str = ""
    weighted_clusters: _WeightedClusters | None = None


class _Redirect(msgspec.Struct):
    """Redirect, of which only the presence counts."""


class _Route(msgspec.Struct):
    match: _Match = msgspec.field(default_factory=_Match)
    route: _Action | None = None
    redirect: _Redirect | None = None


class _VirtualHost(msgspec.Struct):
    domains: list[str] = []
    routes: list[_Route] = []


class _RouteConfig(msgspec.Struct):
    name: str = ""
    virtual_hosts: list[_VirtualHost] = []


class _DynamicRoutes(msgspec.Struct):
    route_config: _RouteConfig = msgspec.field(default_factory=_RouteConfig)


class _Cluster(msgspec.Struct):
    name: str = ""
    alt_stat_name: str = ""


class _DynamicCluster(msgspec.Struct):
    cluster: _Cluster = msgspec.field(default_factory=_Cluster)


class _Config(msgspec.Struct):
    """One section of a dump, whichever it is."""

    static_clusters: list[_DynamicCluster] = []
    clusters: list[_DynamicCluster] = msgspec.field(name="dynamic_active_clusters", default_factory=list)
    listeners: list[_DynamicListener] = msgspec.field(name="dynamic_listeners", default_factory=list)
    routes: list[_DynamicRoutes] = msgspec.field(name="dynamic_route_configs", default_factory=list)


class _Dump(msgspec.Struct):
    configs: list[_Config] = []
    """Left out where there is nothing."""


_dump = msgspec.json.Decoder(_Dump)
