"""Division of the requests of a route among its Services, by weights, by who can serve, and by slots of keys. Pure.

Requests that are assigned by a key have a slot of `SLOTS`, by the hash of the key; a Service has as many slots as its
weight says. When weights change, Services keep the slots that they have, as far as their weight allows: so only those
keys move whose slot has to. A Service without any server that takes requests lends its slots, and gets them back.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pilotage.api.gateway_route import StoredGatewayRoute
from pilotage.gateway.inputs import (
    GatewayBackend,
    Hosts,
    ProxiedRoute,
    Service,
    cluster_name,
    parsed_name,
    takes_requests,
)
from pilotage.kube import Json, Object

SLOTS = 100

Owners = tuple[str, ...]
"""The cluster of each slot."""
Shares = tuple[tuple[str, int], ...]
"""Clusters and their weights, in the order in which Envoy counts them off. Empty: none has a weight."""


class RouteDivision(NamedTuple):
    """Division of the requests of a route as Envoy gets it: those that no branch matches first, then each branch."""

    shares: tuple[Shares, ...]

    def percents(self, branch: int = 0) -> dict[str, float]:
        """Percentages by Service."""
        found: dict[str, float] = {}
        total = sum(weight for _, weight in self.shares[branch])
        for name, weight in self.shares[branch]:
            found[_service(name)] = found.get(_service(name), 0.0) + 100 * weight / total
        return found


def divide(route: ProxiedRoute, hosts: Mapping[Service, Hosts]) -> RouteDivision:
    """The division for these addresses."""
    found = []
    for number, backends in enumerate(route.shared_out()):
        weights = shares(route.key.namespace, backends, hosts)
        if route.assign is not None:
            kept = route.slots[number] if number < len(route.slots) else ()
            found.append(runs(slots(weights, kept)))
        else:
            found.append(tuple(weights.items()))
    return RouteDivision(tuple(found))


def stratum_name(route: ProxiedRoute, division: RouteDivision, branch: int) -> str:
    """Name of a stratum in lines: the same for the same shares of the same requests of a route."""
    shares = hashlib.blake2b(repr((division.shares[branch], route.assign)).encode(), digest_size=6).hexdigest()
    return f"{route.uid}/{branch}/{shares}"


def with_slots(route: ProxiedRoute, before: Sequence[Owners]) -> ProxiedRoute:
    """The route with its slots, after those that it had. It has none where it does not assign by a key."""
    if route.assign is None:
        return route
    found = []
    for number, each in enumerate(route.shared_out()):
        kept = before[number] if number < len(before) else ()
        found.append(slots(wished(route.key.namespace, each), kept) or kept)
    return route._replace(slots=tuple(found))


def read_slots(obj: Object, route: ProxiedRoute) -> list[Owners]:
    """The slots in the status of a route."""
    namespace, found = route.key.namespace, {}
    for each in obj.decode_as(StoredGatewayRoute).status.slots:
        backends = route.shared_out()[each.branch] if each.branch < len(route.shared_out()) else ()
        names = {each.service: cluster_name(namespace, each.service, each.port) for each in backends}
        found[each.branch] = unrolled([(names.get(run.service, ""), run.slots) for run in each.runs])
    return [found.get(number, ()) for number in range(len(route.shared_out()))]


def written_slots(route: ProxiedRoute) -> list[Json]:
    """Slots as the status of a route has them."""
    return [
        {"branch": branch, "runs": [{"service": _service(name), "slots": number} for name, number in runs(owners)]}
        for branch, owners in enumerate(route.slots)
        if owners
    ]


def wished(namespace: str, backends: Sequence[GatewayBackend]) -> dict[str, int]:
    """The weight of each cluster, as the route says it."""
    found: dict[str, int] = {}
    for each in backends:
        name = cluster_name(namespace, each.service, each.port)
        found[name] = found.get(name, 0) + each.weight
    return found


def shares(namespace: str, backends: Sequence[GatewayBackend], hosts: Mapping[Service, Hosts]) -> dict[str, int]:
    """The weight of each cluster; empty where none has any.

    A Service without any address that takes requests would answer its share with 503, while another could serve it: its
    share goes to the others. Where none of those with a share can serve, the weights stay as they are.
    """
    wanted = wished(namespace, backends)
    ready = {each.service for each in backends if takes_requests(hosts.get(Service(namespace, each.service), ()))}
    able = {cluster_name(namespace, each.service, each.port) for each in backends if each.service in ready}
    if not any(wanted.values()):
        return {}
    if not any(wanted[each] for each in able):
        return wanted
    return {name: weight if name in able else 0 for name, weight in wanted.items()}


def slots(weights: Mapping[str, int], before: Owners) -> Owners:
    """Owners of all slots by weight. Who owned one `before` keeps it, unless it has more than its weight says."""
    left = _apportioned(weights)
    if not left:
        return ()
    found = []
    for owner in before or ("",) * SLOTS:
        keeps = left.get(owner, 0) > 0
        found.append(owner if keeps else "")
        if keeps:
            left[owner] -= 1
    missing = iter([name for name, number in left.items() for _ in range(number)])
    return tuple(each or next(missing) for each in found)


def runs(owners: Owners) -> Shares:
    """Owners as neighbouring slots, and how many."""
    found: list[tuple[str, int]] = []
    for each in owners:
        if found and found[-1][0] == each:
            found[-1] = each, found[-1][1] + 1
        else:
            found.append((each, 1))
    return tuple(found)


def unrolled(listed: Iterable[tuple[str, int]]) -> Owners:
    """The inverse of `runs`; empty for anything that is not all slots."""
    found = tuple(name for name, number in listed for _ in range(number))
    return found if len(found) == SLOTS else ()


def _apportioned(weights: Mapping[str, int]) -> dict[str, int]:
    """Slots by cluster: all of them, in the ratio of the weights; what is left over goes to the largest remainders."""
    total = sum(weights.values())
    if not total:
        return {}
    found = {name: weight * SLOTS // total for name, weight in weights.items()}
    order = sorted(weights, key=lambda each: -(weights[each] * SLOTS % total))
    for name in order[: SLOTS - sum(found.values())]:
        found[name] += 1
    return found


def _service(cluster: str) -> str:
    parsed = parsed_name(cluster)
    return "" if parsed is None else parsed.service.name
