"""Statuses of an endpoint while it changes: which steps are done, and when the change has ended."""

import datetime as dt
from typing import NamedTuple

import msgspec
import pytest

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.kube import Json, Object
from pilotage.kube.wire import parse_time
from pilotage.rollout.status import SETTLE_SECONDS, Rollout, RolloutGoal, RolloutVerdict, rollout_status
from tests.cli.serving import OTHER, SINCE, SOURCE, condition, part, revision


def seen(status: Json, generation: int = 2, **spec: object) -> StoredEndpoint:
    meta = {"name": "a", "namespace": "chat", "uid": "u", "generation": generation}
    made = {"model": {"source": SOURCE}} | spec
    return StoredEndpoint.of(Object.from_dict({"metadata": meta, "spec": made, "status": status}))


GOAL = RolloutGoal("u", 2, "a-1", {"model": {"source": SOURCE}, "replicas": 2}, frozenset({"model", "runtime"}))
HISTORY = [revision(1, "Current"), revision(2, "Starting")]
OLD, NEW = part("Deployment", "a-1", 1), part("Deployment", "a-2", 2)
ROUTED = {"kind": "HTTPProxy", "host": "a.example.com"}


def redeploying() -> list[StoredEndpoint]:
    """Statuses that an operator writes one after the other."""
    base = {"observedGeneration": 2, "revision": "a-1", "replicas": {"ready": 1, "desired": 1}}
    available = condition("Available", True)
    coming = base | {
        "phase": "Redeploying",
        "history": HISTORY,
        "ledger": [OLD, NEW],
        "conditions": [
            available,
            condition("Progressing", True, "RevisionComing", "a-2 is on its way."),
            condition("RouteProgrammed", True, "ProvenByProxy"),
        ],
    }
    arrived = [revision(1, "Previous"), revision(2, "Current")]
    moving = coming | {
        "conditions": [
            available,
            condition("Progressing", True, "RevisionComing"),
            condition("RouteProgrammed", False, "Moving", "1 of 2 Envoys have it"),
        ]
    }
    moved = coming | {
        "phase": "Serving",
        "revision": "a-2",
        "history": arrived,
        "conditions": [
            available,
            condition("Progressing", True, "Replacing"),
            condition("RouteProgrammed", True, "AcceptedUnverified"),
        ],
    }
    done = moved | {
        "ledger": [NEW],
        "conditions": [available, condition("RouteProgrammed", True, "AcceptedUnverified")],
    }
    return [seen({"observedGeneration": 1}), *(seen(each, route=ROUTED) for each in (coming, moving, moved, done))]


def test_each_step_is_told_from_the_status():
    looks = [rollout_status(endpoint, GOAL) for endpoint in redeploying()]
    assert [each.verdict for each in looks] == [*[RolloutVerdict.GOING] * 4, RolloutVerdict.SERVING]
    states = [{step.name: step.state for step in each.steps} for each in looks]
    assert states == [
        {"operator": "active"},
        {"up": "active", "route": "later", "gone": "later"},
        {"up": "active", "route": "active", "gone": "later"},
        {"up": "done", "route": "done", "gone": "active"},
        {"up": "done", "route": "done", "gone": "done"},
    ]


def test_replicas_of_the_old_revision_are_not_told_of_the_new_one():
    up = rollout_status(redeploying()[1], GOAL).steps[0]
    assert up.text == "RevisionComing: a-2 is on its way"


def test_a_route_that_waits_says_why_in_its_own_row_alone():
    up, route, _ = rollout_status(redeploying()[2], GOAL).steps
    assert route.text
    assert route.text not in up.text


def test_a_revision_that_serves_without_the_proof_of_the_proxy_says_so():
    route = rollout_status(redeploying()[-1], GOAL).steps[1]
    assert "not proven" in route.text


def test_another_endpoint_of_the_same_name_is_not_taken_for_it():
    assert rollout_status(redeploying()[-1], GOAL._replace(uid="before")).verdict is RolloutVerdict.DELETED


@pytest.mark.parametrize(
    ("spec", "verdict"),
    [
        ({"model": {"source": OTHER}}, RolloutVerdict.SUPERSEDED),
        ({"runtime": {"args": ["x"]}}, RolloutVerdict.SUPERSEDED),
        ({"replicas": 7, "runtime": {"args": []}}, RolloutVerdict.SERVING),
    ],
    ids=["another model", "other arguments", "what this change is not about"],
)
@pytest.mark.parametrize("reconciled", [1, 2, 3])
def test_the_revision_of_another_client_is_not_taken_for_its_own(spec, verdict, reconciled):
    """Whatever the operator has seen of it by now."""
    status = redeploying()[-1].status
    found = seen(msgspec.to_builtins(status) | {"observedGeneration": reconciled}, generation=3, **spec)
    known = reconciled >= GOAL.generation or verdict is RolloutVerdict.SUPERSEDED
    looked = rollout_status(found, GOAL)
    assert looked.verdict is (verdict if known else RolloutVerdict.GOING)
    if verdict is RolloutVerdict.SUPERSEDED:
        assert looked.text.startswith(f"Superseded by a later change of {next(iter(spec))} (generation 3).")


def test_one_without_replicas_is_done_and_does_not_say_that_it_serves():
    status = msgspec.to_builtins(redeploying()[-1].status) | {"phase": "ScaledToZero"}
    looked = rollout_status(seen(status), GOAL)
    assert looked.verdict is RolloutVerdict.SERVING
    assert looked.text.startswith("is scaled to zero: nothing answers")


def test_a_return_to_the_revision_that_serves_is_done_when_the_abandoned_one_is_gone():
    history = [revision(1, "Current"), revision(2, "Abandoned")]
    base = {"observedGeneration": 2, "phase": "Serving", "revision": "a-1", "history": history}
    going, gone = condition("Progressing", True, "Replacing"), condition("Progressing", False, "Arrived")
    looks = [rollout_status(seen(base | {"conditions": [each]}), GOAL).verdict for each in (going, gone)]
    assert looks == [RolloutVerdict.GOING, RolloutVerdict.SERVING]


AT = parse_time(SINCE)
COMING, DONE = redeploying()[1], redeploying()[-1]
BROKEN = seen({"observedGeneration": 2, "conditions": [condition("Degraded", True, "ImagePullBackOff")]})


TAKEN = seen({"observedGeneration": 2}, generation=3, model={"source": OTHER})


class Case(NamedTuple):
    name: str
    observed: list[tuple[float, StoredEndpoint | None]]
    """Each state, with the seconds after the start."""
    want: list[tuple[RolloutVerdict, bool]]
    """Each verdict, and whether it has ended."""


GOING, FAILED = (RolloutVerdict.GOING, False), RolloutVerdict.FAILED
CASES = [
    Case("what serves has ended at once", [(0, COMING), (1, DONE)], [GOING, (RolloutVerdict.SERVING, True)]),
    Case("so has what is gone", [(0, COMING), (1, None)], [GOING, (RolloutVerdict.DELETED, True)]),
    Case("and what is wanted no more", [(0, TAKEN)], [(RolloutVerdict.SUPERSEDED, True)]),
    Case("a failure that stays ends it", [(0, BROKEN), (SETTLE_SECONDS, BROKEN)], [(FAILED, False), (FAILED, True)]),
    Case(
        "a failure that was taken back is none, and begins anew",
        [(0, BROKEN), (1, COMING), (SETTLE_SECONDS, BROKEN), (SETTLE_SECONDS + 1, BROKEN)],
        [(FAILED, False), GOING, (FAILED, False), (FAILED, False)],
    ),
    Case("the time runs out", [(0, COMING), (60, COMING)], [GOING, (RolloutVerdict.TIMEOUT, True)]),
    Case("what serves in the last moment serves", [(60, DONE)], [(RolloutVerdict.SERVING, True)]),
    Case("a failure that is new at the deadline is a time-out", [(60, BROKEN)], [(RolloutVerdict.TIMEOUT, True)]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_when_a_change_has_ended(case: Case):
    rollout = Rollout(GOAL, AT + dt.timedelta(seconds=60))
    looks = [rollout.observe(endpoint, AT + dt.timedelta(seconds=after)) for after, endpoint in case.observed]
    assert [(each.verdict, each.ended) for each in looks] == case.want


def test_only_what_no_operator_has_taken_up_is_not_reconciled():
    assert [rollout_status(endpoint, GOAL).reconciled for endpoint in redeploying()] == [False, *[True] * 4]
