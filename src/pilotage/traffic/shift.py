"""Shift of requests from the mix of a route to another one: the next step, from the observed state.

    [old 100] → [old 100, new 0] → proven → [old 75, new 25] → proven → done
    [old 75, new 25] → [old 0, new 100] → proven, old drained → [new 100] → proven → copies → proven → done

A proxy learns of routes and of clusters separately. A service that enters a route with a weight may be one that the
proxy does not know yet, and one that leaves with a weight may be gone before the route is: both answer 503. So every
service comes and goes at weight 0, and nothing is taken further before the proxies have what is there now.

The rules:
- What the route says now is all the memory there is. An aborted shift, a change of mind in the middle and an edit by
  somebody else are other states of the same table, and go the same way.
- Each branch goes this way by itself, all of them at the same time. A branch that enters has the shares of the main
  branch at first, behind all others; one that leaves gets them at last: so neither coming nor going moves a request.
- Copies leave first and enter last, without a step through 0: some routers take 0 percent for all. They leave when
  the proxies have them: one that shows the route before them, as it is after them, would still load them later.
- Nothing is written that gives all services of a branch weight 0: routers take that for "share it" or for "refuse
  everything". A branch whose weights are all 0 serves nobody as meant, so there is no proof to wait for: it is put
  right at once.
- A service that does not exist serves nothing, and no proof of it will ever come: it is dropped at once.

No clock and no client here. `proven_seconds` is the caller's to measure; one that was started anew, and has forgotten,
begins with 0 and waits longer.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeAlias

from pilotage.traffic.contract import (
    WHOLE,
    Backend,
    Branch,
    Copies,
    ExpectedRoute,
    Header,
    Mix,
    Programming,
    RouteStatus,
    Stickiness,
)
from pilotage.traffic.drain import GRACE_SECONDS, SECONDS_MIN, DrainLimits, TrafficWait, undrained

POLL_SECONDS = 0.2
"""Interval at which proxies are asked during a shift."""
REJECTED_SECONDS = 5.0
"""Interval at which a refused route is checked again. A change of the route wakes its watchers anyway."""

_Headers: TypeAlias = tuple[Header, ...]
_Branches: TypeAlias = dict[_Headers, tuple[Backend, ...]]
"""Backends by headers, in order; the main branch has none, and is always there, if only empty."""
_MAIN: _Headers = ()


class ShiftTimeouts(NamedTuple):
    """Durations of one shift, in seconds."""

    settle_seconds: float = 5.0
    """Wait after a route is accepted, where no proxy can be asked. Nothing is verified by it."""
    drain_seconds: float = 30.0
    """Time for requests in flight to services that leave; they are cut off after that."""
    grace_seconds: float = GRACE_SECONDS
    """Time without requests before zero in flight is believed."""


DEFAULT_TIMEOUTS = ShiftTimeouts()


class WriteMix(NamedTuple):
    """A step: write this mix into the route."""

    mix: Mix


class Done(NamedTuple):
    """The last step: the route says what is wanted, and what it named before is drained or had its time."""

    verified: bool
    """Whether proxies were seen to have it."""


ShiftStep: TypeAlias = WriteMix | TrafficWait | Done


def next_step(
    now: Mix,
    wanted: Mix,
    status: RouteStatus,
    *,
    others: Collection[str] = (),
    proven_seconds: float = 0.0,
    weighted: bool = True,
    missing: Collection[str] = (),
    timeouts: ShiftTimeouts = DEFAULT_TIMEOUTS,
) -> ShiftStep:
    """The next step towards a route that says `wanted`, whose services must be ready to serve.

    `now` is what the route says, empty where there is none; `status` is about exactly that (`expected_route`);
    `proven_seconds` says for how long it has been PROGRAMMED, or ACCEPTED. `others` are services that still run and
    may have requests, whether or not the route names them. `weighted` is whether the router has weights; without them
    the switch is direct. `missing` are services that a fresh read has not found.
    """
    if not weighted and now != wanted:
        return WriteMix(wanted)
    wanted = _normal(wanted)
    present = _normal(now, set(missing) - wanted.services)
    copies = present.copies if status.programming is Programming.PENDING else _kept_copies(present, wanted)
    entered = _entered(present._replace(copies=copies), wanted)
    if entered != now:
        return WriteMix(entered)
    wait = unproven(status, proven_seconds, timeouts)
    if wait is not None:
        return wait
    given = _given(now, wanted)
    if given != now:
        return WriteMix(given)
    left = _left(now, wanted)
    if left != now:
        # Where nobody counts, the time for requests to end is given once, at the end.
        leaving = now.services - wanted.services
        wait = _undrained(status, leaving, proven_seconds, timeouts, uncounted_seconds=timeouts.grace_seconds)
        return wait or WriteMix(left)
    if now.copies != (copies := _all_copies(now, wanted)):
        return WriteMix(now._replace(copies=copies))
    wait = _undrained(status, set(others) - wanted.services, proven_seconds, timeouts)
    return wait or Done(status.programming is Programming.PROGRAMMED)


def first_mix(wanted: Mix) -> Mix:
    """The mix that a route is made with: everything as the main branch is wanted, as there is nothing to lose."""
    return _entered(Mix(), _normal(wanted))


def expected_route(
    namespace: str,
    host: str | None,
    path: str,
    now: Mix,
    wanted: Mix,
    *,
    others: Collection[str] = (),
    reachable: Collection[str] = (),
) -> ExpectedRoute:
    """The expected route of the proxies for a route that says `now`: to be observed for `next_step`.

    `others` are services of other revisions that still run. `reachable` are services that have replicas, so that
    proxies must know an address of those which the route names and which shall have a weight.
    """
    wants = {each.service for backends in _by_headers(wanted).values() for each in backends if each.weight}
    return ExpectedRoute(
        namespace,
        host or "",
        path,
        _normal(now),
        now.services | wanted.services | set(others),
        frozenset(wants & now.services & set(reachable)),
    )


def unproven(
    status: RouteStatus, proven_seconds: float, timeouts: ShiftTimeouts = DEFAULT_TIMEOUTS
) -> TrafficWait | None:
    """The wait until the route as it stands is taken for programmed; None: it is."""
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


# The states of a route on its way, in order


def _entered(now: Mix, wanted: Mix) -> Mix:
    """The same with all wanted services in it."""
    has, wants = _by_headers(now), _by_headers(wanted)
    main = has[_MAIN] or wants[_MAIN]
    entered = {
        headers: _with_entered(has.get(headers) or main, wants.get(headers, wants[_MAIN])) for headers in has | wants
    }
    return _mix(entered, now.copies, now.sticky)


def _given(now: Mix, wanted: Mix) -> Mix:
    """The same services with the wanted weights, in branches in the wanted order; those that leave are the last."""
    has, wants = _by_headers(now), _by_headers(wanted)
    given = {
        headers: _weighted(has[headers], wants.get(headers, wants[_MAIN]))
        for headers in (*wants, *(each for each in has if each not in wants))
    }
    return _mix(given, now.copies, wanted.sticky)


def _left(now: Mix, wanted: Mix) -> Mix:
    """The same without branches and services that are not wanted."""
    has, wants = _by_headers(now), _by_headers(wanted)
    keys = {headers: {each.key for each in backends} for headers, backends in wants.items()}
    left = {headers: tuple(each for each in has[headers] if each.key in keys[headers]) for headers in wants}
    return _mix(left, now.copies, now.sticky)


def _kept_copies(now: Mix, wanted: Mix) -> tuple[Copies, ...]:
    return tuple(each for each in now.copies if each in wanted.copies)


def _all_copies(now: Mix, wanted: Mix) -> tuple[Copies, ...]:
    return (*now.copies, *(each for each in wanted.copies if each not in now.copies))


def _with_entered(backends: tuple[Backend, ...], wanted: tuple[Backend, ...]) -> tuple[Backend, ...]:
    """The same with the wanted ones in it, and with a weight for somebody."""
    present = {each.key for each in backends}
    entered = (*backends, *(each._replace(weight=0) for each in wanted if each.key not in present))
    if any(each.weight for each in entered):
        return entered
    known = [each for each in wanted if each.key in present]
    one = max(known, key=lambda each: each.weight) if known else backends[0]
    return tuple(each._replace(weight=WHOLE if each.key == one.key else 0) for each in entered)


def _weighted(backends: tuple[Backend, ...], wanted: tuple[Backend, ...]) -> tuple[Backend, ...]:
    """The same backends with the wanted weights; 0 for those that are not wanted."""
    weights = {each.key: each.weight for each in wanted}
    return tuple(each._replace(weight=weights.get(each.key, 0)) for each in backends)


# A mix as branches by their headers


def _normal(mix: Mix, without: Collection[str] = ()) -> Mix:
    """The same with each service once in a branch, each branch and copy once, and without some services.

    Of a double entry, which only others write, the weights add up. A branch behind one with the same headers gets no
    request, so its services have weight 0.
    """
    found: _Branches = {_MAIN: ()}
    for headers, backends in (Branch(_MAIN, mix.backends), *mix.branches):
        key = tuple(sorted(set(headers)))
        kept = tuple(each for each in backends if each.service not in without)
        if found.get(key):
            kept = (*found[key], *(each._replace(weight=0) for each in kept))
        found[key] = _distinct(kept)
    copies = tuple(each for each in dict.fromkeys(mix.copies) if each.service not in without)
    branches = tuple(Branch(headers, backends) for headers, backends in found.items() if headers and backends)
    return Mix(found[_MAIN], branches, copies, mix.sticky)


def _distinct(backends: Iterable[Backend]) -> tuple[Backend, ...]:
    """One for each service and port, in order."""
    found: dict[tuple[str, int], Backend] = {}
    for each in backends:
        last = found.get(each.key)
        found[each.key] = each if last is None else last._replace(weight=last.weight + each.weight)
    return tuple(found.values())


def _by_headers(mix: Mix) -> _Branches:
    return {_MAIN: mix.backends} | {each.headers: each.backends for each in mix.branches}


def _mix(branches: _Branches, copies: tuple[Copies, ...], sticky: Stickiness | None) -> Mix:
    others = tuple(Branch(headers, backends) for headers, backends in branches.items() if headers)
    return Mix(branches[_MAIN], others, copies, sticky)


def _undrained(
    status: RouteStatus,
    leaving: Collection[str],
    proven_seconds: float,
    timeouts: ShiftTimeouts,
    *,
    uncounted_seconds: float | None = None,
) -> TrafficWait | None:
    """The wait until nothing is under way to the services that leave, or has had its time."""
    if not leaving:
        return None
    since = proven_seconds - (timeouts.settle_seconds if status.programming is Programming.ACCEPTED else 0.0)
    limits = DrainLimits(timeouts.drain_seconds, timeouts.grace_seconds, uncounted_seconds)
    in_flight = status.in_flight_to(leaving)
    wait = undrained(in_flight, since, limits)
    if wait is None or in_flight is None:
        return wait
    return wait._replace(seconds=min(wait.seconds, POLL_SECONDS))
