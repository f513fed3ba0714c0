"""Comparison of what an Envoy has loaded with an expected route, branch by branch. Pure.

Weights are compared as shares, and copies by their share. A rule for the same host and path that is not in the expected
mix is a difference: it takes requests away. Where several route configurations have the host, as for HTTP and HTTPS,
each one that has the path must have all of the route.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

from pilotage.traffic.contract import WHOLE, ExpectedRoute, Header, Mix
from pilotage.traffic.envoy import EnvoyConfig, EnvoyRoute, Service, plain

_Shares: TypeAlias = dict[Service, Fraction]


def lacks(loaded: EnvoyConfig, wanted: ExpectedRoute) -> str:
    """The first difference from the expected route, for people; empty if there is none."""
    rules = [each for each in loaded.routes.get(wanted.host.lower() or "*", ()) if each.path == plain(wanted.path)]
    where = f"{wanted.host or '*'}{wanted.path}"
    if not wanted.mix.backends:
        return _leftover(loaded, rules, wanted, where)
    if not rules:
        return f"has no route for {where}"
    for _, table in itertools.groupby(sorted(rules, key=lambda each: each.table), lambda each: each.table):
        if what := _difference(loaded, list(table), wanted, where):
            return what
    for service in sorted(wanted.reachable):
        if not loaded.addresses.get((wanted.namespace, service)):
            return f"knows no address of {wanted.namespace}/{service}"
    return ""


def in_flight(loaded: EnvoyConfig, wanted: ExpectedRoute) -> dict[str, int]:
    """Requests to each of the counted services, active or waiting for a connection."""
    return {each: loaded.active.get((wanted.namespace, each), 0) for each in wanted.counted}


def effective_shares(mix: Mix) -> dict[str, float]:
    """Percentage of the requests of the main branch that each service gets from an Envoy that has the mix."""
    shares = _shares((Service("", *each.key), each.weight) for each in mix.backends)
    found: dict[str, float] = {}
    for service, share in shares.items():
        found[service.name] = found.get(service.name, 0.0) + float(share * WHOLE)
    return found


def _difference(loaded: EnvoyConfig, rules: Sequence[EnvoyRoute], wanted: ExpectedRoute, where: str) -> str:
    """The first difference in one route configuration."""
    mix = wanted.mix
    branches = {each.headers: each.backends for each in mix.branches} | {(): mix.backends}
    copies = _percentages(wanted.namespace, mix)
    for rule in rules:
        here = f"{where}{_words(rule.headers)}"
        if rule.headers is None or rule.headers not in branches:
            return f"has another rule for {here}"
        if rule.clusters is None:
            return f"answers {here} by itself"
        names = [*rule.clusters, *rule.mirrors]
        if unknown := [name for name, _ in names if name not in loaded.services]:
            return f"does not have the cluster {unknown[0]} yet"
        has = [(loaded.services[name], weight) for name, weight in rule.clusters]
        wants = ((Service(wanted.namespace, *each.key), each.weight) for each in branches[rule.headers])
        if _shares(has) != _shares(wants):
            return f"sends {here} to {', '.join(f'{service} {weight}' for service, weight in has)}"
        copied = [(loaded.services[name], share) for name, share in rule.mirrors]
        if sorted(copied) != sorted(copies):
            return f"copies {here} to {_copied(copied)}"
        if rule.sticky != (mix.sticky is not None):
            return f"{'assigns' if rule.sticky else 'does not assign'} requests for {here} by a key"
    lacking = [headers for headers in branches if headers not in {each.headers for each in rules}]
    return f"has no route for {where}{_words(lacking[0])}" if lacking else ""


def _leftover(loaded: EnvoyConfig, rules: list[EnvoyRoute], wanted: ExpectedRoute, where: str) -> str:
    """The first route or mirror that leads to a service that should get no requests."""
    if not wanted.counted:
        return f"still has a route for {where}" if rules else ""
    goes = {(wanted.namespace, each) for each in wanted.counted}
    for host, rule in _all_rules(loaded):
        here = f"{host}{rule.path}{_words(rule.headers)}"
        for what, clusters in (("has a route from", rule.clusters or ()), ("copies requests for", rule.mirrors)):
            for name, _ in clusters:
                service = loaded.services.get(name)  # without its cluster a route leads nowhere
                if service is not None and service[:2] in goes:
                    return f"still {what} {here} to {service}"
    return ""


def _all_rules(loaded: EnvoyConfig) -> Iterator[tuple[str, EnvoyRoute]]:
    for hosts in (loaded.routes, loaded.draining):
        for host, rules in hosts.items():
            for rule in rules:
                yield host, rule


def _shares(weights: Iterable[tuple[Service, int]]) -> _Shares:
    """The share of the requests that each service gets. A single one gets all."""
    found = list(weights)
    total = sum(weight for _, weight in found)
    shares: _Shares = {}
    for service, weight in found:
        share = Fraction(weight, total) if total else Fraction(1, len(found))
        shares[service] = shares.get(service, Fraction(0)) + share
    return shares


def _percentages(namespace: str, mix: Mix) -> list[tuple[Service, Fraction]]:
    return [(Service(namespace, *each.key), Fraction(each.percent, WHOLE)) for each in mix.copies]


def _copied(copies: Sequence[tuple[Service, Fraction]]) -> str:
    return ", ".join(f"{service} {float(share * WHOLE):g} %" for service, share in copies) or "nobody"


def _words(headers: Sequence[Header] | None) -> str:
    if headers is None:
        return " with other conditions"
    return f" with {' and '.join(f'{name}: {value}' for name, value in headers)}" if headers else ""
