"""What an Envoy of Contour's has loaded, from what its admin interface says. No I/O here.

The dump of its configuration has everything that it ever got: route configurations stay in it after the listener that
used them is gone. So the listeners come first, and only what they name counts. A listener that is drained takes no new
connections, but those that it has still use its routes. What is loaded is compared by its content; versions in the dump
are stale where a new version changed nothing.

Contour names clusters by namespace, service, port and a hash, and cuts long names. Their `alt_stat_name`, under which
Envoy counts, has all three in full; names of Kubernetes have no underscore, so it can be taken apart again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pilotage.traffic.contract import ExpectedRoute

DUMP = "/config_dump"
STATS = (
    "/stats?type=Gauges&filter=%5Ecluster%5C..%2A%5C."
    "%28upstream_rq_active%7Cupstream_rq_pending_active%7Cmembership_healthy%29%24"
)
"""Requests under way, requests that wait for a connection, and addresses: of each cluster.

Those of single hosts will not do: they vanish with the host, while its requests go on.
"""

MARK = "contour"
"""A static cluster of every Envoy that Contour feeds. Nothing can be said about another's."""


class NotUnderstood(Exception):
    """What came is not what an Envoy of Contour's says."""


class Service(NamedTuple):
    """What a cluster stands for."""

    namespace: str
    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.port}"


class Rule(NamedTuple):
    """One rule of a host: where requests to a path go. None for those that the proxy answers by itself."""

    path: str
    clusters: tuple[tuple[str, int], ...] | None


class Loaded(NamedTuple):
    """What one Envoy has."""

    rules: dict[str, list[Rule]]
    """By host, of listeners that take connections; those that send clients elsewhere are left out."""
    fading: dict[str, list[Rule]]
    """The same, of listeners that are drained."""
    services: dict[str, Service]
    """By the name of their cluster, of all clusters that are ready."""
    active: dict[tuple[str, str], int]
    """Requests under way and waiting, by namespace and service."""
    addresses: dict[tuple[str, str], int]


def understood(dump: bytes, stats: bytes) -> Loaded:
    """From the answers to `DUMP` and, asked after that, `STATS`. Raises `NotUnderstood`.

    In this order: nothing in flight means something only after the route was seen.
    """
    try:
        configs = _dump.decode(dump).configs
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotUnderstood(f"not the dump of an Envoy: {error}") from error
    if MARK not in {each.cluster.name for config in configs for each in config.static_clusters}:
        raise NotUnderstood("this Envoy is not fed by Contour")
    active, addresses = _counted(stats)
    services = {each.cluster.name: _split(each.cluster.alt_stat_name) for config in configs for each in config.clusters}
    listeners = [each for config in configs for each in config.listeners]
    return Loaded(
        _rules(configs, {name for each in listeners for name in _named(each.active_state)}),
        _rules(configs, {name for each in listeners for name in _named(each.draining_state)}),
        {name: each for name, each in services.items() if each is not None},
        active,
        addresses,
    )


def lacks(loaded: Loaded, wanted: ExpectedRoute) -> str:
    """What is missing or too much, for people; empty where all is as it should be."""
    rules = [each for each in loaded.rules.get(wanted.host.lower() or "*", ()) if each.path == _plain(wanted.path)]
    where = f"{wanted.host or '*'}{wanted.path}"
    if not wanted.backends:
        return _leftover(loaded, rules, wanted, where)
    if not rules:
        return f"has no route for {where}"
    shares = _shares({Service(wanted.namespace, *each.key): each.weight for each in wanted.backends}.items())
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


def in_flight(loaded: Loaded, wanted: ExpectedRoute) -> int:
    """Requests to the services that are counted, under way or waiting for a connection."""
    return sum(loaded.active.get((wanted.namespace, each), 0) for each in wanted.counted)


def _leftover(loaded: Loaded, rules: list[Rule], wanted: ExpectedRoute, where: str) -> str:
    if not wanted.counted:
        return f"still has a route for {where}" if rules else ""
    goes = {(wanted.namespace, each) for each in wanted.counted}
    for host, rule in _all_rules(loaded):
        for name, _ in rule.clusters or ():
            service = loaded.services.get(name)  # without its cluster a route leads nowhere
            if service is not None and service[:2] in goes:
                return f"still has a route from {host}{rule.path} to {service}"
    return ""


def _all_rules(loaded: Loaded) -> Iterator[tuple[str, Rule]]:
    for hosts in (loaded.rules, loaded.fading):
        for host, rules in hosts.items():
            for rule in rules:
                yield host, rule


def _shares(weights: Iterable[tuple[Service, int]]) -> dict[Service, Fraction]:
    """Which part of the requests each one gets. A single one gets everything."""
    found = list(weights)
    total = sum(weight for _, weight in found)
    shares: dict[Service, Fraction] = {}
    for service, weight in found:
        share = Fraction(weight, total) if total else Fraction(1, len(found))
        shares[service] = shares.get(service, Fraction(0)) + share
    return shares


def _rules(configs: list[_Config], used: set[str]) -> dict[str, list[Rule]]:
    """By host, of the route configurations with these names."""
    found: dict[str, list[Rule]] = {}
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


def _rule(route: _Route) -> Rule | None:
    match = route.match
    path = _plain(match.prefix or match.path_separated_prefix or match.path)
    if route.redirect is not None:
        return None
    action = route.route
    if action is None:
        return Rule(path, None)
    if action.cluster:
        return Rule(path, ((action.cluster, 1),))
    clusters = action.weighted_clusters.clusters if action.weighted_clusters else []
    return Rule(path, tuple((each.name, each.weight) for each in clusters) or None)


def _plain(path: str) -> str:
    """Routers differ about a slash at the end."""
    return path.rstrip("/") or "/"


def _split(name: str) -> Service | None:
    """What an `alt_stat_name` of Contour's stands for; None for a name that is another's."""
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
            raise NotUnderstood(f"{line[:80]!r} is no gauge of a cluster")
        if service is not None:
            counts = addresses if gauge == "membership_healthy" else active
            counts[service[:2]] = counts.get(service[:2], 0) + int(value)
    return active, addresses


# The parts of a dump that are looked at. msgspec skips everything else without making objects of it.


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
    """That there is one is enough."""


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
