"""From any mix to any other, with proxies that learn late: no step does harm, and the shift always ends.

Two models. In the first, anything may be written in the route, and any answer may come: each single write keeps the
rules. In the second, two proxies load versions of the route and of the clusters independently, each at its own time,
and serve requests all the while: none is sent where a proxy knows nobody, and nothing is let go of that one still has.

The rules of the planner are changed one by one at the end, each with a story by which one of the models finds it.
"""

from __future__ import annotations

import types
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.traffic import shift
from pilotage.traffic.contract import (
    WHOLE,
    Backend,
    Branch,
    Copies,
    Header,
    Mix,
    Programming,
    RouteStatus,
    Stickiness,
)

SERVICES = ("a", "b", "c", "d")
HEADERS = ((Header("x-team", "one"),), (Header("x-team", "two"),), (Header("x-team", "two"), Header("x-tier", "b")))
LONG = 1000.0
STEPS_MAX = 12
SECONDS = 1.5
"""Time between two steps of a shift that nothing holds up: long enough for the grace period."""

port = st.sampled_from([80, 81])
copies = st.builds(Copies, st.sampled_from(SERVICES), st.just(80), st.integers(1, WHOLE))
sticky = st.none() | st.just(Stickiness((("header", "x-user"),)))


@st.composite
def shares(draw: st.DrawFn) -> tuple[Backend, ...]:
    """Backends whose weights add up to 100."""
    names = draw(st.lists(st.sampled_from(SERVICES), min_size=1, max_size=3, unique=True))
    cuts = sorted(draw(st.lists(st.integers(0, WHOLE), min_size=len(names) - 1, max_size=len(names) - 1)))
    weights = (b - a for a, b in zip((0, *cuts), (*cuts, WHOLE), strict=True))
    return tuple(Backend(name, 80, weight) for name, weight in zip(names, weights, strict=True))


@st.composite
def mixes(draw: st.DrawFn) -> Mix:
    """Mixes that somebody may want."""
    matches = draw(st.lists(st.sampled_from(HEADERS), max_size=2, unique=True))
    branches = tuple(Branch(each, draw(shares())) for each in matches)
    copied = draw(st.lists(copies, max_size=2, unique_by=lambda each: each.service))
    return Mix(draw(shares()), branches, tuple(copied), draw(sticky))


raw_backends = st.lists(st.builds(Backend, st.sampled_from(SERVICES), port, st.integers(0, 120)), max_size=4).map(tuple)
raw_branches = st.lists(st.builds(Branch, st.sampled_from(HEADERS), raw_backends), max_size=3).map(tuple)
raw_mixes = st.builds(Mix, raw_backends, raw_branches, st.lists(copies, max_size=3).map(tuple), sticky)
"""Mixes that somebody may have written into a route."""


class Broken(Exception):
    """A rule that was broken."""


def must(rule: str, holds: object) -> None:
    if not holds:
        raise Broken(rule)


# Any single write


def branches_of(mix: Mix) -> dict[tuple[Header, ...], dict[tuple[str, int], int]]:
    """Weights by branch, as a proxy takes them: of two branches with the same headers, the first counts."""
    found: dict[tuple[Header, ...], dict[tuple[str, int], int]] = {}
    for headers, backends in (((), mix.backends), *mix.branches):
        if headers in found:
            backends = tuple(each._replace(weight=0) for each in backends)
        weights = found.setdefault(headers, {})
        for each in backends:
            weights[each.key] = weights.get(each.key, 0) + each.weight
    return found


def without(mix: Mix, services: Collection[str]) -> Mix:
    def kept(backends: tuple[Backend, ...]) -> tuple[Backend, ...]:
        return tuple(each for each in backends if each.service not in services)

    branches = tuple(Branch(each.headers, kept(each.backends)) for each in mix.branches)
    return Mix(
        kept(mix.backends),
        tuple(each for each in branches if each.backends),
        tuple(each for each in mix.copies if each.service not in services),
        mix.sticky,
    )


def positive(weights: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    return {key: weight for key, weight in weights.items() if weight}


def check_write(before: Mix, after: Mix, wanted: Mix, *, proven: bool) -> None:
    """Rules of one write, `before` being without services that are missing."""
    old, new = branches_of(before), branches_of(after)
    must("some service of each branch has a weight", all(positive(each) for each in new.values()))
    must("a service is once in a branch", len(after.backends) == len(new[()]))
    must("copies have a share", all(0 < each.percent <= WHOLE for each in after.copies))
    if not old[()]:
        return  # nobody was served
    moved = False
    for headers in old.keys() & new.keys():
        has, gets = old[headers], new[headers]
        served = any(has.values())
        must("no service enters with a weight", all(not gets[key] for key in gets.keys() - has.keys()))
        must("no service leaves with a weight", all(not has[key] for key in has.keys() - gets.keys()))
        must("nothing leaves before the proxies have it at 0", has.keys() <= gets.keys() or proven)
        changed = served and any(has[key] != gets[key] for key in has.keys() & gets.keys())
        must("nothing is given before the proxies have it", not changed or proven)
        moved = moved or changed
    for headers in new.keys() - old.keys():
        same = positive(new[headers]) == positive(old[()]) or not positive(old[()])
        must("a branch enters with the shares of the main branch", same)
        order = [each.headers for each in after.branches]
        must("a branch enters behind all others", order[-1] not in old and order.index(headers) >= len(old) - 1)
    for headers in old.keys() - new.keys():
        must("a branch leaves with the shares of the main branch", positive(old[headers]) == positive(new[()]))
        must("a branch leaves when the proxies have that", proven)
    must("copies leave first", not moved or set(before.copies) <= set(wanted.copies))
    if entered := set(after.copies) - set(before.copies):
        must("copies enter last", old == new and proven)
        must("only copies that are wanted enter", entered <= set(wanted.copies))


class Edit(NamedTuple):
    mix: Mix


class Aim(NamedTuple):
    mix: Mix


class Answer(NamedTuple):
    status: RouteStatus
    seconds: float


counts = st.dictionaries(st.sampled_from(SERVICES), st.integers(0, 3))
answers = st.builds(
    Answer,
    st.builds(RouteStatus, st.sampled_from(Programming), counts, st.just("so")),
    st.floats(0.0, 60.0),
)
PROVEN = Answer(RouteStatus(Programming.PROGRAMMED, dict.fromkeys(SERVICES, 0)), LONG)


class WriteStory(NamedTuple):
    now: Mix
    wanted: Mix
    missing: set[str]
    events: list[Any]


write_stories = st.builds(
    WriteStory,
    raw_mixes,
    mixes(),
    st.sets(st.sampled_from(SERVICES), max_size=2),
    st.lists(st.one_of(answers, st.builds(Aim, mixes()), st.builds(Edit, raw_mixes)), max_size=10),
)


def play_writes(planner: Any, story: WriteStory) -> None:
    now, wanted = story.now, story.wanted
    for event in [*story.events, *[PROVEN] * STEPS_MAX]:
        match event:
            case Edit(mix):
                now = mix
            case Aim(mix):
                wanted = mix
            case Answer(status, seconds):
                now = play_write(planner, now, wanted, status, seconds, story.missing)
    step = planner.next_step(now, wanted, PROVEN.status, others=SERVICES, proven_seconds=LONG, missing=story.missing)
    must("it ends", type(step).__name__ == "Done")
    must("the route is as wanted", same(now, wanted))


def play_write(
    planner: Any, now: Mix, wanted: Mix, status: RouteStatus, seconds: float, missing: Collection[str]
) -> Mix:
    gone = set(missing) - wanted.services
    timeouts = planner.DEFAULT_TIMEOUTS
    step = planner.next_step(now, wanted, status, others=SERVICES, proven_seconds=seconds, missing=missing)
    if type(step).__name__ != "WriteMix":
        if type(step).__name__ == "Done":
            must("it is not done before the route is as wanted", same(now, wanted))
            idle = not status.in_flight_to(set(SERVICES) - wanted.services)
            must("nothing is under way to what goes", idle or seconds >= timeouts.drain_seconds)
        must("a wait has a length", type(step).__name__ != "TrafficWait" or step.seconds > 0)
        return now
    must("a write changes something", step.mix != now)
    proven = status.programming is Programming.PROGRAMMED or (
        status.programming is Programming.ACCEPTED and seconds >= timeouts.settle_seconds
    )
    before = without(now, gone)
    check_write(before, step.mix, wanted, proven=proven)
    after: Mix = step.mix
    must("a missing service is dropped", not after.services & gone)
    if left := before.services - after.services - wanted.services - {each.service for each in before.copies}:
        drained = status.in_flight_to(left) in (None, 0) or seconds >= timeouts.drain_seconds
        must("it leaves when its requests have ended or had their time", drained)
    return after


def same(now: Mix, wanted: Mix) -> bool:
    """Whether a route says what is wanted, in whatever order of backends."""
    if branches_of(now) != branches_of(wanted) or [each.headers for each in now.branches] != [
        each.headers for each in wanted.branches
    ]:
        return False
    return set(now.copies) == set(wanted.copies) and now.sticky == wanted.sticky


@settings(max_examples=150, deadline=None)
@given(write_stories)
def test_no_write_does_harm_and_any_story_ends_at_what_is_wanted(story: WriteStory):
    play_writes(shift, story)


# Two proxies that load routes and clusters independently


class Proxy:
    """A proxy that loads versions of a route in order, and clusters of versions at other times."""

    def __init__(self, version: int, addresses: Collection[str]) -> None:
        self.routes = self.clusters = version
        self.addresses = set(addresses)


class World:
    """A route, its versions, and two proxies with requests in flight."""

    def __init__(self, planner: Any, now: Mix, wanted: Mix) -> None:
        self.planner = planner
        self.versions, self.wanted = [now], wanted
        self.proxies = [Proxy(0, now.services), Proxy(0, now.services)]
        self.in_flight = dict.fromkeys(SERVICES, 0)
        self.now = 0.0
        self.proven_at: tuple[int, float] | None = None

    def serve(self) -> None:
        """Every proxy gets requests of all kinds. None may fail."""
        for proxy in self.proxies:
            route, known = self.versions[proxy.routes], self.versions[proxy.clusters].services
            for weights in branches_of(route).values():
                for service, _ in positive(weights):
                    must("a proxy knows the cluster of who gets requests", service in known)
                    must("a proxy knows an address of who gets requests", service in proxy.addresses)

    def status(self) -> RouteStatus:
        current = self.versions[-1]
        asked = self.planner.expected_route("", "", "/", current, self.wanted, others=SERVICES, reachable=SERVICES)
        has_it = all(
            self.versions[each.routes] == current
            and current.services <= self.versions[each.clusters].services
            and asked.reachable <= each.addresses
            for each in self.proxies
        )
        if not has_it:
            self.proven_at = None
            return RouteStatus(Programming.PENDING, self.in_flight, "not yet")
        if self.proven_at is None or self.proven_at[0] != len(self.versions):
            self.proven_at = (len(self.versions), self.now)
        return RouteStatus(Programming.PROGRAMMED, self.in_flight)

    def step(self) -> bool:
        """One step of the planner; whether it is done."""
        status = self.status()
        seconds = self.now - self.proven_at[1] if self.proven_at else 0.0
        current = self.versions[-1]
        step = self.planner.next_step(current, self.wanted, status, others=SERVICES, proven_seconds=seconds)
        match type(step).__name__:
            case "WriteMix":
                check_write(current, step.mix, self.wanted, proven=status.programming is Programming.PROGRAMMED)
                self.versions.append(step.mix)
            case "Done":
                self.check_done(seconds)
                return True
        return False

    def check_done(self, seconds: float) -> None:
        """Whatever is not wanted can go now."""
        gone = set(SERVICES) - self.wanted.services
        for proxy in self.proxies:
            for version in self.versions[proxy.routes :]:
                must("no proxy has, or will load, a route to what goes", not version.services & gone)
        late = seconds >= self.planner.DEFAULT_TIMEOUTS.drain_seconds
        must("nothing is under way to what goes", late or not any(self.in_flight[each] for each in gone))

    def learn(self, which: int, what: str, service: str = "") -> None:
        """One thing that happens in a proxy, or in both (2), if it can."""
        for proxy in self.proxies if which == 2 else [self.proxies[which]]:
            self.learn_in(proxy, what, service)

    def learn_in(self, proxy: Proxy, what: str, service: str) -> None:
        last = len(self.versions) - 1
        if what == "routes":
            proxy.routes = min(proxy.routes + 1, last)
        elif what == "clusters":
            proxy.clusters = min(proxy.clusters + 1, last)
            proxy.addresses &= self.versions[proxy.clusters].services
        elif what == "address" and service in self.versions[proxy.clusters].services:
            proxy.addresses.add(service)
        elif what == "request" and service in self.served(proxy):
            self.in_flight[service] += 1
        elif what == "end":
            self.in_flight[service] = max(0, self.in_flight[service] - 1)

    def served(self, proxy: Proxy) -> set[str]:
        """Services that get requests, or copies of them."""
        route = self.versions[proxy.routes]
        sent = {key[0] for weights in branches_of(route).values() for key in positive(weights)}
        return sent | {each.service for each in route.copies}

    def catch_up(self) -> None:
        """All proxies have all, and only those that are wanted have requests, which never end."""
        for each in self.proxies:
            each.routes = each.clusters = len(self.versions) - 1
            each.addresses = set(self.versions[-1].services)
        for service in SERVICES:
            self.in_flight[service] = 3 if service in self.wanted.services else 0


class Want(NamedTuple):
    mix: Mix


class Learn(NamedTuple):
    which: int
    what: str
    service: str = ""


class Pass(NamedTuple):
    seconds: float


class ProxyStory(NamedTuple):
    now: Mix
    wanted: Mix
    events: list[Any]


learns = st.builds(
    Learn,
    st.sampled_from([0, 1, 2]),
    st.sampled_from(["routes", "clusters", "routes", "clusters", "address", "request", "end"]),
    st.sampled_from(SERVICES),
)
proxy_stories = st.builds(
    ProxyStory,
    mixes(),
    mixes(),
    st.lists(
        st.one_of(learns, learns, st.builds(Pass, st.sampled_from([0.1, 2.0, 40.0])), st.builds(Want, mixes())),
        max_size=40,
    ),
)


def play_proxies(planner: Any, story: ProxyStory) -> None:
    world = World(planner, story.now, story.wanted)
    for event in story.events:
        match event:
            case Want(mix):
                world.wanted = mix
            case Learn():
                world.learn(*event)
            case Pass(seconds):
                world.now += seconds
        world.serve()
        world.step()
    for _ in range(STEPS_MAX):
        world.catch_up()
        world.serve()
        world.step()
        world.now += SECONDS
    world.catch_up()
    must("requests to services that stay hold nothing up", world.step())
    must("the route is as wanted", same(world.versions[-1], world.wanted))


@settings(max_examples=150, deadline=None)
@given(proxy_stories)
def test_no_request_goes_where_a_proxy_knows_nobody_and_nothing_is_let_go_that_one_still_has(story: ProxyStory):
    play_proxies(shift, story)


# Each rule, changed: a story that finds it


class Mutation(NamedTuple):
    rule: str
    old: str
    new: str
    story: WriteStory | ProxyStory


def story(now: Mix, wanted: Mix, *events: Answer, missing: Collection[str] = ()) -> WriteStory:
    return WriteStory(now, wanted, set(missing), list(events))


def to(**weights: int) -> Mix:
    return Mix(tuple(Backend(name, 80, weight) for name, weight in weights.items()))


A, B = to(a=100), to(b=100)
ONE, TWO = (Branch(each, B.backends) for each in HEADERS[:2])
BUSY = Answer(RouteStatus(Programming.PROGRAMMED, {"a": 3, "b": 0, "c": 0, "d": 0}), 5.0)
COPIES_OF_A = A._replace(copies=(Copies("b", 80),))
LEARN = [Learn(2, "clusters"), Learn(2, "routes")]

MUTATIONS = (
    Mutation(
        "a service enters at weight 0",
        "*(each._replace(weight=0) for each in wanted if each.key not in present)",
        "*(each for each in wanted if each.key not in present)",
        story(A, B),
    ),
    Mutation(
        "nothing happens before the proof",
        "wait = unproven(status, proven_seconds, timeouts)",
        "wait = None",
        ProxyStory(A, B, [Pass(0.1)] * 2),
    ),
    Mutation(
        "an address is known first",
        "wants & now.services & set(reachable)",
        "()",
        ProxyStory(A, B, [Pass(0.1), *LEARN, *LEARN]),
    ),
    Mutation(
        "requests to what leaves end first",
        "return wait or WriteMix(left)",
        "return WriteMix(left)",
        story(to(a=0, b=100), B, BUSY),
    ),
    Mutation(
        "a service leaves at weight 0", "weights.get(each.key, 0)", "weights.get(each.key, each.weight)", story(A, B)
    ),
    Mutation(
        "a branch enters with the shares of the main branch",
        "has.get(headers) or main,",
        "has.get(headers) or wants[headers],",
        story(A, A._replace(branches=(ONE,))),
    ),
    Mutation(
        "a branch enters behind all others",
        "for headers in has | wants",
        "for headers in wants | has",
        story(A._replace(branches=(TWO,)), A._replace(branches=(ONE, TWO))),
    ),
    Mutation(
        "a branch leaves with the shares of the main branch",
        "_weighted(has[headers], wants.get(headers, wants[_MAIN]))",
        "_weighted(has[headers], wants.get(headers, has[headers]))",
        story(A._replace(branches=(ONE,)), A),
    ),
    Mutation(
        "copies leave first",
        "return tuple(each for each in now.copies if each in wanted.copies)",
        "return now.copies",
        story(COPIES_OF_A, B),
    ),
    Mutation(
        "copies enter last",
        "return tuple(each for each in now.copies if each in wanted.copies)",
        "return wanted.copies",
        story(B, COPIES_OF_A),
    ),
    # A proxy shows the version before the copies, which looks like the one after them, and loads both later.
    Mutation(
        "copies leave when the proxies have them",
        "if status.programming is Programming.PENDING",
        "if False",
        ProxyStory(A, COPIES_OF_A, [Pass(0.1), Want(A), Pass(2.0), Pass(2.0), Pass(2.0)]),
    ),
    Mutation(
        "never all weights 0", "if any(each.weight for each in entered):", "if True:", story(to(a=0, b=0), to(c=100))
    ),
    Mutation(
        "what is missing is dropped", "set(missing) - wanted.services", "()", story(to(a=100, b=0), B, missing="a")
    ),
    Mutation(
        "only what leaves is drained",
        "leaving = now.services - wanted.services",
        "leaving = now.services",
        ProxyStory(to(a=50, b=50), A, []),
    ),
    Mutation(
        "what runs beside is drained at the end",
        "set(others) - wanted.services, proven",
        "(), proven",
        story(B, B, BUSY),
    ),
    Mutation(
        "keys are as wanted",
        "return _mix(given, now.copies, wanted.sticky)",
        "return _mix(given, now.copies, now.sticky)",
        story(A, A._replace(sticky=Stickiness((("body", "user"),)))),
    ),
)


def mutated(mutation: Mutation) -> Any:
    """The planner with one rule changed."""
    source = Path(shift.__file__).read_text()
    assert source.count(mutation.old) == 1, f"{mutation.old!r} is not in the planner"
    module = types.ModuleType("mutated")
    exec(compile(source.replace(mutation.old, mutation.new), "mutated", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.rule)
def test_a_planner_without_a_rule_is_found(mutation: Mutation):
    play: Any = play_writes if isinstance(mutation.story, WriteStory) else play_proxies
    play(shift, mutation.story)
    with pytest.raises(Broken):
        play(mutated(mutation), mutation.story)
