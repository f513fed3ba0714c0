"""Canary of Ingress-NGINX: a second Ingress with a weight, beside the main one. Its states, their order, its objects.

    main old → canary new 0 → canary new 25 → done
    main old, canary new 100 → main new, canary new 100 → canary new 0 → old drained → done

Once the route is done without a canary, the canary Ingress is torn down, and its Service after it.

The rules, which come from how this controller merges the two Ingresses:
- The same Service behind both is answered with 503. So the canary Ingress leads to a Service of its own, called like
  that of the revision with `-canary` behind it, with the same selector.
- Without servers behind the main Service nothing is routed, not even to a canary at 100. So the main Ingress moves only
  to a Service whose replicas answer, and the revision behind it keeps its replicas until the main Ingress has moved.
- A canary leads to another revision only at weight 0, where the main Ingress has all requests.
- One write at a time, to one of the two. The controller reads at most every 3.3 seconds, and a worker may miss the
  second one of two updates within a second: so writes are `WRITE_SECONDS` apart.
- Nobody tells whether the proxies have it, or what is under way: some time is given to each state, and none is called
  proven.

As in `shift`, the two objects are all the memory there is, and no clock and no client are here.
"""

from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from pilotage.api.names import ANNOTATION_CANARY_OF
from pilotage.kube import Json, Resource
from pilotage.teardown.snapshot.fields import dig
from pilotage.traffic.contract import WHOLE, Backend, Mix
from pilotage.traffic.drain import SECONDS_MIN, DrainLimits, TrafficWait, undrained
from pilotage.traffic.routers import RouteRequest
from pilotage.traffic.routers.ingress import ROUTER
from pilotage.traffic.shift import DEFAULT_TIMEOUTS, POLL_SECONDS, Done, ShiftTimeouts

INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False)
CONTROLLER = "k8s.io/ingress-nginx"
"""Controller of the IngressClasses whose Ingresses can have a canary. Others take it for a second route."""
WRITE_SECONDS = 4.0
"""Time between two writes of either Ingress."""
_SUFFIX = "-canary"
_ANNOTATION = "nginx.ingress.kubernetes.io/canary"


class IngressPair(NamedTuple):
    """The Services of the two Ingresses, by the names that they have without a canary."""

    main: Backend | None = None
    """None: there is no main Ingress, or it leads nowhere."""
    canary: Backend | None = None
    """Backend of the canary, with its weight; None: there is none that has any effect as it should."""

    @property
    def mix(self) -> Mix:
        """The mix that both together are."""
        if self.main is None:
            return Mix()
        whole = self.main._replace(weight=WHOLE)
        if self.canary is None or self.canary.key == self.main.key:
            return Mix((whole,))
        return Mix((whole._replace(weight=WHOLE - self.canary.weight), self.canary))


class WritePair(NamedTuple):
    """A step: write the one Ingress in which this pair differs from the present one."""

    pair: IngressPair


PairStep: TypeAlias = WritePair | TrafficWait | Done


def pair_problems(mix: Mix) -> list[str]:
    """Why two Ingresses cannot have a mix, in sentences for people; empty if they can."""
    found = ROUTER.problems(mix._replace(backends=mix.backends[:1]))
    if len(mix.backends) > 2:
        found.append("Ingress-NGINX has one canary for a rule, so a route of kind Ingress shares between two Services.")
    return found


def pair_step(
    now: IngressPair,
    wanted: Mix,
    *,
    state_seconds: float,
    write_seconds: float,
    others: Collection[str] = (),
    reachable: Collection[str] = (),
    missing: Collection[str] = (),
    timeouts: ShiftTimeouts = DEFAULT_TIMEOUTS,
) -> PairStep:
    """The next step towards Ingresses that say `wanted`.

    `state_seconds` says for how long they have been as they are `now`, `write_seconds` how long ago the last write
    was. `others`, `reachable` and `missing` are Services: those of other revisions that still run, those with replicas
    that answer, and those that a fresh read has not found.
    """
    following = next_pair(now, wanted, missing)
    is_broken = now.main is None or now.main.service in missing
    if (wait := _unsettled(state_seconds, write_seconds, timeouts, is_urgent=is_broken)) is not None:
        return wait
    if following.main != now.main and following.main is not None and not is_broken:
        service = following.main.service
        if service not in reachable:
            return TrafficWait(f"service/{service} has no replicas that answer, so the Ingress stays", POLL_SECONDS)
    if following != now:
        return WritePair(following)
    if not set(others) - wanted.services:
        return Done(verified=False)
    limits = DrainLimits(timeouts.drain_seconds, timeouts.grace_seconds)
    return undrained(None, state_seconds - timeouts.settle_seconds, limits) or Done(verified=False)


def next_pair(now: IngressPair, wanted: Mix, missing: Collection[str] = ()) -> IngressPair:
    """The next state on the way to `wanted`, in which one of the two differs; the same one at the end of the way.

    A canary that is not wanted ends at weight 0.
    """
    main, canary = now
    by_key = {each.key: each for each in wanted.backends}
    heaviest = max(wanted.backends, key=lambda each: each.weight)
    if main is None or main.service in missing:
        return now._replace(main=heaviest._replace(weight=WHOLE))
    if main.key not in by_key:
        goal = by_key[canary.key] if canary is not None and canary.key in by_key else heaviest
        goal = goal._replace(weight=WHOLE)
        return IngressPair(goal, canary) if canary == goal else IngressPair(main, _nearer(canary, goal))
    other = next((each for each in wanted.backends if each.key != main.key), None)
    if other is not None:
        return IngressPair(main, _nearer(canary, other))
    return IngressPair(main, canary._replace(weight=0) if canary is not None else None)


def canaries(now: IngressPair, wanted: Mix) -> list[Backend]:
    """The backends that the canary Ingress has on the way to `wanted`, and at its end; none: it is not needed."""
    main = now.main or next_pair(now, wanted).main
    found = [each for each in wanted.backends if main is None or each.key != main.key]
    return [*found, now.canary] if found and now.canary is not None else found


def settling(now: IngressPair, wanted: Mix) -> IngressPair:
    """The state that time is given to: at the end of a way, a canary at weight 0 may go, and nothing begins anew."""
    main, canary = now
    if main is None or canary is None or canary.weight or {main.key} != {each.key for each in wanted.backends}:
        return now
    return IngressPair(main)


def read_pair(main: Json | None, canary: Json | None) -> IngressPair:
    """The pair that two Ingresses are, ours or changed by somebody else; None: one that is not there."""
    backends = ROUTER.mix(main).backends if main is not None else ()
    return IngressPair(backends[0] if backends else None, _read_canary(canary) if canary is not None else None)


def canary_ingress(request: RouteRequest, canary: Backend) -> Json:
    """The canary Ingress of a route."""
    served = canary._replace(service=canary_service_name(canary.service), weight=WHOLE)
    made = ROUTER.manifest(request._replace(name=canary_name(request.name), mix=Mix((served,))))
    made["metadata"]["annotations"] |= {
        _ANNOTATION: "true",
        f"{_ANNOTATION}-weight": str(canary.weight),
        f"{_ANNOTATION}-weight-total": str(WHOLE),
        ANNOTATION_CANARY_OF: request.name,
    }
    return made


def canary_name(name: str) -> str:
    """The name of the canary Ingress beside a main one."""
    return name + _SUFFIX


def canary_service_name(service: str) -> str:
    """The name of the Service behind a canary Ingress, for the Service of a revision."""
    return service + _SUFFIX


def _nearer(canary: Backend | None, goal: Backend) -> Backend:
    """The next state of the canary Ingress: it changes its backend at weight 0 only."""
    if canary is None:
        return goal._replace(weight=0)
    if canary.key == goal.key:
        return goal
    return canary._replace(weight=0) if canary.weight else goal._replace(weight=0)


def _unsettled(state: float, write: float, timeouts: ShiftTimeouts, *, is_urgent: bool) -> TrafficWait | None:
    left = max(WRITE_SECONDS - write, 0.0 if is_urgent else timeouts.settle_seconds - state)
    text = "accepted; nobody tells whether nginx has it, so some time is given to it"
    return TrafficWait(text, max(left, SECONDS_MIN)) if left > 0 else None


def _read_canary(obj: Json) -> Backend | None:
    annotations = dig(obj, "metadata", "annotations")
    backends = ROUTER.mix(obj).backends
    if not isinstance(annotations, dict) or annotations.get(_ANNOTATION) != "true" or len(backends) != 1:
        return None
    weight, service = str(annotations.get(f"{_ANNOTATION}-weight")), backends[0].service
    if weight not in map(str, range(WHOLE + 1)) or not service.endswith(_SUFFIX):
        return None
    return backends[0]._replace(service=service.removesuffix(_SUFFIX), weight=int(weight))
