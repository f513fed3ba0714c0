"""Claims of names by several GatewayRoutes: the holder of a name keeps it for as long as it claims it. Pure.

A route claims names: each of its models, its host with the path, and ``/endpoints/NAMESPACE/NAME``. One route holds a
name. One that is free goes to the route that has waited longest; of those that come at the same time, to the oldest.
Nothing that another route does takes a name from its holder: neither its age nor a new claim of it counts.

A host is held by a namespace: its routes can have paths of it, and those of others cannot, because a longer path would
take requests from a shorter one. For the same reason nobody gets a host below a wildcard that another namespace holds,
nor a wildcard above its host: that would get the requests as soon as the host is let go.

A name that is let go stays reserved for its namespace for a while: who waits for a name of somebody else would else get
it in the moments in which an endpoint is redeployed.

Who holds what is written into the status of routes and read again after a restart. There are no times in it, so that no
clock can change it, but turns: each claim gets the next number when it is first seen, and once more when it becomes the
holder. So of two records that say the same name is held, which is what a crash between two writes can leave, the one
with the higher turn is the newer. The turn of a claim that waits is written after the record of the one that it waits
for (`Conflict.holder`), so that a lost record is never that of the holder alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pilotage.gateway.hostnames import HostRules, wildcards_above
from pilotage.gateway.inputs import ProxiedRoute
from pilotage.kube import ObjectKey

MODEL, HOST, PATH = "model", "host", "path"
ANY_HOST = HostRules()
NOTHING: Mapping[ClaimedName, str] = MappingProxyType({})
SHOWN_MAX = 100
"""Characters of a name in a sentence."""


class ClaimedName(NamedTuple):
    """A name that can be claimed. Of a host, `path` is the path below it."""

    kind: str
    name: str
    path: str = ""

    def __str__(self) -> str:
        text = self.name + self.path
        return f"{self.kind} {text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + '…'}"


class ClaimRecord(NamedTuple):
    """The state of a claim."""

    turn: int
    held: bool


Records = dict[str, dict[ClaimedName, ClaimRecord]]
"""Records by the uid of the route."""


class ClaimConflict(NamedTuple):
    """A name that a route claims and does not get."""

    name: ClaimedName
    text: str
    holder: str = ""
    """The uid of the route that holds it; empty where none does."""
    refused: bool = False
    """Whether no route of the namespace may have it."""


class Claim(NamedTuple):
    """The names that lead to one route."""

    route: ProxiedRoute
    models: tuple[str, ...]
    path: str
    """Path prefix; empty: another route of the namespace has it."""
    host: str
    """Empty: none, or not this route's."""
    conflicts: tuple[ClaimConflict, ...]


class ClaimDecision(NamedTuple):
    """Names and their holders, with the records to keep."""

    claims: list[Claim]
    """One for each route, the oldest first."""
    records: Records


def names(route: ProxiedRoute) -> tuple[ClaimedName, ...]:
    """All that a route claims."""
    found = [ClaimedName(MODEL, each) for each in route.models]
    found.append(ClaimedName(PATH, f"/endpoints/{route.key.namespace}/{route.endpoint}"))
    if route.host:
        found.append(ClaimedName(HOST, route.host, route.path.rstrip("/") or "/"))
    return tuple(found)


def decide(
    routes: Iterable[ProxiedRoute],
    before: Mapping[str, Mapping[ClaimedName, ClaimRecord]],
    coming: Iterable[ProxiedRoute] = (),
    rules: HostRules = ANY_HOST,
    reserved: Mapping[ClaimedName, str] = NOTHING,
    turn: int = 0,
) -> ClaimDecision:
    """Give each name to one route, after what was `before`.

    `coming` are routes that are wanted and are not offered to Envoy yet: nothing leads to them, and nobody else gets
    what is theirs. `reserved` are names that only routes of one namespace get. `turn` is the last one that was given,
    where `before` does not have all records.
    """
    offered = sorted(routes, key=lambda each: each.age)
    wanted = {(each.uid, name): each for each in (*offered, *coming) for name in names(each)}
    refused = {
        (uid, name): text
        for (uid, name), each in wanted.items()
        if name.kind == HOST and (text := rules.refusal(name.name, each.key.namespace))
    }
    table = _Table(before, reserved, turn)
    for uid, name in sorted(wanted.keys() - refused.keys(), key=lambda each: table.precedence(wanted[each], each[1])):
        table.settle(wanted[uid, name], name)
    return ClaimDecision([_claim(each, table, refused) for each in offered], table.records)


class _Table:
    """Names and their holders, as they are settled one after the other."""

    def __init__(
        self, before: Mapping[str, Mapping[ClaimedName, ClaimRecord]], reserved: Mapping[ClaimedName, str], turn: int
    ) -> None:
        self.records: Records = {}
        self.holders: dict[ClaimedName, ProxiedRoute] = {}
        self.blocked: dict[tuple[str, ClaimedName], ProxiedRoute | None] = {}
        """Holder by route and name that the route does not get; None: the name is reserved."""
        self._hosts: dict[str, ProxiedRoute] = {}
        """First of the routes that have a host, all of one namespace, by host."""
        self._below: dict[str, dict[str, ProxiedRoute]] = {}
        """Route that has a host below a wildcard, by wildcard, then by namespace."""
        self._before = before
        self._reserved = reserved
        self._reserved_hosts = {each.name: namespace for each, namespace in reserved.items() if each.kind == HOST}
        self._reserved_below: dict[str, set[str]] = {}
        """Namespaces that hosts below a wildcard are reserved for, by wildcard."""
        for host, namespace in self._reserved_hosts.items():
            for each in wildcards_above(host):
                self._reserved_below.setdefault(each, set()).add(namespace)
        self._turn = max((each.turn for held in before.values() for each in held.values()), default=0)
        self._turn = max(self._turn, turn)

    def precedence(self, route: ProxiedRoute, name: ClaimedName) -> tuple[int, int, tuple[str, ObjectKey], ClaimedName]:
        """Holders first, then those that wait, in their order, then those that are new."""
        was = self._before.get(route.uid, {}).get(name)
        rank = 2 if was is None else 0 if was.held else 1
        turn = 0 if was is None else -was.turn if was.held else was.turn
        return rank, turn, route.age, name

    def settle(self, route: ProxiedRoute, name: ClaimedName) -> None:
        """Give the name to the route, or note who has it."""
        was = self._before.get(route.uid, {}).get(name)
        held = was is not None and was.held
        holder = self._holder(route, name, held=held)
        free = holder is None and (held or not self._is_reserved(route, name))
        if free:
            self.holders[name] = route
            if name.kind == HOST:
                self._hosts.setdefault(name.name, route)
                for each in wildcards_above(name.name):
                    self._below.setdefault(each, {}).setdefault(route.key.namespace, route)
        else:
            self.blocked[route.uid, name] = holder
        kept = was if was is not None and was.held == free else None
        self.records.setdefault(route.uid, {})[name] = kept or ClaimRecord(self._next(), free)

    def _holder(self, route: ProxiedRoute, name: ClaimedName, *, held: bool) -> ProxiedRoute | None:
        if name in self.holders:
            return self.holders[name]
        if name.kind != HOST:
            return None
        # Who holds a host keeps it, whatever is held above or below it: each gets the requests of its own.
        around = () if held else wildcards_above(name.name)
        found = [self._hosts.get(each) for each in (name.name, *around)]
        found += () if held else self._below.get(name.name, {}).values()
        return next((each for each in found if each is not None and each.key.namespace != route.key.namespace), None)

    def _is_reserved(self, route: ProxiedRoute, name: ClaimedName) -> bool:
        """Whether it is reserved for another namespace than the route's."""
        mine = route.key.namespace
        if name.kind != HOST:
            return self._reserved.get(name, mine) != mine
        above = (self._reserved_hosts.get(each, mine) for each in (name.name, *wildcards_above(name.name)))
        return any(each != mine for each in (*above, *self._reserved_below.get(name.name, ())))

    def _next(self) -> int:
        self._turn += 1
        return self._turn


def _claim(route: ProxiedRoute, table: _Table, refused: Mapping[tuple[str, ClaimedName], str]) -> Claim:
    mine = [each for each in names(route) if each in table.holders and table.holders[each].uid == route.uid]
    conflicts = []
    for each in names(route):
        if (route.uid, each) in refused:
            conflicts.append(ClaimConflict(each, refused[route.uid, each], refused=True))
        elif (route.uid, each) in table.blocked:
            conflicts.append(_conflict(each, route, table.blocked[route.uid, each]))
    return Claim(
        route,
        tuple(each.name for each in mine if each.kind == MODEL),
        next((each.name for each in mine if each.kind == PATH), ""),
        next((each.name for each in mine if each.kind == HOST), ""),
        tuple(conflicts),
    )


def _conflict(name: ClaimedName, route: ProxiedRoute, holder: ProxiedRoute | None) -> ClaimConflict:
    if holder is None:
        return ClaimConflict(
            name, f"{name} was another namespace's until a while ago, and is still reserved for that one"
        )
    return ClaimConflict(name, f"{name} leads to {_known_as(holder, route)}, which has it", holder.uid)


def _known_as(holder: ProxiedRoute, to: ProxiedRoute) -> str:
    """Tenants are not told what others have: a namespace and a name are for those that may read them."""
    if holder.key.namespace == to.key.namespace:
        return f"GatewayRoute {holder.key}"
    return "an endpoint of another namespace"
