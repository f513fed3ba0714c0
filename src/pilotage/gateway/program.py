"""Programming of Envoy: offers snapshots one at a time, each until it is acknowledged or rejected.

A change that Envoy refuses must not hold up the others that came with it. So they are tried in halves until the ones at
fault are alone; each of these is rejected, with Envoy's own text, and what its route had before stays.

A request goes where routes led when its headers came, however long its body takes. So a cluster outlives its last
reference by the time that a body may take, and stays beyond that while it has requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

import structlog

from pilotage.gateway.ads import Ads
from pilotage.gateway.claims import ANY_HOST, ClaimDecision, ClaimedName, ClaimRecord, Records, decide, names
from pilotage.gateway.hostnames import HostRules
from pilotage.gateway.inputs import Hosts, ProxiedRoute, Service, parsed_name
from pilotage.gateway.resources import UPLOAD_SECONDS_MAX
from pilotage.gateway.snapshot import CDS, LDS, ListenerConfig, Snapshot, compiled
from pilotage.runtime.clock import monotonic

_log = structlog.get_logger(__name__)

GRACE_SECONDS = UPLOAD_SECONDS_MAX + 5.0
RESERVE_SECONDS = 3600.0
"""Time for which a released name is reserved for its namespace: longer than most redeployments take."""
TEXT_MAX = 1000
RETRY_SECONDS = 1.0
"""Delay until a rejected listener is retried: its port may be free then."""


class Rejection(NamedTuple):
    """A route that Envoy rejects, as it was then, and why."""

    route: ProxiedRoute
    text: str


class Reservation(NamedTuple):
    """A released name: the namespace that may have it, and until when no other may."""

    namespace: str
    until: float


class Program:
    """`wanted` and `hosts` are set from outside, followed by `touch`. Run it once, as a task."""

    def __init__(
        self,
        address: ListenerConfig,
        ads: Ads,
        *,
        rules: HostRules = ANY_HOST,
        grace_seconds: float = GRACE_SECONDS,
        reserve_seconds: float = RESERVE_SECONDS,
    ) -> None:
        self.wanted: dict[str, ProxiedRoute] = {}
        """Routes by uid, as are those below."""
        self.hosts: dict[Service, Hosts] = {}
        self.accepted: dict[str, ProxiedRoute] = {}
        self.rejected: dict[str, Rejection] = {}
        self.records: Records = {}
        """Holders of names, and those that wait for one: as Envoy has it, or as `remember` was told."""
        self.problem = ""
        """Why no route is served; empty if nothing prevents it."""
        self.snapshot: Snapshot | None = None
        """The snapshot that Envoy has acknowledged."""
        self.endpoints: dict[str, str] = {}
        """Current or last owner of the requests of each cluster that Envoy has; not of those in `learn`."""
        self.on_change: Callable[[Iterable[str]], None] = lambda _: None
        """Told of routes whose state may be another now."""
        self.explain: Callable[[ProxiedRoute], Awaitable[str]] = _no_more
        """Finds Envoy's words on one route alone."""
        self.busy: Callable[[], Awaitable[set[str] | None]] = _unknown
        """Clusters that have requests now; None: nobody knows."""
        self._address = address
        self._ads = ads
        self._rules = rules
        self._reserve_seconds = reserve_seconds
        self._reserved: dict[ClaimedName, Reservation] = {}
        self._namespaces: dict[str, str] = {}
        """Namespaces of routes by uid, also of those that are just gone."""
        self._grace_seconds = grace_seconds
        self._kept: dict[str, float] = {}
        """Clusters that no route leads to, and until when at least."""
        self._left: dict[str, dict[str, None]] = {}
        """Clusters that a route led to before, by route."""
        self._dirty = asyncio.Event()

    def touch(self) -> None:
        """Note that the inputs have changed."""
        self._dirty.set()

    def learn(self, clusters: Iterable[str]) -> None:
        """An Envoy that runs already has these; they may be in use."""
        until = monotonic() + self._grace_seconds
        self._kept |= {each: until for each in clusters if parsed_name(each) is not None}

    def remember(self, records: Mapping[str, Mapping[ClaimedName, ClaimRecord]]) -> None:
        """Take up what a control plane before this one has written down of claims. Before `run`."""
        self.records = {uid: dict(each) for uid, each in records.items()}

    def idle(self) -> set[str]:
        """The clusters that no route leads to any more."""
        return {*self._kept}

    def kept(self, namespace: str, service: str) -> list[str]:
        """The clusters of a Service that no route leads to any more and that are still there."""
        return [each for each in self._kept if _service(each) == Service(namespace, service)]

    def left(self, uid: str) -> list[str]:
        """The clusters that a route led to before, and that are still there."""
        return [each for each in self._left.get(uid, ()) if each in self._kept]

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self._wait()
            self._dirty.clear()
            await self._expire()
            await self._settle()

    async def _wait(self) -> None:
        """Wait for a change, or for the time of the next cluster that may go."""
        seconds = RETRY_SECONDS if self.problem else None
        if self._kept:
            due = max(RETRY_SECONDS, min(self._kept.values()) - monotonic())
            seconds = min(due, seconds or due)
        if self._reserved:
            due = max(RETRY_SECONDS, min(each.until for each in self._reserved.values()) - monotonic())
            seconds = due if seconds is None else min(due, seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._dirty.wait()
        except TimeoutError:
            return

    async def _expire(self) -> None:
        """Remove clusters whose time is over and that have no requests. Unknown is not none."""
        due = {each for each, until in self._kept.items() if until <= monotonic()}
        busy = await self.busy() if due else None
        gone = due - busy if busy is not None else set()
        if gone:
            self._kept = {each: until for each, until in self._kept.items() if each not in gone}
            affected = [uid for uid, clusters in self._left.items() if gone & clusters.keys()]
            self.on_change(affected)

    async def _settle(self) -> None:
        """Offer the newest inputs to Envoy."""
        self.rejected = {uid: each for uid, each in self.rejected.items() if self.wanted.get(uid) == each.route}
        target = {uid: route for uid, route in self.wanted.items() if uid not in self.rejected}
        changes = [uid for uid in {**self.accepted, **target} if self.accepted.get(uid) != target.get(uid)]
        changes = [uid for uid in changes if uid not in self.rejected or uid not in self.wanted]
        if not await self._try(target, changes):
            await self._offer(self.accepted)  # for an Envoy that was restarted

    async def _try(self, target: dict[str, ProxiedRoute], changes: list[str]) -> bool:
        """Have these changes accepted or rejected; False where Envoy was last offered something that it refused."""
        candidate = dict(self.accepted)
        for uid in changes:
            if uid in target:
                candidate[uid] = target[uid]
            else:
                candidate.pop(uid, None)
        refusal = await self._offer(candidate)
        if refusal is None:
            return True
        if len(changes) <= 1:
            for uid in changes:
                if uid in target:
                    self.rejected[uid] = Rejection(target[uid], await self._worded(target[uid], refusal))
            self.on_change(changes)
            return False
        middle = len(changes) // 2
        await self._try(target, changes[:middle])
        return await self._try(target, changes[middle:])

    async def _worded(self, route: ProxiedRoute, refusal: str) -> str:
        """Why Envoy rejects a route; where it repeated the whole table, and not the reason, it is asked again."""
        if len(refusal) <= TEXT_MAX:
            return refusal
        return (await self.explain(route) or refusal)[-TEXT_MAX:]

    async def _offer(self, routes: dict[str, ProxiedRoute]) -> str | None:
        """None where Envoy has acknowledged it, else why not."""
        stay = {*self._kept, *(self.snapshot.referenced if self.snapshot else ())}
        kept = {each: _service(each) for each in stay}
        self._namespaces |= {uid: each.key.namespace for uid, each in {**self.wanted, **routes}.items()}
        coming = [each for uid, each in self.wanted.items() if uid not in self.rejected and routes.get(uid) != each]
        reserved = self._let_go([*routes.values(), *coming])
        namespaces = {name: each.namespace for name, each in reserved.items()}
        decision = decide(routes.values(), self.records, coming, self._rules, namespaces)
        snapshot = compiled(self._address, decision.claims, self.hosts, kept)
        verdict = await self._ads.offer(snapshot)
        if verdict.taken:
            held = {name for each in decision.records.values() for name, record in each.items() if record.held}
            self._reserved = {name: each for name, each in reserved.items() if name not in held}
            self._accept(routes, decision, snapshot)
            self._namespaces = {uid: each for uid, each in self._namespaces.items() if uid in decision.records}
            return None
        if verdict.type_url == LDS:
            self._say(verdict.text)
            return None  # no route's fault; what it has of the rest cannot be known before it listens
        return verdict.text

    def _let_go(self, claimants: Iterable[ProxiedRoute]) -> dict[ClaimedName, Reservation]:
        """Reserved names: those that were held and that nobody who held them claims any more, each for its time."""
        now = monotonic()
        claimed = {(each.uid, name) for each in claimants for name in names(each)}
        until = now + self._reserve_seconds
        fresh = {
            name: Reservation(self._namespaces[uid], until)
            for uid, records in self.records.items()
            for name, each in records.items()
            if each.held and (uid, name) not in claimed and uid in self._namespaces
        }
        return {name: each for name, each in (self._reserved | fresh).items() if each.until > now}

    def _accept(self, routes: dict[str, ProxiedRoute], decision: ClaimDecision, snapshot: Snapshot) -> None:
        before, self.accepted = self.accepted, dict(routes)
        until = monotonic() + self._grace_seconds
        for each in self.snapshot.referenced - snapshot.referenced if self.snapshot else ():
            self._kept[each] = until
        for each in snapshot.referenced:
            self._kept.pop(each, None)
        named = self.endpoints | {name: each.endpoint for each in routes.values() for name in each.clusters()}
        self.endpoints = {name: each for name, each in named.items() if name in snapshot.types[CDS].packed}
        was, self.snapshot = self.snapshot, snapshot
        changed = [uid for uid in {**before, **routes} if before.get(uid) != routes.get(uid)]
        for uid in changed:
            old, new = before.get(uid), routes.get(uid)
            if new is None:
                self._left.pop(uid, None)
            elif old is not None:
                self._left.setdefault(uid, {}).update(dict.fromkeys(old.clusters()))
        records, self.records = self.records, decision.records
        changed += [uid for uid in snapshot.claims if records.get(uid) != decision.records.get(uid)]
        if was is not None:
            claims, were = snapshot.claims, was.claims
            changed += [uid for uid in claims if uid in were and claims[uid].conflicts != were[uid].conflicts]
        self._tell_of_conflicts(was, snapshot)
        self._say("")
        self.on_change(changed)

    def _tell_of_conflicts(self, was: Snapshot | None, now: Snapshot) -> None:
        """Log conflicts with the holder of the name, for the administrator; a status names its own namespace only."""
        for uid, claim in now.claims.items():
            before = was.claims[uid].conflicts if was is not None and uid in was.claims else ()
            for each in claim.conflicts:
                if each not in before:
                    holder = self.wanted.get(each.holder)
                    key = "" if holder is None else str(holder.key)
                    _log.warning("a route does not get a name", route=str(claim.route.key), why=each.text, holder=key)

    def _say(self, problem: str) -> None:
        changed, self.problem = self.problem != problem, problem
        if changed:
            self.on_change(self.wanted)


async def _unknown() -> set[str] | None:
    return None


async def _no_more(_: ProxiedRoute) -> str:
    return ""


def _service(cluster: str) -> Service:
    parsed = parsed_name(cluster)
    assert parsed is not None
    return parsed[0]
