"""Sums over the requests of a GatewayRoute, as the gateway measures them and as an analysis compares them.

A stratum is a span of time in which the shares were the same: it begins when Envoy has acknowledged a version with
other shares, and ends when it has acknowledged the next one. Requests belong to the stratum in which they began. Only
Services of one stratum are compared with each other.

Numbers are sums, so that two reports differ by what happened between them, and no sample is kept. Writers round sums to
three digits after the point and cut zeros off a histogram at both ends: ten strata of four Services with
10,000 requests each take less than 20 kB.
"""

import math
from typing import Annotated

from msgspec import Meta, field

from pilotage.api.base import Schema, Timestamp, map_list

LARGEST = 10**15
"""Bound on every number: sums of more than that lose the single request."""
Number = Annotated[float, Meta(ge=0, le=LARGEST)]
BINS = 64
"""Bins of a histogram of seconds. The upper edge of bin i is 2^((i - 28) / 4) s: 1, 2, 4, 8 s are edges; the first bin
begins at 0, and the last one has no end."""
_ONE_SECOND = 28
_BINS_PER_OCTAVE = 4
UNITS_MAX = 1024
"""Buckets that keys of `assign.by: Key` are hashed into, by another hash than the one that assigns them. A bucket is a
unit: its requests are counted as one number."""


def bin_of(seconds: float) -> int:
    """The bin that a duration belongs to. A duration that equals an upper edge belongs to the bin below it."""
    if seconds <= 0:
        return 0
    return min(max(math.ceil(_BINS_PER_OCTAVE * math.log2(seconds) - 1e-9) + _ONE_SECOND, 0), BINS - 1)


def upper_edge(bin_: int) -> float:
    """The longest duration, in seconds, that belongs to a bin."""
    return math.inf if bin_ >= BINS - 1 else 2 ** ((bin_ - _ONE_SECOND) / _BINS_PER_OCTAVE)


class LogSums(Schema, frozen=True):
    """Sums of the natural logarithms of a quantity."""

    n: Number = field(default=0, name="count")
    """Number of values."""
    sum: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] = 0
    """Sum of the logarithms."""
    squares: Number = 0
    """Sum of the squares of the logarithms."""


class Histogram(Schema, frozen=True):
    """Histogram of durations in 64 logarithmic bins, four to a factor of two."""

    first: Annotated[int, Meta(ge=0, le=BINS - 1)] = 0
    """Bin of the first count. Bins before it are empty."""
    counts: Annotated[list[Number], Meta(max_length=BINS)] = []
    """Counts, bin by bin. Bins after the last count are empty."""

    @property
    def n(self) -> float:
        """Number of values."""
        return sum(self.counts)

    def above(self, bin_: int) -> float:
        """The number of values in the bins after this one."""
        return sum(self.counts[max(0, bin_ + 1 - self.first) :])


class Tally(Schema, frozen=True):
    """Numbers of one Service in one stratum.

    Counted by unit, `count` is the number of units, and each unit adds its own share of errors, its own mean of
    logarithms, its own share in each bin: a unit counts once, however many requests it had.
    """

    n: Number = field(default=0, name="count")
    """Number of requests that have ended, or of units that had one."""
    errors: Number = 0
    """Requests that ended with a status of 400 or above, or were reset by the server."""
    gave_up: Number = 0
    """Requests that the client ended before the first token. They are not among the errors."""
    ttft: LogSums = LogSums()
    """Time to the first token, in seconds."""
    tokens_per_second: LogSums = LogSums()
    """Tokens per second after the first one, where the answer says how many there were."""
    first_token: Histogram = Histogram()
    """Time to the first token, of requests that had one."""
    no_token: Histogram = Histogram()
    """Time without a first token, of requests that still wait for one or gave up."""


class MeasuredBackend(Schema, frozen=True, kw_only=True):
    """Numbers of one Service in one stratum, and its share."""

    service: Annotated[str, Meta(min_length=1, max_length=63)]
    """Name of the Service."""
    weight: Annotated[float, Meta(ge=0, le=100)]
    """Percentage of the requests that Envoy sends there: the effective share, which differs from the route's weight
    while a Service has no server."""
    left_out: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Requests that began during the warm-up. They are in no other number."""
    under_way: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Requests of this stratum that have not ended."""
    requests: Tally = Tally()
    """Numbers by request. If assigned by key: `count`, `errors` and `gaveUp` only."""
    units: Tally | None = None
    """Numbers by unit. Set if requests are assigned by key."""


class Stratum(Schema, frozen=True, kw_only=True):
    """Span of time in which the shares were the same."""

    version: Annotated[str, Meta(min_length=1, max_length=253)]
    """First version of Envoy's configuration with these shares."""
    since: Timestamp
    """Time at which Envoy acknowledged it."""
    until: Timestamp
    """Time of the last numbers."""
    missed_seconds: Number = 0
    """Seconds in which requests may have gone uncounted, such as while Envoy restarted."""
    backends: Annotated[list[MeasuredBackend], Meta(max_length=16, extra_json_schema=map_list("service"))] = []
    """Numbers of each Service."""


Measured = Annotated[
    list[Stratum],
    Meta(
        description="Sums over the requests, by stratum, the oldest first. Written while an analysis asks for them.",
        max_length=10,
        extra_json_schema=map_list("version"),
    ),
]
