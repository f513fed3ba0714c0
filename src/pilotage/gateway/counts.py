"""Requests in flight to clusters that should get none any more: an upper bound, which only falls.

Envoy counts those that a server works on and those that wait for a connection. A third kind is in neither: a request
that waits to be sent again will go where routes led when it was matched, and one whose body still arrives looks the
same from outside. All that is known of these is how many there are in all: what clients have under way, less what
clusters have. After a route has changed, its old requests among them only get fewer, so they are never more than the
least that was seen since.

The numbers are read while they change, one after the other, so that one reading may miss a request that is there. One
that waits for its body is there for long: of three readings the largest counts.
"""

import asyncio
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple
from urllib.parse import quote

from pilotage.gateway.admin import Admin
from pilotage.gateway.inputs import parsed_name
from pilotage.gateway.resources import STAT_PREFIX

DOWNSTREAM = f"http.{STAT_PREFIX}.downstream_rq_active"
COUNTED = rf"cluster\..*\.upstream_rq_(pending_)?active|http\.{STAT_PREFIX}\.downstream_rq_active"
"""Pattern of the gauges that are read here. Envoy is told to keep them (`envoy`).

Each gauge of a cluster must count requests that no other one counts: their sum is subtracted from downstream.
"""
GAUGES = f"/stats?type=Gauges&filter={quote(f'^({COUNTED})$', safe='')}"
_COPIES = r"cluster\..*_copies[0-9]+\.upstream_rq_(total|5xx|active_overflow)"
COPIES = f"/stats?filter={quote(f'^({_COPIES})$', safe='')}"
READINGS = 3
READING_SECONDS = 0.01
"""Interval between two readings."""


_SOME = re.compile(rb"^cluster\.([^.\s]+)\.upstream_rq_(?:pending_)?active: ([1-9][0-9]*)\r?$", re.MULTILINE)
_NAMES = re.compile(rb"^cluster\.([^.\s]+)\.upstream_rq_active: ", re.MULTILINE)
_DOWNSTREAM = re.compile(rf"^{re.escape(DOWNSTREAM)}: ([0-9]+)\r?$".encode(), re.MULTILINE)


class GaugeReading(NamedTuple):
    """The gauges of Envoy at one moment."""

    under_way: dict[str, int]
    """Requests by cluster, where it has any: with a server, or waiting for a connection."""
    unrouted: int | None
    """Requests that no cluster has; None if Envoy does not tell, as before it has a listener."""


class CopyNumbers(NamedTuple):
    """Numbers of the copies that a cluster got."""

    sent: int
    errors: int
    overflow: int
    """Copies over the limit, which were not sent."""


def read(stats: bytes) -> GaugeReading:
    """Decode the answer to `GAUGES`. Lines without any request are many, and skipped."""
    under_way: dict[str, int] = {}
    of_clients = 0
    for name, value in _SOME.findall(stats):
        cluster = name.decode()
        parsed = parsed_name(cluster)
        if parsed is not None:
            under_way[cluster] = under_way.get(cluster, 0) + int(value)
            of_clients += int(value) if parsed.copies_max is None else 0  # a copy is no request of a client
    found = _DOWNSTREAM.search(stats)
    return GaugeReading(under_way, None if found is None else max(0, int(found[1]) - of_clients))


def clusters(stats: bytes) -> list[str]:
    """Clusters that Envoy has, by the answer to `GAUGES`."""
    return [each.decode() for each in _NAMES.findall(stats)]


def read_copies(stats: bytes) -> dict[str, CopyNumbers]:
    """Decode the answer to `COPIES`: numbers of copies by cluster. One over the limit counts as a 503 of its server."""
    numbers: dict[str, dict[str, int]] = {}
    for line in stats.decode(errors="replace").splitlines():
        name, _, value = line.rpartition(": ")
        cluster, _, stat = name.removeprefix("cluster.").rpartition(".upstream_rq_")
        if value.isdigit() and parsed_name(cluster) is not None:
            numbers.setdefault(cluster, {})[stat] = int(value)
    found = {}
    for cluster, each in numbers.items():
        overflow = each.get("active_overflow", 0)
        found[cluster] = CopyNumbers(each.get("total", 0), max(0, each.get("5xx", 0) - overflow), overflow)
    return found


class Counts:
    """Counts clusters from the moment at which they should get nothing more."""

    def __init__(self, admin: Admin) -> None:
        self.under_way: dict[str, int] = {}
        """The last reading, of all clusters."""
        self._admin = admin
        self._counted: dict[str, int | None] = {}
        """Number of requests by cluster that may still come from arriving bodies; None where nothing was read yet."""
        self._final: set[str] = set()
        self._live: set[str] = set()
        self._next: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    def begin(self, clusters: Iterable[str], live: Collection[str] = ()) -> None:
        """Count these from now on, if they are not counted yet. A route that led there has just been changed.

        Those that are `live` have no share of the requests, but get copies, or requests for one revision: zero is not
        final for them. When they are not live any more, they are counted anew.
        """
        for each in clusters:
            if each in self._live and each not in live:
                self.end([each])
            self._counted.setdefault(each, None)
            if each in live:
                self._live.add(each)
                self._final.discard(each)

    def settle(self, clusters: Iterable[str]) -> None:
        """Take these clusters as known to be idle: they were when the control plane ran before."""
        for each in clusters:
            self._counted.setdefault(each, 0)
            if each not in self._live:
                self._final.add(each)

    def end(self, clusters: Iterable[str]) -> None:
        """Stop counting these: they get requests again, or are gone."""
        for each in clusters:
            self._counted.pop(each, None)
            self._final.discard(each)
            self._live.discard(each)

    def of(self, cluster: str) -> int | None:
        """The most requests that there may be; None if it is not known yet. Zero is final.

        One that another route still leads to is not counted: it has what it has.
        """
        if cluster in self._final:
            return 0
        bound = self._counted.get(cluster, 0)
        return None if bound is None else bound + self.under_way.get(cluster, 0)

    def counted(self) -> set[str]:
        """The clusters that are counted."""
        return {*self._counted}

    async def refresh(self) -> None:
        """Read the gauges in a round that begins after this call; callers share it. Raises `AdminUnavailable`."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._round())
        await asyncio.shield(self._next)

    async def _round(self) -> None:
        async with self._one_at_a_time:
            self._next = None
            await self._read()

    async def _read(self) -> None:
        clusters = [*self._counted]
        most = 0
        for number in range(READINGS):
            if number:
                await asyncio.sleep(READING_SECONDS)
            now = read(await self._admin.get(GAUGES))
            if now.unrouted is None:
                return  # unknown: what was known before still holds
            most = max(most, now.unrouted)
        self.under_way = now.under_way
        for each in clusters:
            if each in self._counted:
                before = self._counted[each]
                bound = self._counted[each] = most if before is None else min(before, most)
                if bound + self.under_way.get(each, 0) == 0 and each not in self._live:
                    self._final.add(each)
