"""Shifts of weight: the steps of one shift, word by word, and the invariants for any state and any answers."""

from dataclasses import dataclass, field

import pytest

from pilotage.traffic.contract import Backend, ExpectedRoute, Mix, Programming, RouteStatus, combined
from pilotage.traffic.drain import TrafficWait
from pilotage.traffic.shift import Done, ShiftStep, WriteMix, expected_route, next_step


def programmed(in_flight: int = 0) -> RouteStatus:
    counts = dict.fromkeys(["older", "old", "newer", "new", "stranger"], 0) | {"old": in_flight}
    return RouteStatus(Programming.PROGRAMMED, in_flight=counts)


PROGRAMMED = programmed()
ACCEPTED = RouteStatus(Programming.ACCEPTED)
PENDING = RouteStatus(Programming.PENDING, text="1 of 2 Envoys has it")
LONG = 1000.0


def route(text: str) -> Mix:
    """`old 100, new 0`, all on one port."""
    return Mix(
        tuple(
            Backend(service, 8080, int(weight))
            for service, weight in (each.split() for each in text.split(",") if each)
        )
    )


def written(step: ShiftStep) -> str:
    assert isinstance(step, WriteMix), step
    assert all(each.port == 8080 for each in step.mix.backends)
    return str(step.mix)


@dataclass
class Shift:
    """A route that obeys: each write is what it says from then on."""

    says: Mix
    wanted: Mix
    steps: list[str] = field(default_factory=list)

    def step(self, status: RouteStatus = PROGRAMMED, seconds: float = LONG, **options) -> ShiftStep:
        step = next_step(self.says, self.wanted, status, proven_seconds=seconds, **{"others": {"old"}, **options})
        if isinstance(step, WriteMix):
            self.says = step.mix
        self.steps.append(written(step) if isinstance(step, WriteMix) else type(step).__name__)
        return step


def shift(says: str, target: str = "new") -> Shift:
    return Shift(route(says), route(f"{target} 100"))


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
    three = programmed(3)
    assert moved.step(three, 29.5) == TrafficWait("3 requests are still under way", 0.2)
    assert isinstance(moved.step(PROGRAMMED, 0.9), TrafficWait)  # one whose head has come may not be counted yet
    assert isinstance(next_step(moved.says, moved.wanted, three, proven_seconds=30.0), WriteMix)
    assert written(moved.step(PROGRAMMED, 1.0)) == "new 100"
    assert moved.step(PROGRAMMED, 1.0) == Done(verified=True)


def test_what_the_route_does_not_name_any_more_is_drained_all_the_same():
    moved = shift("new 100")
    assert isinstance(moved.step(programmed(2), 3.0), TrafficWait)
    assert moved.step(programmed(2), 3.0, others=()) == Done(verified=True)


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
    wrong = Mix((Backend("new", 80, 100),))
    step = next_step(wrong, route("new 100"), PROGRAMMED, proven_seconds=LONG)
    assert step == WriteMix(Mix((Backend("new", 80, 100), Backend("new", 8080, 0))))


def test_the_proxies_are_asked_for_what_the_route_says_and_for_addresses_of_what_shall_get_requests():
    place = ("chat", "a.example.com", "/")
    both = frozenset({"old", "new"})
    asked = expected_route(*place, route("old 100, new 0"), route("new 100"), others={"older"}, reachable=both)
    assert asked == ExpectedRoute(
        *place, route("old 100, new 0"), counted=both | {"older"}, reachable=frozenset({"new"})
    )
    # Where the route does not name it, or it has no replicas, its addresses need not be known.
    assert not expected_route(*place, route("old 100"), route("new 100"), reachable=both).reachable
    assert not expected_route(*place, route("new 100"), route("new 100")).reachable


def test_proxies_do_not_prove_a_version_that_the_router_has_not_seen():
    assert combined(ACCEPTED, PROGRAMMED) == PROGRAMMED
    assert combined(ACCEPTED, None) == ACCEPTED
    assert combined(RouteStatus(Programming.PENDING, text="not yet"), PROGRAMMED) == RouteStatus(
        Programming.PENDING, PROGRAMMED.in_flight, "not yet"
    )
    assert combined(RouteStatus(Programming.REJECTED, text="no"), PROGRAMMED).programming is Programming.REJECTED
