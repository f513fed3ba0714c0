"""Readiness of a revision, from its parts, in the words of a person."""

from typing import Any

import pytest

from pilotage.kube import Object, Resource
from pilotage.serving import backend, placement_of, readiness
from pilotage.serving.parts import Readiness
from pilotage.serving.pod_problems import explained
from tests.serving.cases import UID, subject

Json = dict[str, Any]
TRUE = {"status": "True"}


def deployment(name: str, ready: int = 0, *, replicas: int = 2, seen: int = 3, **conditions: Json) -> Json:
    said = [{"type": type_, **each} for type_, each in conditions.items()]
    status = {"observedGeneration": seen, "availableReplicas": ready, "conditions": said}
    return {
        "kind": "Deployment",
        "metadata": {"name": name, "generation": 3},
        "spec": {"replicas": replicas},
        "status": status,
    }


def inference_service(**status: Any) -> Json:
    return {"kind": "InferenceService", "metadata": {"name": "assistant-7"}, "status": status}


def look(spec: Json, *objects: Json, namespace: str = "chat") -> Readiness:
    def find(resource: Resource, name: str) -> Object | None:
        assert resource in placement_of(endpoint).observed
        found = [each for each in objects if each["kind"] == resource.kind and each["metadata"]["name"] == name]
        return Object.from_dict(found[0]) if found else None

    endpoint = subject(spec, namespace=namespace)
    return readiness(endpoint, 7, find)


LATE = {"status": "False", "reason": "ProgressDeadlineExceeded"}
QUOTA = {"status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"}


@pytest.mark.parametrize(
    ("spec", "seen", "expected"),
    [
        ({"replicas": 2}, None, (0, 2, False, "NotCreated", False)),
        ({"replicas": 2}, {"ready": 2}, (2, 2, True, "ReplicasReady", False)),
        ({"replicas": 2}, {"ready": 1}, (1, 2, False, "ReplicasStarting", False)),
        ({"replicas": 2}, {"ready": 2, "seen": 2}, (2, 2, False, "NotObserved", False)),
        ({"replicas": 2}, {"Progressing": LATE}, (0, 2, False, "ProgressDeadlineExceeded", True)),
        ({"replicas": 2}, {"ready": 2, "Progressing": LATE}, (2, 2, True, "ReplicasReady", False)),
        ({"replicas": 2}, {"ready": 1, "ReplicaFailure": QUOTA}, (1, 2, False, "FailedCreate", True)),
        ({"replicas": 0}, {"replicas": 0}, (0, 0, True, "ScaledToZero", False)),
        ({"autoscaling": {"min": 2, "max": 9}}, {"ready": 3, "replicas": 5}, (3, 5, True, "ReplicasReady", False)),
        ({"autoscaling": {"min": 2, "max": 9}}, {"ready": 1, "replicas": 1}, (1, 2, False, "ReplicasStarting", False)),
    ],
)
def test_of_a_deployment(spec, seen, expected):
    found = look(spec, *([] if seen is None else [deployment("assistant-7", **seen)]))
    assert (found.ready, found.desired, found.available, found.reason, found.failed) == expected


def test_the_message_has_the_quota_in_it():
    assert "exceeded quota: gpus" in look({}, deployment("assistant-7", ReplicaFailure=QUOTA)).message


KSERVE = {"placement": {"kind": "KServe"}, "replicas": 2}
INVALID = {"transitionStatus": "InvalidSpec", "lastFailureInfo": {"reason": "InvalidPredictorSpec", "message": "no"}}
READY = inference_service(conditions=[{"type": "Ready", **TRUE}])
NOT_READY = inference_service(conditions=[{"type": "Ready", "status": "False", "reason": "NoRoute", "message": "why"}])


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], (False, "NotCreated", False)),
        ([inference_service()], (False, "WaitingForKServe", False)),
        ([inference_service(modelStatus=INVALID)], (False, "InvalidPredictorSpec", True)),
        ([READY, deployment("assistant-7-predictor", 2)], (True, "ReplicasReady", False)),
        ([READY, deployment("assistant-7-predictor", 1)], (False, "ReplicasStarting", False)),
        ([NOT_READY, deployment("assistant-7-predictor", 2)], (False, "NoRoute", False)),
        # Its deadline is shorter than a start may take.
        ([READY, deployment("assistant-7-predictor", Progressing=LATE)], (False, "ProgressDeadlineExceeded", False)),
    ],
)
def test_of_kserve(objects, expected):
    found = look(KSERVE, *objects)
    assert (found.available, found.reason, found.failed) == expected


@pytest.mark.parametrize(("length", "said"), [(41, False), (42, True)])
def test_kserve_that_makes_nothing_of_names_that_are_too_long_for_it(length, said):
    """Seen on the real one: it does nothing, and says so in its log only."""
    found = look(KSERVE, inference_service(), namespace="n" * length)  # assistant-7-predictor-NAMESPACE: 63, and 64
    assert ("Use a shorter name or namespace" in found.message, found.failed) == (said, said)


HOST = {"placement": {"kind": "Host", "host": "gpu-3"}, "replicas": 2}


def on_host(*statuses: Json | None, host: str | None = "gpu-3") -> list[Json]:
    """The processes of it; one without a status is not there."""
    labels = {"pilotage.dev/endpoint-uid": UID}
    spec = {"host": host} if host else {}
    return [
        {
            "kind": "HostProcess",
            "metadata": {"name": f"assistant-7-{number}", "labels": labels},
            "spec": spec,
            "status": status,
        }
        for number, status in enumerate(statuses)
        if status is not None
    ]


READY = {"phase": "Running", "ready": True}
FETCHING = {"phase": "Fetching", "ready": False, "message": "34 % of 4.1 GiB"}
FAILED = {"phase": "Failed", "ready": False, "message": "the checksum is wrong."}
LOST = {"phase": "Lost", "ready": False, "message": "host/gpu-3 is lost"}


@pytest.mark.parametrize(
    ("objects", "expected", "said"),
    [
        (
            [],
            (0, False, "ProcessesStarting", False),
            "not created yet (hostprocess/assistant-7-0; 0 of 2 processes are ready).",
        ),
        (on_host(READY, READY), (2, True, "ProcessesReady", False), "2 of 2 processes are ready."),
        (
            on_host({}, {}, host=None),
            (0, False, "Unplaced", False),
            "not placed: no Host was chosen yet (hostprocess/assistant-7-0; 0 of 2 processes are ready).",
        ),
        (
            on_host(READY, {}),
            (1, False, "ProcessesStarting", False),
            "the agent of host/gpu-3 has not accepted it yet (hostprocess/assistant-7-1 on host/gpu-3; 1 of 2",
        ),
        (
            on_host(FETCHING, READY),
            (1, False, "ProcessesStarting", False),
            "34 % of 4.1 GiB (hostprocess/assistant-7-0 on host/gpu-3: Fetching; 1 of 2 processes are ready).",
        ),
        (
            on_host(FETCHING, FAILED),
            (0, False, "ProcessFailed", False),
            "the checksum is wrong (hostprocess/assistant-7-1 on host/gpu-3: Failed; 0 of 2 processes are ready).",
        ),
        (on_host(FAILED, FAILED), (0, False, "ProcessFailed", True), "hostprocess/assistant-7-0 on host/gpu-3: Failed"),
        (on_host(READY, FAILED), (1, False, "ProcessFailed", True), "hostprocess/assistant-7-1 on host/gpu-3: Failed"),
        (on_host(FETCHING, LOST), (0, False, "HostLost", False), "hostprocess/assistant-7-1 on host/gpu-3: Lost"),
    ],
)
def test_of_a_host(objects, expected, said):
    found = look(HOST, *objects)
    assert (found.ready, found.available, found.reason, found.failed) == expected
    assert said in found.message
    assert found.unknown == (found.reason == "HostLost")


def test_a_process_that_goes_is_not_ready_whatever_it_says():
    [first, second] = on_host(READY, READY)
    second["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = look(HOST, first, second)
    assert (found.ready, found.available) == (1, False)
    assert found.message.startswith("being deleted, and replaced then (hostprocess/assistant-7-1;")


def test_on_a_host_none_may_be_wanted():
    found = look(HOST | {"replicas": 0})
    assert (found.ready, found.desired, found.available, found.reason) == (0, 0, True, "ScaledToZero")


def test_where_requests_go():
    assert backend(subject(), 7) == ("assistant-7", 80)
    assert backend(subject(KSERVE), 7) == ("assistant-7-predictor", 80)
    assert backend(subject(HOST), 7) == ("assistant-7", 80)


def pod(container: Json | None = None, kind: str = "containerStatuses", **status: Any) -> Object:
    statuses = {kind: [{"name": "server", "ready": False, **container}]} if container else {}
    return Object.from_dict({"kind": "Pod", "metadata": {"name": "assistant-7-x"}, "status": {**statuses, **status}})


SCHEDULER = (
    "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/3 nodes are "
    "available: 3 No preemption victims found for incoming pod."
)
NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCHEDULER}
NO_IMAGE = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}}
NOT_PULLED = {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such tag"}}}
NO_SECRET = {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}}}


def ended(restarts: int) -> Json:
    last = {"terminated": {"exitCode": 1, "message": "log " * 500 + "out of memory"}}
    return {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": last, "restartCount": restarts}


@pytest.mark.parametrize(
    ("pods", "reason", "said", "failed"),
    [
        ([], "ReplicasStarting", "0 of 2 replicas are ready.", False),
        ([pod(), pod({"state": {"waiting": {"reason": "PodInitializing"}}})], "ReplicasStarting", "0 of 2", False),
        (
            [pod(conditions=[NO_NODE])],
            "Unschedulable",
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu (pod/assistant-7-x; 0 of 2 replicas are ready).",
            False,
        ),
        (
            [pod(NO_IMAGE)],
            "ImagePullBackOff",
            "no such tag (pod/assistant-7-x, container server; 0 of 2 replicas are ready).",
            True,
        ),
        ([pod(NOT_PULLED)], "ImagePullBackOff", "no such tag (pod/assistant-7-x, container server;", True),
        ([pod(conditions=[NO_NODE]), pod(NO_SECRET)], "CreateContainerConfigError", "not found", True),
        ([pod(ended(2), "initContainerStatuses")], "CrashLoopBackOff", "exited 2 times, last with code 1: …", False),
        ([pod(ended(5))], "CrashLoopBackOff", "out of memory", True),
    ],
)
def test_pods_say_why_they_do_not_start(pods, reason, said, failed):
    found = explained(look({"replicas": 2}, deployment("assistant-7")), pods)
    assert (found.reason, found.failed, found.ready, found.desired) == (reason, failed, 0, 2)
    assert said in found.message
    assert found.troubled == (reason != "ReplicasStarting")
    assert len(found.message) < 600


def test_one_pod_in_trouble_does_not_make_a_ready_revision_fail():
    ready = look({"replicas": 2}, deployment("assistant-7", 2))
    assert explained(ready, [pod(NO_IMAGE)]) == ready
