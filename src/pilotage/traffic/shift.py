"""Shift of all requests from the Services that a route names to one: the next step, from the observed state.

    [old 100] → [old 100, new 0] → proven → [old 0, new 100] → proven, old drained → [new 100] → proven → done

A proxy learns of routes and of clusters separately. A service that enters a route with a weight may be one that the
proxy does not know yet, and one that leaves with a weight may be gone before the route is: both answer 503. So every
service comes and goes at weight 0, and nothing is taken further before the proxies have what is there now.

The rules:
- What the route says now is all the memory there is. An aborted shift, a change of mind in the middle and an edit by
  somebody else are other states of the same table, and go the same way.
- Nothing is written that gives all services weight 0: routers take that for "share it" or for "refuse everything".
- A route whose weights are all 0 serves nobody as meant, so there is no proof to wait for: it is put right at once.
- A service that does not exist serves nothing, and no proof of it will ever come: it is dropped at once.

No clock and no client here. `proven_seconds` is the caller's to measure; one that was started anew, and has forgotten,
begins with 0 and waits longer.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from pilotage.traffic.contract import WHOLE, Backend, ExpectedRoute, Programming, RouteStatus
from pilotage.traffic.drain import GRACE_SECONDS, SECONDS_MIN, DrainLimits, TrafficWait, undrained

POLL_SECONDS = 0.2
"""Interval at which proxies are asked during a shift."""
REJECTED_SECONDS = 5.0
"""Interval at which a refused route is checked again. A change of the route wakes its watchers anyway."""


class ShiftTimeouts(NamedTuple):
    """Durations of one shift, in seconds."""

    settle_seconds: float = 5.0
    """Wait after a route is accepted, where no proxy can be asked. Nothing is verified by it."""
    drain_seconds: float = 30.0
    """Time for requests in flight to the old backends; they are cut off after that."""
    grace_seconds: float = GRACE_SECONDS
    """Time without requests before zero in flight is believed."""


DEFAULT_TIMEOUTS = ShiftTimeouts()


class WriteBackends(NamedTuple):
    """A step: write these backends into the route."""

    backends: tuple[Backend, ...]


class Done(NamedTuple):
    """The last step: the route names the target alone, and what it named before is drained or had its time."""

    verified: bool
    """Whether proxies were seen to have it."""


ShiftStep: TypeAlias = WriteBackends | TrafficWait | Done


def next_step(
    backends: Sequence[Backend],
    target: Backend,
    status: RouteStatus,
    *,
    leaving: bool,
    proven_seconds: float = 0.0,
    weighted: bool = True,
    missing: Collection[str] = (),
    timeouts: ShiftTimeouts = DEFAULT_TIMEOUTS,
) -> ShiftStep:
    """The next step so that `target` (whatever its weight) gets everything. It must be ready to serve.

    `backends` is what the route says, empty where there is none; `status` is about exactly that, and its `in_flight`
    about all services but the target; `proven_seconds` says for how long it has been PROGRAMMED, or ACCEPTED.
    `leaving`: something else still runs that may have requests, whether or not the route still names it.
    `weighted` is whether the router has weights; without them the switch is direct. `missing` are services that a
    fresh read has not found.
    """
    named = _distinct(each for each in backends if each.service not in missing or each.key == target.key)
    everything = (target._replace(weight=WHOLE),)
    if not named or (not weighted and named != everything):
        return WriteBackends(everything)
    entered = _entered(named, target)
    if len(named) < len(backends) or named != entered:
        return WriteBackends(entered)
    wait = _unproven(status, proven_seconds, timeouts)
    if wait is not None:
        return wait
    given = tuple(each._replace(weight=WHOLE if each.key == target.key else 0) for each in named)
    if named != given:
        return WriteBackends(given)
    if named != everything:
        # Where nobody counts, the time for requests to end is given once, at the end.
        return _undrained(status, proven_seconds, timeouts, uncounted_seconds=timeouts.grace_seconds) or WriteBackends(
            everything
        )
    wait = _undrained(status, proven_seconds, timeouts) if leaving else None
    return wait or Done(status.programming is Programming.PROGRAMMED)


def expected_route(
    namespace: str,
    host: str | None,
    path: str,
    backends: Sequence[Backend],
    target: Backend,
    *,
    others: Collection[str] = (),
    reachable: bool = True,
) -> ExpectedRoute:
    """The expected route of the proxies for a route that says `backends`: to be observed for `next_step`.

    `others` are services of other revisions that still run. `reachable`: the target has replicas, so that proxies must
    know an address of it.
    """
    counted = {each.service for each in backends} | set(others)
    named = target.key in {each.key for each in backends}
    return ExpectedRoute(
        namespace,
        host or "",
        path,
        _distinct(backends),
        frozenset(counted - {target.service}),
        frozenset({target.service} if reachable and named else ()),
    )


def _distinct(backends: Iterable[Backend]) -> tuple[Backend, ...]:
    """One for each service and port, in order. Of a double entry, which only others write, the weights add up."""
    weights: dict[tuple[str, int], int] = {}
    for each in backends:
        weights[each.key] = weights.get(each.key, 0) + each.weight
    return tuple(Backend(service, port, weight) for (service, port), weight in weights.items())


def _entered(named: tuple[Backend, ...], target: Backend) -> tuple[Backend, ...]:
    """The same with the target in it, and with a weight for somebody."""
    present = any(each.key == target.key for each in named)
    if not present:
        named = (*named, target._replace(weight=0))
    if any(each.weight for each in named):
        return named
    first = target.key if present else named[0].key
    return tuple(each._replace(weight=WHOLE if each.key == first else 0) for each in named)


def _unproven(status: RouteStatus, proven_seconds: float, timeouts: ShiftTimeouts) -> TrafficWait | None:
    """The wait until the route as it stands is taken for programmed."""
    match status.programming:
        case Programming.PROGRAMMED:
            return None
        case Programming.ACCEPTED:
            left = timeouts.settle_seconds - proven_seconds
            text = "accepted; no proxy can be asked, so some time is given to it"
            return None if left <= 0 else TrafficWait(text, max(left, SECONDS_MIN))
        case Programming.PENDING:
            return TrafficWait(status.text or "the proxies do not have it yet", POLL_SECONDS)
        case Programming.REJECTED:
            return TrafficWait(f"rejected: {status.text}", REJECTED_SECONDS)


def _undrained(
    status: RouteStatus, proven_seconds: float, timeouts: ShiftTimeouts, *, uncounted_seconds: float | None = None
) -> TrafficWait | None:
    """The wait until nothing is under way to all but the target, or has had its time."""
    since = proven_seconds - (timeouts.settle_seconds if status.programming is Programming.ACCEPTED else 0.0)
    limits = DrainLimits(timeouts.drain_seconds, timeouts.grace_seconds, uncounted_seconds)
    wait = undrained(status.in_flight, since, limits)
    if wait is None or status.in_flight is None:
        return wait
    return wait._replace(seconds=min(wait.seconds, POLL_SECONDS))
