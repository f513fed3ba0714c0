"""Shifts of weight: the steps of one shift, word by word, and the invariants for any state and any answers."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.traffic.contract import Backend, ExpectedRoute, Programming, RouteStatus, combined
from pilotage.traffic.drain import TrafficWait
from pilotage.traffic.shift import Done, ShiftStep, ShiftTimeouts, WriteBackends, expected_route, next_step

PROGRAMMED = RouteStatus(Programming.PROGRAMMED, in_flight=0)
ACCEPTED = RouteStatus(Programming.ACCEPTED)
PENDING = RouteStatus(Programming.PENDING, text="1 of 2 Envoys has it")
LONG = 1000.0


def route(text: str) -> tuple[Backend, ...]:
    """`old 100, new 0`, all on one port."""
    return tuple(
        Backend(service, 8080, int(weight)) for service, weight in (each.split() for each in text.split(",") if each)
    )


def written(step: ShiftStep) -> str:
    assert isinstance(step, WriteBackends), step
    assert all(each.port == 8080 for each in step.backends)
    return ", ".join(f"{each.service} {each.weight}" for each in step.backends)


@dataclass
class Shift:
    """A route that obeys: each write is what it says from then on."""

    says: tuple[Backend, ...]
    target: Backend
    steps: list[str] = field(default_factory=list)

    def step(self, status: RouteStatus = PROGRAMMED, seconds: float = LONG, **options) -> ShiftStep:
        step = next_step(self.says, self.target, status, proven_seconds=seconds, **{"leaving": True, **options})
        if isinstance(step, WriteBackends):
            self.says = step.backends
        self.steps.append(written(step) if isinstance(step, WriteBackends) else type(step).__name__)
        return step


def shift(says: str, target: str = "new") -> Shift:
    return Shift(route(says), Backend(target, 8080))


@pytest.mark.parametrize(
    ("says", "target", "steps"),
    [
        ("", "new", ["new 100", "Done"]),
        ("old 100", "new", ["old 100, new 0", "old 0, new 100", "new 100", "Done"]),
        ("new 100", "new", ["Done"]),
        # An aborted shift, and a newer target.
        ("old 100, newer 0", "new", ["old 100, newer 0, new 0", "old 0, newer 0, new 100", "new 100", "Done"]),
        ("old 0, newer 100", "new", ["old 0, newer 100, new 0", "old 0, newer 0, new 100", "new 100", "Done"]),
        # Back in the middle.
        ("old 100, new 0", "old", ["old 100", "Done"]),
        ("old 0, new 100", "old", ["old 100, new 0", "old 100", "Done"]),
        # Edited by another client.
        ("old 50, new 50", "new", ["old 0, new 100", "new 100", "Done"]),
        ("stranger 100", "new", ["stranger 100, new 0", "stranger 0, new 100", "new 100", "Done"]),
        ("old 0, new 0", "new", ["old 0, new 100", "new 100", "Done"]),
        ("new 0", "new", ["new 100", "Done"]),
        ("old 0", "new", ["old 100, new 0", "old 0, new 100", "new 100", "Done"]),
        ("old 60, old 40", "new", ["old 100, new 0", "old 0, new 100", "new 100", "Done"]),
    ],
)
def test_every_beginning_leads_to_the_target_alone(says, target, steps):
    moved = shift(says, target)
    while not isinstance(moved.step(), Done):
        assert len(moved.steps) < 10
    assert moved.steps == steps


def test_nothing_moves_before_the_proxies_have_what_is_there():
    moved = shift("old 100, new 0")
    assert moved.step(PENDING, 0.0) == TrafficWait("1 of 2 Envoys has it", 0.2)
    moved.step()
    assert isinstance(moved.step(PENDING, 0.0), TrafficWait)
    moved.step()
    assert isinstance(moved.step(PENDING, 0.0), TrafficWait)
    assert moved.steps == ["TrafficWait", "old 0, new 100", "TrafficWait", "new 100", "TrafficWait"]


def test_a_refusal_is_said_in_the_routers_words():
    refused = RouteStatus(
        Programming.REJECTED, text='Spec.Routes unresolved service reference: service "chat/new" not found'
    )
    step = shift("old 100, new 0").step(refused)
    assert isinstance(step, TrafficWait)
    assert step.text == 'rejected: Spec.Routes unresolved service reference: service "chat/new" not found'


def test_where_nobody_can_prove_each_step_waits_five_seconds_and_requests_get_their_time_once():
    moved = shift("old 100, new 0")
    assert moved.step(ACCEPTED, 2.0) == TrafficWait("accepted; no proxy can be asked, so some time is given to it", 3.0)
    assert written(moved.step(ACCEPTED, 5.0)) == "old 0, new 100"
    assert isinstance(moved.step(ACCEPTED, 5.5), TrafficWait)
    assert written(moved.step(ACCEPTED, 6.0)) == "new 100"
    assert moved.step(ACCEPTED, 6.0) == TrafficWait("requests under way are not counted; they are given time", 29.0)
    assert moved.step(ACCEPTED, 35.0) == Done(verified=False)


@pytest.mark.parametrize("seconds", [5.0, 35.0])
def test_a_wait_that_is_all_but_over_still_takes_a_moment(seconds):
    """A remainder from the rounding of two sums never elapses: a wait for that alone would repeat for ever."""
    step = shift("new 100").step(ACCEPTED, seconds - 1e-13)
    assert isinstance(step, TrafficWait)
    assert step.seconds > 0.001


def test_requests_under_way_hold_the_old_one_until_they_end_or_the_time_is_up():
    moved = shift("old 0, new 100")
    three = RouteStatus(Programming.PROGRAMMED, in_flight=3)
    assert moved.step(three, 29.5) == TrafficWait("3 requests are still under way", 0.2)
    assert isinstance(moved.step(PROGRAMMED, 0.9), TrafficWait)  # one whose head has come may not be counted yet
    assert isinstance(next_step(moved.says, moved.target, three, leaving=True, proven_seconds=30.0), WriteBackends)
    assert written(moved.step(PROGRAMMED, 1.0)) == "new 100"
    assert moved.step(PROGRAMMED, 1.0) == Done(verified=True)


def test_what_the_route_does_not_name_any_more_is_drained_all_the_same():
    moved = shift("new 100")
    assert isinstance(moved.step(RouteStatus(Programming.PROGRAMMED, in_flight=2), 3.0), TrafficWait)
    assert moved.step(RouteStatus(Programming.PROGRAMMED, in_flight=2), 3.0, leaving=False) == Done(verified=True)


def test_a_router_without_weights_switches_at_once_and_gives_time_after():
    moved = shift("old 100")
    assert written(moved.step(ACCEPTED, weighted=False)) == "new 100"
    assert isinstance(moved.step(ACCEPTED, 4.0, weighted=False), TrafficWait)
    assert isinstance(moved.step(ACCEPTED, 34.0, weighted=False), TrafficWait)
    assert moved.step(ACCEPTED, 35.0, weighted=False) == Done(verified=False)


def test_a_service_that_does_not_exist_is_not_waited_for():
    assert written(shift("old 100, new 0").step(PENDING, 0.0, missing={"old"})) == "new 100"
    assert written(shift("old 100").step(PENDING, 0.0, missing={"old"})) == "new 100"
    assert written(shift("older 0, old 100").step(PENDING, 0.0, missing={"older"})) == "old 100, new 0"


def test_another_port_of_the_target_is_another_backend():
    wrong = (Backend("new", 80, 100),)
    step = next_step(wrong, Backend("new", 8080), PROGRAMMED, leaving=False, proven_seconds=LONG)
    assert step == WriteBackends((Backend("new", 80, 100), Backend("new", 8080, 0)))


def test_the_proxies_are_asked_for_what_the_route_says_and_for_the_requests_of_all_but_the_target():
    asked = expected_route(
        "chat", "a.example.com", "/", route("old 100, new 0"), Backend("new", 8080), others={"older"}
    )
    assert asked == ExpectedRoute(
        "chat",
        "a.example.com",
        "/",
        route("old 100, new 0"),
        counted=frozenset({"old", "older"}),
        reachable=frozenset({"new"}),
    )
    # Where the route does not name it, or it has no replicas, its addresses need not be known.
    assert not expected_route("chat", "a", "/", route("old 100"), Backend("new", 8080)).reachable
    assert not expected_route("chat", "a", "/", route("new 100"), Backend("new", 8080), reachable=False).reachable


def test_proxies_do_not_prove_a_version_that_the_router_has_not_seen():
    assert combined(ACCEPTED, PROGRAMMED) == PROGRAMMED
    assert combined(ACCEPTED, None) == ACCEPTED
    assert combined(RouteStatus(Programming.PENDING, text="not yet"), PROGRAMMED) == RouteStatus(
        Programming.PENDING, 0, "not yet"
    )
    assert combined(RouteStatus(Programming.REJECTED, text="no"), PROGRAMMED).programming is Programming.REJECTED


SERVICES = ["a", "b", "c", "d"]
backend = st.builds(Backend, st.sampled_from(SERVICES), st.sampled_from([8080, 9090]), st.integers(0, 120))
passages = st.builds(RouteStatus, st.sampled_from(Programming), st.none() | st.integers(0, 3), st.just("so"))


@st.composite
def stories(draw):
    """A route in any initial state; then answers, changes of the target and edits of others, in any order."""
    target = st.sampled_from(SERVICES).map(lambda service: Backend(service, 8080))
    event = st.one_of(
        st.tuples(st.just("answer"), passages, st.floats(0.0, 60.0)),
        st.tuples(st.just("aim"), target),
        st.tuples(st.just("edit"), st.lists(backend, max_size=4)),
    )
    missing = draw(st.sets(st.sampled_from(SERVICES), max_size=2))
    return draw(st.lists(backend, max_size=4)), draw(target), missing, draw(st.lists(event, max_size=12))


@settings(max_examples=150, deadline=None)
@given(stories())
def test_any_story_ends_at_the_target_and_no_write_on_the_way_does_harm(story):
    says, target, missing, events = story
    says = tuple(says)
    for kind, *values in events:
        if kind == "aim":
            target = values[0]
        elif kind == "edit":
            says = tuple(values[0])
        else:
            says = played(says, target, values[0], values[1], missing)
    for _ in range(6):
        after = played(says, target, PROGRAMMED, LONG, missing)
        if after == says:
            break
        says = after
    assert says == (target,)
    step = next_step(says, target, PROGRAMMED, leaving=True, proven_seconds=LONG, missing=missing)
    assert step == Done(verified=True)


def played(says, target, status, seconds, missing):
    """One step on a route that obeys, and what must hold for it."""
    timeouts = ShiftTimeouts()
    step = next_step(says, target, status, leaving=True, proven_seconds=seconds, missing=missing, timeouts=timeouts)
    if not isinstance(step, WriteBackends):
        assert not isinstance(step, Done) or says == (target,)
        assert not isinstance(step, TrafficWait) or step.seconds > 0
        return says
    before = {}
    for each in says:
        if each.service not in missing or each.key == target.key:
            before[each.key] = before.get(each.key, 0) + each.weight
    after = {each.key: each.weight for each in step.backends}
    proven = status.programming is Programming.PROGRAMMED or (
        status.programming is Programming.ACCEPTED and seconds >= timeouts.settle_seconds
    )
    assert step.backends != says, "a write that changes nothing goes on for ever"
    assert any(after.values())
    if before:
        given_weight = {key for key, weight in after.items() if weight}
        assert given_weight <= set(before), "it got a weight before a proxy could know it"
        assert {key for key, weight in before.items() if weight} <= set(after), "it left with a weight"
        if any(before.values()):
            fresh = {key for key in given_weight if not before[key]}
            assert not fresh or proven, "it got a weight before the proxies had it"
        if set(before) - set(after):
            assert proven
            assert status.in_flight in (None, 0) or seconds >= timeouts.drain_seconds
    return step.backends
