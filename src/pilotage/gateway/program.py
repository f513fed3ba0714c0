"""Programming of Envoy: offers snapshots one at a time, each until it is acknowledged or rejected.

A change that Envoy refuses must not hold up the others that came with it. So they are tried in halves until the ones at
fault are alone; each of these is rejected, with Envoy's own text, and what its route had before stays.

A request goes where routes led when it was matched: by path when its headers came, by model when its body had arrived.
It may wait then, to be sent again. So a cluster outlives its last reference by longer than any request waits, and stays
beyond that while it has requests.

All of it costs what a change changes, and not what there is: only routes that were touched are compared with what Envoy
has, and only those that share names with them are decided anew (`claim_book`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

import structlog

from pilotage.gateway.ads import Ads
from pilotage.gateway.claim_book import ClaimBook, ClaimChange
from pilotage.gateway.claims import ANY_HOST, Claim, ClaimedName, ClaimRecord, Records
from pilotage.gateway.hostnames import HostRules
from pilotage.gateway.inputs import Hosts, ProxiedRoute, Service, parsed_name
from pilotage.gateway.resources import UPLOAD_SECONDS_MAX
from pilotage.gateway.snapshot import CDS, LDS, ListenerConfig, Snapshot, SnapshotChange
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
        self.problem = ""
        """Why no route is served; empty if nothing prevents it."""
        self.snapshot: Snapshot | None = None
        """The snapshot that Envoy has acknowledged."""
        self.endpoints: dict[str, str] = {}
        """Current or last owner of the requests of each cluster that Envoy has; not of those in `learn`."""
        self.on_change: Callable[[Iterable[str], Iterable[str]], None] = lambda *_: None
        """Told of routes whose state may be another now, and of clusters whose share of requests may be."""
        self.explain: Callable[[ProxiedRoute], Awaitable[str]] = _no_more
        """Finds Envoy's words on one route alone."""
        self.busy: Callable[[], Awaitable[set[str] | None]] = _unknown
        """Clusters that have requests now; None: nobody knows."""
        self._ads = ads
        self._book = ClaimBook(rules, reserve_seconds)
        self._snapshot = Snapshot(address)
        self._grace_seconds = grace_seconds
        self._kept: dict[str, float] = {}
        """Clusters that no route leads to, and until when at least."""
        self._over: set[str] = set()
        """Clusters whose time is over, until Envoy has none of them any more."""
        self._left: dict[str, dict[str, None]] = {}
        """Clusters that a route led to before, by route."""
        self._touched: set[str] = set()
        self._moved: set[Service] = set()
        self._dirty = asyncio.Event()

    @property
    def records(self) -> Records:
        """Holders of names, and those that wait for one: as Envoy has it, or as `remember` was told."""
        return self._book.records

    def touch(self, route: str = "", service: Service | None = None) -> None:
        """Note that a route (by uid), or the addresses of a Service, have changed."""
        self._touched.update(filter(None, [route]))
        self._moved.update(filter(None, [service]))
        self._dirty.set()

    def learn(self, clusters: Iterable[str]) -> None:
        """An Envoy that runs already has these; they may be in use."""
        until = monotonic() + self._grace_seconds
        self._kept |= {each: until for each in clusters if parsed_name(each) is not None}

    def remember(self, records: Mapping[str, Mapping[ClaimedName, ClaimRecord]]) -> None:
        """Take up what a control plane before this one has written down of claims. Before `run`."""
        self._book.remember(records)

    def idle(self) -> set[str]:
        """The clusters that no route leads to any more."""
        return {*self._kept}

    def gets_requests(self, cluster: str) -> bool:
        """Whether a route leads requests to it, or Envoy does not have it."""
        weighted = any(cluster in self.accepted[uid].weighted() for uid in self._snapshot.leading_to.get(cluster, ()))
        return weighted or cluster not in self._snapshot.types[CDS].by_name

    def is_live(self, cluster: str) -> bool:
        """Whether a route leads copies of requests to it, or requests for one revision."""
        return any(cluster in self.accepted[uid].live() for uid in self._snapshot.leading_to.get(cluster, ()))

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
        for ends in (self._kept.values(), [each.until for each in self._book.reserved.values()]):
            if ends:
                due = max(RETRY_SECONDS, min(ends) - monotonic())
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
            self._over |= gone
            affected = [uid for uid, clusters in self._left.items() if gone & clusters.keys()]
            self.on_change(affected, ())

    async def _settle(self) -> None:
        """Offer the newest inputs to Envoy."""
        self._touched |= self._book.expire(monotonic())
        batch, self._touched = self._touched, set()
        for uid in batch:
            if uid in self.rejected and self.rejected[uid].route != self.wanted.get(uid):
                del self.rejected[uid]
            self._note(uid)
        changes = {uid: self.wanted.get(uid) for uid in batch if uid not in self.rejected}
        changes = {uid: each for uid, each in changes.items() if self.accepted.get(uid) != each}
        connected = self._book.connected(batch)
        if not await self._try(changes, connected):
            await self._offer({}, connected)  # addresses may have changed, and Envoy may have been restarted
        for uid in batch:
            self._note(uid)
        if self.problem:
            self._touched |= batch

    def _note(self, uid: str) -> None:
        """Note what a route claims, as Envoy has it and as it should have it."""
        self._book.note(uid, [each[uid] for each in (self.accepted, self.wanted) if uid in each])

    async def _try(self, changes: Mapping[str, ProxiedRoute | None], connected: frozenset[str]) -> bool:
        """Have these changes accepted or rejected; False where the last offer was refused."""
        refusal = await self._offer(changes, connected)
        if refusal is None:
            return True
        if len(changes) <= 1:
            for uid, route in changes.items():
                if route is not None:
                    self.rejected[uid] = Rejection(route, await self._worded(route, refusal))
            self.on_change(changes, ())
            return False
        halves, middle = [*changes], len(changes) // 2
        await self._try({uid: changes[uid] for uid in halves[:middle]}, connected)
        return await self._try({uid: changes[uid] for uid in halves[middle:]}, connected)

    async def _worded(self, route: ProxiedRoute, refusal: str) -> str:
        """Why Envoy rejects a route; where it repeated the whole table, and not the reason, it is asked again."""
        if len(refusal) <= TEXT_MAX:
            return refusal
        return (await self.explain(route) or refusal)[-TEXT_MAX:]

    async def _offer(self, changes: Mapping[str, ProxiedRoute | None], connected: frozenset[str]) -> str | None:
        """None where Envoy has acknowledged it, else why not. `connected` are the routes that may be affected."""
        offered = {uid: changes[uid] if uid in changes else self.accepted.get(uid) for uid in connected}
        there = [each for each in offered.values() if each is not None]
        coming = [
            self.wanted[uid]
            for uid, each in offered.items()
            if uid in self.wanted and uid not in self.rejected and self.wanted[uid] != each
        ]
        claims = self._book.decide(connected, there, coming, monotonic())
        made: dict[str, Claim | None] = dict.fromkeys(connected) | {
            each.route.uid: each for each in claims.decision.claims
        }
        moved, self._moved = self._moved, set()  # those that move from now on come with the next offer
        learned = self._kept if self.snapshot is None else ()
        change = self._snapshot.change(made, self.hosts, moved=moved, keep=learned, drop=self._over)
        verdict = await self._ads.offer(change.resources)
        if verdict.taken:
            self._accept(changes, claims, change)
            return None
        self._moved |= moved
        if verdict.type_url == LDS:
            self._say(verdict.text)
            return None  # no route's fault; what it has of the rest cannot be known before it listens
        return verdict.text

    def _accept(self, changes: Mapping[str, ProxiedRoute | None], claims: ClaimChange, change: SnapshotChange) -> None:
        """Take up what Envoy has acknowledged."""
        snapshot = self._snapshot
        conflicts = {uid: snapshot.claims[uid].conflicts for uid in change.claims if uid in snapshot.claims}
        records = {uid: self.records.get(uid) for uid in claims.uids}
        clusters = {*change.resources[CDS], *(name for uid in changes for name in self._clusters(uid))}
        self._over.clear()
        for uid, route in changes.items():
            self._replace(uid, route)
        clusters.update(name for uid in changes for name in self._clusters(uid))
        for uid in self._book.accept(claims):
            self.touch(route=uid)
        divided = {uid for uid, each in change.divisions.items() if snapshot.divisions.get(uid) != each}
        snapshot.apply(change)
        self.snapshot = snapshot
        self._keep(clusters)
        for each in claims.decision.claims:
            self._tell_of_conflicts(each, conflicts.get(each.route.uid, ()))
        changed = {*changes, *divided, *(uid for uid, each in records.items() if self.records.get(uid) != each)}
        for uid, were in conflicts.items():
            now = change.claims[uid]
            if now is not None and now.conflicts != were:
                changed.add(uid)
        self._say("")
        self.on_change(changed, clusters)

    def _clusters(self, uid: str) -> Iterable[str]:
        return self.accepted[uid].clusters() if uid in self.accepted else ()

    def _replace(self, uid: str, route: ProxiedRoute | None) -> None:
        old = self.accepted.pop(uid, None)
        if route is None:
            self._left.pop(uid, None)
            return
        self.accepted[uid] = route
        self.endpoints |= dict.fromkeys(route.clusters(), route.endpoint)
        if old is not None:
            self._left.setdefault(uid, {}).update(dict.fromkeys(old.clusters()))

    def _keep(self, clusters: Iterable[str]) -> None:
        """Give clusters that no route leads to any more their time."""
        until = monotonic() + self._grace_seconds
        for each in clusters:
            if each in self._snapshot.leading_to:
                self._kept.pop(each, None)
            elif each in self._snapshot.types[CDS].by_name:
                self._kept.setdefault(each, until)
            else:
                self.endpoints.pop(each, None)

    def _tell_of_conflicts(self, claim: Claim, before: Iterable[object]) -> None:
        """Log conflicts with the holder of the name, for the administrator; a status names its own namespace only."""
        for each in claim.conflicts:
            if each not in before:
                holder = self.wanted.get(each.holder)
                key = "" if holder is None else str(holder.key)
                _log.warning("a route does not get a name", route=str(claim.route.key), why=each.text, holder=key)

    def _say(self, problem: str) -> None:
        changed, self.problem = self.problem != problem, problem
        if changed:
            self.on_change(self.wanted, ())


async def _unknown() -> set[str] | None:
    return None


async def _no_more(_: ProxiedRoute) -> str:
    return ""


def _service(cluster: str) -> Service:
    parsed = parsed_name(cluster)
    assert parsed is not None
    return parsed[0]
