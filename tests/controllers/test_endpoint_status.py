"""The phase and the conditions of an endpoint, for each state that it can be in."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import pytest

from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import RevisionHistory
from pilotage.controllers.endpoint.status import START_MAX, Situation, next_status
from pilotage.kube import Json, Object
from pilotage.kube.wire import format_time
from pilotage.serving.parts import Readiness
from tests.controllers.test_endpoint_decide import CHAT, MOVED, NOW, RECREATED, revision

OBJECT = Object.from_dict({"metadata": {"name": "chat", "namespace": "default", "uid": "u1", "generation": 2}})
FIRST, SECOND = revision(1), revision(2)
BROKEN = EndpointProblem("ModelMissing", "model/chat does not exist.")
FETCHED = EndpointProblem("ModelNotReady", "model/chat is being fetched.", waits=True)
BLOCKED = EndpointProblem("TeardownBlocked", "service/chat-1 is held by example.com/hold.")


def ready(number: int, desired: int, **more: Any) -> Readiness:
    counted = f"{number} of {desired} replicas are ready."
    return Readiness(number, desired, number >= desired, "ReplicasStarting", counted)._replace(**more)


UP, COMING = ready(1, 1), ready(0, 1)
UNSCHEDULABLE = COMING._replace(reason="Unschedulable", message="0/1 nodes are available.", troubled=True)
HOPELESS = COMING._replace(reason="ImagePullBackOff", message="no such tag.", failed=True, troubled=True)
LOST = COMING._replace(reason="HostLost", message="host/gpu-1 is lost.", troubled=True, unknown=True)
NONE = ready(0, 0)


def status(
    phase: str, replicas: tuple[int, int], progressing: str = "Arrived", ago: dt.timedelta = dt.timedelta()
) -> Json:
    """The status before."""
    since = format_time(NOW - ago)
    said = {"type": "Progressing", "status": str(progressing == "Scaling"), "reason": progressing, "message": ""}
    counted = {"ready": replicas[0], "desired": replicas[1]}
    return {"phase": phase, "replicas": counted, "conditions": [{**said, "lastTransitionTime": since}]}


def arrived(found: Readiness, **more: Any) -> Situation:
    return Situation(FIRST, FIRST, found, found, MOVED, served=True, **more)


def redeploying(new: Readiness, old: Readiness = UP, **more: Any) -> Situation:
    return Situation(SECOND, FIRST, new, old, MOVED, served=True, **more)


def recreating(**more: Any) -> Situation:
    return Situation(revision(2, RECREATED), revision(1, RECREATED), COMING, COMING, served=True, **more)


@dataclass(frozen=True)
class Case:
    name: str
    situation: Situation
    phase: str
    available: str
    progressing: str
    degraded: str
    old: Json = field(default_factory=dict)


SERVED = status("Serving", (1, 1))
SCALING = status("Serving", (1, 3), "Scaling")
# fmt: off
CASES = [
    Case("a Model is fetched first", Situation(problem=FETCHED), "Pending", "False NotServing", "False Waiting",
         "False AsExpected"),
    Case("a first revision starts", Situation(FIRST, wanted_ready=COMING), "Deploying", "False NotServing",
         "True RevisionComing", "False AsExpected"),
    Case("a shortage is said and may pass", Situation(FIRST, wanted_ready=UNSCHEDULABLE), "Deploying",
         "False NotServing", "True Unschedulable", "False AsExpected"),
    Case("a first deploy fails", Situation(FIRST, wanted_ready=HOPELESS), "Failed", "False NotServing",
         "False ImagePullBackOff", "True ImagePullBackOff"),
    Case("and so does one that cannot begin", Situation(problem=BROKEN), "Failed", "False NotServing",
         "False Waiting", "True ModelMissing"),
    Case("it serves", arrived(UP), "Serving", "True ReplicasStarting", "False Arrived", "False AsExpected"),
    Case("a former revision goes", arrived(UP, replacing=1), "Serving", "True ReplicasStarting", "True Replacing",
         "False AsExpected"),
    Case("the next Model is fetched", arrived(UP, problem=FETCHED), "Serving", "True ReplicasStarting",
         "True ModelNotReady", "False AsExpected"),
    Case("none are wanted", arrived(NONE), "ScaledToZero", "False ScaledToZero", "False Arrived", "False AsExpected",
         SERVED),
    Case("more are wanted", arrived(ready(1, 3)), "Serving", "True SomeReplicasReady", "True Scaling",
         "False AsExpected", SERVED),
    Case("they are still on their way", arrived(ready(1, 3)), "Serving", "True SomeReplicasReady", "True Scaling",
         "False AsExpected", SCALING),
    Case("for too long", arrived(ready(1, 3)), "Degraded", "True SomeReplicasReady", "False Arrived",
         "True ReplicasStarting", status("Serving", (1, 3), "Scaling", START_MAX)),
    Case("the one that was there is lost meanwhile", arrived(ready(0, 3)), "Degraded", "False ReplicasStarting",
         "False Arrived", "True ReplicasStarting", SCALING),
    Case("they cannot come", arrived(ready(1, 3, failed=True, reason="FailedCreate")), "Degraded",
         "True SomeReplicasReady", "False FailedCreate", "True FailedCreate", SCALING),
    Case("the first of none", arrived(COMING), "Deploying", "False ReplicasStarting", "True Scaling",
         "False AsExpected", status("ScaledToZero", (0, 0))),
    Case("fewer are wanted", arrived(ready(3, 1, available=False, reason="NotObserved")), "Serving",
         "True SomeReplicasReady", "True Scaling", "False AsExpected", status("Serving", (3, 3))),
    Case("one of several is lost", arrived(ready(2, 3)), "Degraded", "True SomeReplicasReady", "False Arrived",
         "True ReplicasStarting", status("Serving", (3, 3))),
    Case("its only one is lost", arrived(COMING), "Degraded", "False ReplicasStarting", "False Arrived",
         "True ReplicasStarting", SERVED),
    Case("its Host is lost", arrived(LOST), "Unknown", "False HostLost", "False Arrived", "True HostLost", SERVED),
    Case("its Host has not been heard of", arrived(LOST._replace(reason="HostSilent")), "Unknown", "Unknown HostSilent",
         "False Arrived", "True HostSilent", SERVED),
    Case("another revision starts", redeploying(COMING), "Redeploying", "True ReplicasStarting",
         "True RevisionComing", "False AsExpected", SERVED),
    Case("it cannot start", redeploying(HOPELESS), "Degraded", "True ReplicasStarting", "False ImagePullBackOff",
         "True ImagePullBackOff", SERVED),
    Case("what serves is lost meanwhile", redeploying(COMING, COMING), "Degraded", "False ReplicasStarting",
         "True RevisionComing", "True ReplicasStarting", SERVED),
    Case("a change that cannot begin", arrived(UP, problem=BROKEN), "Degraded", "True ReplicasStarting",
         "False Arrived", "True ModelMissing", SERVED),
    Case("a former revision goes first", recreating(waiting_for="pods"), "Redeploying", "False Recreating",
         "True Recreating", "False AsExpected", SERVED),
    Case("it does not go", recreating(waiting_for="pods", problem=BLOCKED), "Degraded", "False Recreating",
         "True Recreating", "True TeardownBlocked", SERVED),
    Case("it is gone", Situation(SECOND, wanted_ready=COMING, served=True), "Redeploying", "False NotServing",
         "True RevisionComing", "False AsExpected", SERVED),
    Case("and the next one cannot start", Situation(SECOND, wanted_ready=HOPELESS, served=True), "Failed",
         "False NotServing", "False ImagePullBackOff", "True ImagePullBackOff", SERVED),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_phase_and_conditions(case: Case):
    made = next_status(OBJECT, case.old, CHAT.spec, case.situation, RevisionHistory(), (), NOW)
    said = {each["type"]: f"{each['status']} {each['reason']}" for each in made["conditions"]}
    found = (made["phase"], said["Available"], said["Progressing"], said["Degraded"])
    assert found == (case.phase, case.available, case.progressing, case.degraded)


def test_a_failed_redeploy_says_why_first_and_then_what_serves():
    made = next_status(OBJECT, SERVED, CHAT.spec, redeploying(HOPELESS), RevisionHistory(), (), NOW)
    said = {each["type"]: each["message"] for each in made["conditions"]}
    assert said["Degraded"] == "no such tag. Revision 1 continues to serve."
