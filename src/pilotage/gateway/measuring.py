"""Sums over the requests of routes that are measured, by stratum and Service, from the lines that Envoy writes. Pure.

A line names the stratum by what its route said when the request was matched, so a request belongs to the shares that
chose its server, however late it ends. Of requests that are under way Envoy writes a line each second: a server that
hangs is seen before its clients give up.
"""

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from pilotage.api.measured import BINS, bin_of
from pilotage.gateway.counts import CopyNumbers
from pilotage.gateway.division import RouteDivision, stratum_name
from pilotage.gateway.inputs import ProxiedRoute, copies_name
from pilotage.gateway.measured_log import REFUSED, RequestLine
from pilotage.kube import Json
from pilotage.kube.wire import format_time

STRATA_MAX = 10
UNHEARD_SECONDS = 5.0
"""A request under way without a line for so long is over: Envoy has been restarted."""
CLOCK_SECONDS = 0.2
"""Time by which an acknowledgement may be noted late: a request that began shortly before belongs to it already."""


class _Sums:
    """Sums over requests: of one Service, or of one unit of it."""

    def __init__(self) -> None:
        self.n = self.errors = self.gave_up = 0
        self.ttft, self.rate = _Logs(), _Logs()
        self.first: Counter[int] = Counter()
        self.none: Counter[int] = Counter()

    def add(self, line: RequestLine) -> None:
        """Add a request that has ended."""
        self.n += 1
        self.errors += line.failed
        self.gave_up += line.gave_up
        if line.gave_up:
            self.none[bin_of(line.age)] += 1
        elif line.first is not None and line.status < REFUSED:
            self.first[bin_of(line.first)] += 1
            self.ttft.add(line.first)
            if line.tokens is not None and line.tokens > 1 and line.last is not None and line.last > line.first:
                self.rate.add((line.tokens - 1) / (line.last - line.first))


class _Logs:
    def __init__(self) -> None:
        self.n, self.sum, self.squares = 0.0, 0.0, 0.0

    def add(self, value: float) -> None:
        self.put(math.log(max(value, 1e-6)))

    def put(self, logarithm: float) -> None:
        self.n += 1
        self.sum += logarithm
        self.squares += logarithm * logarithm

    def written(self) -> Json:
        return {"count": self.n, "sum": round(self.sum, 3), "squares": round(self.squares, 3)}


class _Stratum:
    """The sums of one stratum."""

    def __init__(
        self,
        name: str,
        version: str,
        since: dt.datetime,
        percents: Mapping[str, float],
        *,
        keyed: bool,
        warmup_seconds: int = 0,
    ) -> None:
        self.name, self.version, self.since = name, version, since
        self.warmup_seconds = warmup_seconds
        self._left_out: Counter[str] = Counter()
        self._until = since
        self._last: Json = {}
        self.percents = percents
        self.missed = 0.0
        self._services: dict[str, _Sums] = {}
        self._units: dict[str, dict[int, _Sums]] | None = {} if keyed else None

    def add(self, line: RequestLine) -> None:
        if self._is_warmup(line):
            self._left_out[line.service] += 1
            return
        self._services.setdefault(line.service, _Sums()).add(line)
        if self._units is not None and line.bucket is not None:
            self._units.setdefault(line.service, {}).setdefault(line.bucket, _Sums()).add(line)

    def _is_warmup(self, line: RequestLine) -> bool:
        """Whether a request began in the warm-up, in which a side is still cold."""
        return line.start < self.since.timestamp() + self.warmup_seconds

    def written(self, under_way: Iterable[RequestLine], now: dt.datetime) -> Json:
        """The numbers, with the time of the last ones: as long as none changes, the result is the same."""
        numbers = self._numbers(under_way)
        if numbers != self._last:
            self._last, self._until = numbers, now
        return {"version": self.version, "since": format_time(self.since), "until": format_time(self._until), **numbers}

    def _numbers(self, under_way: Iterable[RequestLine]) -> Json:
        waiting: dict[str, list[RequestLine]] = {}
        for each in under_way:
            waiting.setdefault(each.service, []).append(each)
        services = sorted({*self.percents, *self._services, *self._left_out, *waiting})
        return {
            "missedSeconds": round(self.missed, 3),
            "backends": [self._backend(each, waiting.get(each, [])) for each in services[:16]],
        }

    def _backend(self, service: str, waiting: list[RequestLine]) -> Json:
        sums = self._services.get(service, _Sums())
        found: Json = {
            "service": service,
            "weight": round(self.percents.get(service, 0.0), 3),
            "leftOut": self._left_out[service],
            "underWay": len(waiting),
        }
        stuck = Counter(bin_of(each.age) for each in waiting if each.first is None and not self._is_warmup(each))
        if self._units is None:
            return found | {"requests": _written(sums, stuck)}
        plain = {"count": sums.n, "errors": sums.errors, "gaveUp": sums.gave_up}
        return found | {"requests": plain, "units": _by_unit([*self._units.get(service, {}).values()], stuck)}


def _written(sums: _Sums, stuck: Counter[int]) -> Json:
    return {
        "count": sums.n,
        "errors": sums.errors,
        "gaveUp": sums.gave_up,
        "ttft": sums.ttft.written(),
        "tokensPerSecond": sums.rate.written(),
        "firstToken": _histogram(sums.first),
        "noToken": _histogram(sums.none + stuck),
    }


def _by_unit(units: list[_Sums], stuck: Counter[int]) -> Json:
    """Each unit once, with its own shares and means. Requests under way are counted as they are: they have no end."""
    ttft, rate = _Logs(), _Logs()
    first: dict[int, float] = {}
    none: dict[int, float] = dict(stuck)
    for each in units:
        for logs, own in ((ttft, each.ttft), (rate, each.rate)):
            if own.n:
                logs.put(own.sum / own.n)
        for bins, mine in ((first, each.first), (none, each.none)):
            for bin_, number in mine.items():
                bins[bin_] = bins.get(bin_, 0.0) + number / each.n
    return {
        "count": len(units),
        "errors": round(sum(each.errors / each.n for each in units), 3),
        "gaveUp": round(sum(each.gave_up / each.n for each in units), 3),
        "ttft": ttft.written(),
        "tokensPerSecond": rate.written(),
        "firstToken": _histogram(first),
        "noToken": _histogram(none),
    }


def _histogram(counts: Mapping[int, float]) -> Json:
    """Counts without zeros at both ends."""
    bins = [each for each in range(BINS) if counts.get(each)]
    if not bins:
        return {"first": 0, "counts": []}
    return {"first": bins[0], "counts": [round(counts.get(each, 0), 3) for each in range(bins[0], bins[-1] + 1)]}


class Measuring:
    """The strata of all routes that are measured."""

    def __init__(self) -> None:
        self._strata: dict[str, list[_Stratum]] = {}
        """Strata by the uid of the route, the oldest first."""
        self._under_way: dict[str, tuple[RequestLine, float]] = {}
        """The last line of each stream that has not ended, and when it was read."""
        self.copies: dict[str, CopyNumbers] = {}
        """Numbers of copies by cluster, as they were last read."""
        self._told = self.copies
        self._reports: dict[str, list[Json]] = {}
        self._earlier: dict[str, list[Json]] = {}
        """Reports of a route from before this process began."""

    @property
    def uids(self) -> set[str]:
        """Routes that are measured."""
        return {*self._strata}

    def programmed(
        self,
        route: ProxiedRoute,
        division: RouteDivision,
        version: str,
        now: dt.datetime,
        earlier: Callable[[], list[Json]] = list,
    ) -> None:
        """Note what Envoy has acknowledged of a route: a new stratum where the shares are others.

        `earlier`: what was reported of the route before, for one that is not known yet.
        """
        if not route.measure:
            self.forget(route.uid)
            return
        if route.uid not in self._strata:
            self._earlier[route.uid] = earlier()
        strata = self._strata.setdefault(route.uid, [])
        for each in strata:
            each.warmup_seconds = route.warmup_seconds
        for branch, shares in enumerate(division.shares):
            name = stratum_name(route, division, branch)
            current = next((each for each in reversed(strata) if _branch(each.name) == str(branch)), None)
            if shares and (current is None or current.name != name):
                taken = {each["version"] for each in self._earlier[route.uid]} | {each.version for each in strata}
                labelled = _unique(f"{version}/{branch}" if branch else version, taken)
                keyed = route.assign is not None
                warmup = route.warmup_seconds
                percents = division.percents(branch)
                strata.append(_Stratum(name, labelled, now, percents, keyed=keyed, warmup_seconds=warmup))
        del strata[:-STRATA_MAX]

    def forget(self, uid: str) -> None:
        """Forget a route that is gone, or not measured any more."""
        self._strata.pop(uid, None)
        self._reports.pop(uid, None)
        self._earlier.pop(uid, None)

    def take(self, line: RequestLine, now: float) -> None:
        """Add what a line says."""
        if not line.ended:
            self._under_way[line.stream] = (line, now)
            return
        self._under_way.pop(line.stream, None)
        stratum = self._of(line)
        if stratum is not None and (line.received or "DC" not in line.flags):  # else the client did not even ask
            stratum.add(line)

    def miss(self, seconds: float) -> None:
        """Note that requests may not have been counted for so long."""
        for strata in self._strata.values():
            newest = {_branch(each.name): each for each in strata}
            for each in newest.values():
                each.missed += seconds

    def publish(self, now: dt.datetime, monotonic: float) -> set[str]:
        """Write the reports anew; returns the routes whose report is another one."""
        heard = {name: each for name, each in self._under_way.items() if monotonic - each[1] < UNHEARD_SECONDS}
        self._under_way = heard
        waiting: dict[int, list[RequestLine]] = {}
        for line, _ in heard.values():
            if (stratum := self._of(line)) is not None:
                waiting.setdefault(id(stratum), []).append(line)
        before, self._reports = self._reports, {}
        for uid, strata in self._strata.items():
            written = [each.written(waiting.get(id(each), ()), now) for each in strata]
            self._reports[uid] = [*self._earlier.get(uid, ()), *written][-STRATA_MAX:]
        changed = {uid for uid, each in self._reports.items() if before.get(uid) != each}
        if self.copies != self._told:
            self._told = self.copies
            changed |= self.uids
        return changed

    def report(self, uid: str) -> list[Json]:
        """The report of a route that was last published."""
        return self._reports.get(uid, [])

    def copied(self, route: ProxiedRoute) -> list[Json]:
        """Numbers of the copies of a route, by Service."""
        found = []
        for each in route.copies:
            numbers = self.copies.get(copies_name(route.key.namespace, each))
            if numbers is not None:
                found.append({"service": each.service, **numbers._asdict()})
        return found

    def _of(self, line: RequestLine) -> _Stratum | None:
        """The stratum of a request: of two with the same shares, the one in which it began."""
        strata = [each for each in self._strata.get(line.stratum.partition("/")[0], ()) if each.name == line.stratum]
        begun = [each for each in strata if each.since.timestamp() <= line.start + CLOCK_SECONDS]
        return begun[-1] if begun else None


def _branch(name: str) -> str:
    return name.split("/")[1]


def _unique(version: str, taken: set[str]) -> str:
    """The version, with a number where an earlier stratum had the same one."""
    number = 2
    found = version
    while found in taken:
        found, number = f"{version}-{number}", number + 1
    return found
