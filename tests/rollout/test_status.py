"""Statuses of an endpoint while it changes: which steps are done, and when the change has ended."""

import datetime as dt
from typing import NamedTuple

import pytest

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.kube import Json, Object
from pilotage.kube.wire import parse_time
from pilotage.rollout.status import SETTLE_SECONDS, Rollout, RolloutGoal, RolloutVerdict, rollout_status
from tests.cli.serving import SINCE, SOURCE, condition, part, revision


def seen(status: Json, generation: int = 2, **spec: object) -> StoredEndpoint:
    meta = {"name": "a", "namespace": "chat", "uid": "u", "generation": generation}
    made = {"model": {"source": SOURCE}} | spec
    return StoredEndpoint.of(Object.from_dict({"metadata": meta, "spec": made, "status": status}))


GOAL = RolloutGoal("u", 2, "a-1")
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
    assert up.text == "RevisionComing: a-2 is on its way (a-2)"


def test_a_route_that_waits_says_why_in_its_own_row_alone():
    up, route, _ = rollout_status(redeploying()[2], GOAL).steps
    assert route.text
    assert route.text not in up.text


def test_a_revision_that_serves_without_the_proof_of_the_proxy_says_so():
    route = rollout_status(redeploying()[-1], GOAL).steps[1]
    assert "not proven" in route.text


def test_another_endpoint_of_the_same_name_is_not_taken_for_it():
    assert rollout_status(redeploying()[-1], GOAL._replace(uid="before")).verdict is RolloutVerdict.DELETED


AT = parse_time(SINCE)
COMING, DONE = redeploying()[1], redeploying()[-1]
BROKEN = seen({"observedGeneration": 2, "conditions": [condition("Degraded", True, "ImagePullBackOff")]})


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
