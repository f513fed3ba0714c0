"""Configuration and counters of an Envoy that Contour configures, parsed from its admin interface. No I/O here.

A config dump keeps route configurations after the listener that used them is gone. So only those count that a listener
names. A draining listener accepts no new connections, but its open connections still use its routes. Configurations are
compared by content: versions in the dump are stale where a new version changed nothing.

Contour names clusters by namespace, service, port and a hash, and cuts long names. Their `alt_stat_name`, under which
Envoy counts, has all three in full; names of Kubernetes have no underscore, so it can be split again.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from pilotage.traffic.contract import Header

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


_PATHS = ("prefix", "path_separated_prefix", "path")
_DENOMINATORS = {"HUNDRED": 100, "TEN_THOUSAND": 10_000, "MILLION": 1_000_000}


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
    """One route of a virtual host."""

    table: str
    """Name of the route configuration that it is in."""
    path: str
    headers: tuple[Header, ...] | None
    """Headers that requests must have, sorted. None: there are conditions other than the path and exact headers."""
    clusters: tuple[tuple[str, int], ...] | None
    """Clusters and their weights; None where the proxy answers by itself."""
    mirrors: tuple[tuple[str, Fraction], ...] = ()
    """Clusters that get copies, and the share of the requests that is copied."""
    sticky: bool = False
    """Whether the cluster is chosen by a hash of the request, and not at random."""


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


def _rules(configs: list[_Config], used: set[str]) -> dict[str, list[EnvoyRoute]]:
    """Routes by host, of the route configurations with these names."""
    found: dict[str, list[EnvoyRoute]] = {}
    for table in (each.route_config for config in configs for each in config.routes):
        if table.name not in used:
            continue
        for host in table.virtual_hosts:
            # The mirrors of the virtual host, or of all of them, count for a route without any.
            mirrors = host.mirrors or table.mirrors
            rules = [rule for rule in (_rule(each, table.name, mirrors) for each in host.routes) if rule is not None]
            for domain in host.domains:
                found.setdefault(domain.lower(), []).extend(rules)
    return found


def _named(state: _ListenerState | None) -> Iterator[str]:
    """The route configurations that a listener uses."""
    for chain in state.listener.filter_chains if state else ():
        for each in chain.filters:
            if each.typed_config.rds is not None:
                yield each.typed_config.rds.route_config_name


def _rule(route: _Route, table: str, mirrors: list[_Mirror]) -> EnvoyRoute | None:
    if route.redirect is not None:
        return None
    path, headers = _path(route.match), _headers(route.match)
    action = route.route
    if action is None:
        return EnvoyRoute(table, path, headers, None)
    copies = tuple((each.cluster, _share(each)) for each in action.mirrors or mirrors)
    if action.cluster:
        return EnvoyRoute(table, path, headers, ((action.cluster, 1),), copies)
    split = action.weighted_clusters or _WeightedClusters()
    clusters = tuple((each.name, each.weight) for each in split.clusters)
    return EnvoyRoute(table, path, headers, clusters or None, copies, split.use_hash_policy)


def _path(match: dict[str, Any]) -> str:
    """The path, or the whole match in words where it is by a pattern."""
    prefix = next((match[each] for each in _PATHS if isinstance(match.get(each), str)), None)
    return plain(prefix) if prefix is not None else str(match)


def _headers(match: dict[str, Any]) -> tuple[Header, ...] | None:
    found = [_exact(each) for each in match.get("headers", ())]
    if set(match) - {*_PATHS, "headers"} or None in found:
        return None
    return tuple(sorted(each for each in found if each is not None))


def _exact(matcher: object) -> Header | None:
    """The header of an exact match; None for any other match."""
    match matcher:
        case {"name": str(name), "string_match": {"exact": str(value), **options}, **others} if not options | others:
            return Header(name.lower(), value)
    return None


def _share(mirror: _Mirror) -> Fraction:
    """Share of the requests that a mirror copies; without a fraction all."""
    if mirror.fraction is None:
        return Fraction(1)
    percent = mirror.fraction.default_value
    return Fraction(percent.numerator, _DENOMINATORS.get(percent.denominator, 100))


def plain(path: str) -> str:
    """The path without a slash at the end, about which routers differ."""
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


class _WeightedCluster(msgspec.Struct):
    name: str = ""
    weight: int = 0


class _WeightedClusters(msgspec.Struct):
    clusters: list[_WeightedCluster] = []
    use_hash_policy: bool = False


class _Percent(msgspec.Struct):
    numerator: int = 0
    denominator: str = "HUNDRED"


class _Fraction(msgspec.Struct):
    default_value: _Percent = msgspec.field(default_factory=_Percent)


class _Mirror(msgspec.Struct):
    cluster: str = ""
    fraction: _Fraction | None = msgspec.field(name="runtime_fraction", default=None)


class _Action(msgspec.Struct):
    cluster: str = ""
    weighted_clusters: _WeightedClusters | None = None
    mirrors: list[_Mirror] = msgspec.field(name="request_mirror_policies", default_factory=list)


class _Redirect(msgspec.Struct):
    """Redirect, of which only the presence counts."""


class _Route(msgspec.Struct):
    match: dict[str, Any] = {}
    route: _Action | None = None
    redirect: _Redirect | None = None


class _VirtualHost(msgspec.Struct):
    domains: list[str] = []
    routes: list[_Route] = []
    mirrors: list[_Mirror] = msgspec.field(name="request_mirror_policies", default_factory=list)


class _RouteConfig(msgspec.Struct):
    name: str = ""
    virtual_hosts: list[_VirtualHost] = []
    mirrors: list[_Mirror] = msgspec.field(name="request_mirror_policies", default_factory=list)


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
