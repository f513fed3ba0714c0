"""The order of writes to the two Ingresses of Ingress-NGINX, from any state to any mix."""

import itertools

import pytest

from pilotage.api.endpoint import Route
from pilotage.kube import Json
from pilotage.traffic.contract import Backend, Branch, Copies, Header, Mix, Stickiness
from pilotage.traffic.drain import TrafficWait
from pilotage.traffic.ingress_nginx import (
    WRITE_SECONDS,
    IngressPair,
    WritePair,
    canary_ingress,
    next_pair,
    pair_problems,
    pair_step,
    read_pair,
)
from pilotage.traffic.routers import RouteRequest
from pilotage.traffic.routers.ingress import ROUTER
from pilotage.traffic.shift import Done, ShiftTimeouts

A, B, C = (Backend(f"chat-{number}", 80) for number in (1, 2, 3))
STEPS_MAX = 8
LONG = 1000.0


def at(backend: Backend, weight: int) -> Backend:
    return backend._replace(weight=weight)


PAIRS = [
    IngressPair(main, canary)
    for main in (None, A, B, C)
    for canary in (None, *(at(each, weight) for each in (A, B, C) for weight in (0, 30, 100)))
]
MIXES = [
    *(Mix((each,)) for each in (A, B)),
    *(Mix((at(one, 100 - weight), at(two, weight))) for one, two in ((A, B), (B, A)) for weight in (0, 1, 50, 99, 100)),
]


def way(now: IngressPair, wanted: Mix) -> list[IngressPair]:
    """All states, the first one included."""
    states = [now]
    while (following := next_pair(states[-1], wanted)) != states[-1]:
        states.append(following)
        assert len(states) <= STEPS_MAX, states
    return states


def shares(mix: Mix) -> dict[str, int]:
    return {each.service: each.weight for each in mix.backends if each.weight}


@pytest.mark.parametrize("wanted", MIXES, ids=str)
def test_every_way_ends_with_the_wanted_shares_by_writes_that_are_safe(wanted: Mix):
    for start in PAIRS:
        states = way(start, wanted)
        assert shares(states[-1].mix) == shares(wanted)
        for sooner, later in itertools.pairwise(states):
            assert (sooner.main != later.main) + (sooner.canary != later.canary) == 1, "one write at a time"
            assert later.main is not None
            if sooner.main is not None and later.main != sooner.main:
                assert later.canary == at(later.main, 100), "the main Ingress moves while the canary has all requests"
            if later.canary != sooner.canary:
                assert later.canary is not None, "a canary is torn down, and not from here"
                is_same = sooner.canary is not None and sooner.canary.key == later.canary.key
                assert is_same or later.canary.weight == 0, "it comes at weight 0"
                assert is_same or not (sooner.canary and sooner.canary.weight), "it changes sides at weight 0"


def test_a_promotion_and_its_steps_are_in_the_order_that_nginx_needs():
    assert way(IngressPair(A), Mix((at(A, 75), at(B, 25)))) == [
        IngressPair(A),
        IngressPair(A, at(B, 0)),
        IngressPair(A, at(B, 25)),
    ]
    assert way(IngressPair(A, at(B, 25)), Mix((B,))) == [
        IngressPair(A, at(B, 25)),
        IngressPair(A, at(B, 100)),
        IngressPair(B, at(B, 100)),
        IngressPair(B, at(B, 0)),
    ]


def test_a_main_service_that_is_missing_is_replaced_at_once():
    lost = IngressPair(C, at(B, 30))
    step = pair_step(lost, Mix((A,)), state_seconds=0, write_seconds=WRITE_SECONDS, missing=("chat-3",))
    assert step == WritePair(IngressPair(A, at(B, 30)))


def request() -> RouteRequest:
    return RouteRequest(
        "default", "chat", {}, Route(kind="Ingress", host="chat.example.com", class_name="nginx"), Mix()
    )


def written(pair: IngressPair) -> tuple[Json | None, Json | None]:
    main = ROUTER.manifest(request()._replace(mix=Mix((pair.main,)))) if pair.main else None
    return main, canary_ingress(request(), pair.canary) if pair.canary else None


def service(ingress: Json) -> str:
    found: str = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"]
    return found


def test_what_is_written_is_read_back_and_never_one_service_behind_both():
    for pair in PAIRS:
        main, canary = written(pair)
        assert read_pair(main, canary) == pair
        assert main is None or canary is None or service(main) != service(canary)


def test_the_canary_ingress_has_the_rules_of_the_main_one_and_a_weight():
    main, canary = written(IngressPair(A, at(B, 25)))
    assert main is not None
    assert canary is not None
    assert canary["metadata"]["name"] == "chat-canary"
    assert service(canary) == "chat-2-canary"
    name = "nginx.ingress.kubernetes.io/canary"
    annotations = canary["metadata"]["annotations"]
    assert {name: "true", f"{name}-weight": "25", f"{name}-weight-total": "100"}.items() <= annotations.items()
    assert not [each for each in main["metadata"]["annotations"] if each.startswith(name)]
    main["spec"]["rules"][0]["http"] = canary["spec"]["rules"][0]["http"]
    assert main["spec"] == canary["spec"]


@pytest.mark.parametrize(
    "annotations",
    [None, {}, {"canary": "false"}, {"canary-weight": "many"}, {"canary-weight": "101"}, {"canary-weight": "-1"}],
)
def test_a_canary_that_somebody_changed_counts_as_none(annotations: dict[str, str] | None):
    main, canary = written(IngressPair(A, at(B, 25)))
    assert canary is not None
    if not annotations:
        canary["metadata"]["annotations"] = annotations
    else:
        edited = {f"nginx.ingress.kubernetes.io/{name}": value for name, value in annotations.items()}
        canary["metadata"]["annotations"] |= edited
    assert read_pair(main, canary) == IngressPair(A)


def test_a_canary_that_leads_to_the_main_service_counts_as_none_and_is_put_right():
    main, canary = written(IngressPair(A, at(B, 25)))
    assert canary is not None
    canary["spec"]["rules"] = main["spec"]["rules"] if main else []
    now = read_pair(main, canary)
    assert next_pair(now, Mix((at(A, 75), at(B, 25)))) == IngressPair(A, at(B, 0))


def test_each_state_has_its_time_before_the_next_write():
    timeouts = ShiftTimeouts(settle_seconds=5, drain_seconds=30)
    now, wanted = IngressPair(A, at(B, 0)), Mix((at(A, 75), at(B, 25)))
    early = pair_step(now, wanted, state_seconds=4.5, write_seconds=LONG, timeouts=timeouts)
    assert isinstance(early, TrafficWait)
    assert early.seconds == 0.5
    just_written = pair_step(now, wanted, state_seconds=LONG, write_seconds=1, timeouts=timeouts)
    assert isinstance(just_written, TrafficWait)
    assert just_written.seconds == WRITE_SECONDS - 1
    due = pair_step(now, wanted, state_seconds=5, write_seconds=5, timeouts=timeouts)
    assert due == WritePair(IngressPair(A, at(B, 25)))


def test_the_main_ingress_waits_for_a_replica_that_answers():
    now = IngressPair(A, at(B, 100))
    waits = pair_step(now, Mix((B,)), state_seconds=LONG, write_seconds=LONG)
    assert isinstance(waits, TrafficWait)
    assert "service/chat-2 has no replicas that answer" in waits.text
    moves = pair_step(now, Mix((B,)), state_seconds=LONG, write_seconds=LONG, reachable=("chat-2",))
    assert moves == WritePair(IngressPair(B, at(B, 100)))


def test_a_service_that_has_left_has_all_of_the_time_to_drain_and_nothing_is_called_verified():
    timeouts = ShiftTimeouts(settle_seconds=5, drain_seconds=30)
    now, wanted = IngressPair(B, at(B, 0)), Mix((B,))
    waits = pair_step(now, wanted, state_seconds=15, write_seconds=15, others=("chat-1",), timeouts=timeouts)
    assert isinstance(waits, TrafficWait)
    assert waits.seconds == 20
    done = pair_step(now, wanted, state_seconds=35, write_seconds=35, others=("chat-1",), timeouts=timeouts)
    assert done == Done(verified=False)


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        (Mix((at(A, 80), at(B, 10), at(C, 10))), "one canary for a rule"),
        (Mix((A,), (Branch((Header("x", "1"),), (B,)),)), "choose requests by a header"),
        (Mix((A,), copies=(Copies("chat-2", 80),)), "copy requests"),
        (Mix((A,), sticky=Stickiness((("header", "x"),))), "same key"),
    ],
)
def test_what_two_ingresses_cannot_have_is_named(mix: Mix, words: str):
    assert any(words in each for each in pair_problems(mix))


def test_two_backends_are_no_problem():
    assert pair_problems(Mix((at(A, 75), at(B, 25)))) == []
