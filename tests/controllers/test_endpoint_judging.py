"""The Job that judges a candidate: its manifest, and what its end means."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pytest

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.strategy import CanaryJob
from pilotage.controllers.endpoint.judging import GRACE_SECONDS, StepJob, judged, needs_pods, not_made
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import Revision
from pilotage.kube import LabelSelector, Object
from pilotage.kube.wire import format_time
from pilotage.serving.parts import Capabilities, EndpointRef, ResolvedModel, labels

Json = dict[str, Any]
NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
DEADLINE = 600
PENDING: Json = {"active": 1, "ready": 0}
RUNNING: Json = {"active": 1, "ready": 1}
EVICTED = [{"type": "DisruptionTarget", "status": "True", "message": "the node is drained"}]


def ended(type_: str, reason: str = "BackoffLimitExceeded", message: str = "") -> Json:
    return {"conditions": [{"type": type_, "status": "True", "reason": reason, "message": message}]}


def job(status: Json, age: float = 60.0) -> Object:
    created = format_time(NOW - dt.timedelta(seconds=age))
    metadata = {"namespace": "default", "name": "chat-2-step3", "uid": "j", "creationTimestamp": created}
    return Object.from_dict({"metadata": metadata, "spec": {"activeDeadlineSeconds": DEADLINE}, "status": status})


def pod(state: Json, *, owner: str = "j", deleted: bool = False, conditions: list[Json] | None = None) -> Object:
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": "chat-2-step3", "uid": owner}]
    metadata: Json = {"namespace": "default", "name": "p", "uid": "p", "ownerReferences": owners}
    if deleted:
        metadata["deletionTimestamp"] = format_time(NOW)
    statuses = [{"name": "sidecar", "state": {"terminated": {"exitCode": 1}}}, {"name": "evaluation", "state": state}]
    status = {"containerStatuses": statuses if state else [], "conditions": conditions or []}
    return Object.from_dict({"metadata": metadata, "status": status})


def exited(code: int, message: str = "") -> Json:
    return {"terminated": {"exitCode": code, "reason": "Error", **({"message": message} if message else {})}}


@dataclass(frozen=True)
class Case:
    name: str
    job: Object
    pods: tuple[Object, ...]
    result: str | None
    text: str = ""


FAILED = job(ended("Failed", message="Job has reached the specified backoff limit"))
CASES = [
    Case("it has just begun", job({}, 1), (), None),
    Case("it runs", job(RUNNING), (), None),
    Case("it succeeded", job(ended("Complete")), (), "Passed", "job/chat-2-step3 succeeded."),
    Case("it is about to succeed", job(ended("SuccessCriteriaMet")), (), None),
    Case("it is about to fail", job(ended("FailureTarget")), (pod(exited(1)),), None),
    Case("exit code 1", FAILED, (pod(exited(1, "12 of 40 answers are worse")),), "Worse",
         "job/chat-2-step3: exit code 1, 12 of 40 answers are worse"),
    Case("another exit code", FAILED, (pod(exited(2, "no such file")),), "Held",
         "job/chat-2-step3 gives no answer: exit code 2, no such file. Promote the step"),
    Case("a signal", FAILED, (pod(exited(137)),), "Held", "exit code 137, Error"),
    Case("a pod of somebody else", FAILED, (pod(exited(1), owner="x"),), "Held", "its exit code is not known"),
    Case("its pod is gone", FAILED, (), "Held", "specified backoff limit, and its exit code is not known"),
    Case("no container has ended", FAILED, (pod({}),), "Held", "its exit code is not known"),
    Case("it was evicted", FAILED, (pod(exited(1), conditions=EVICTED),), "Held",
         "pod/p was interrupted (the node is drained)"),
    Case("its pod was deleted", FAILED, (pod(exited(1), deleted=True),), "Held", "pod/p was interrupted (deleted)"),
    Case("over its time, and it ended with 1 when it was told to", job(ended("Failed", "DeadlineExceeded")),
         (pod(exited(1)),), "Held", "it was over its time"),
    Case("its image cannot be pulled", job(PENDING),
         (pod({"waiting": {"reason": "ImagePullBackOff", "message": "not found: eval"}}),), "Held",
         "cannot start: not found: eval (pod/p, container evaluation)"),
    Case("its image is being pulled", job(PENDING), (pod({"waiting": {"reason": "ContainerCreating"}}),), None),
    Case("nobody ends it", job(RUNNING, DEADLINE + GRACE_SECONDS), (), "Held", "does kube-controller-manager run?"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answer(case: Case):
    found = judged(3, case.job, case.pods, NOW)
    if case.result is None:
        assert found.answer is None
        assert found.again, "a deadline wakes nobody"
    else:
        assert found.answer is not None
        assert (found.answer.step, found.answer.result) == (3, case.result)
        assert case.text in found.answer.text


@pytest.mark.parametrize(
    ("seen", "needed"),
    [
        (job({}, 1), False),
        (job(PENDING), True),
        (job(RUNNING), False),
        (job(ended("Complete")), False),
        (FAILED, True),
    ],
    ids=["new", "not started", "runs", "succeeded", "failed"],
)
def test_pods_are_listed_only_where_they_say_something(seen, needed):
    assert needs_pods(seen, NOW) is needed


def test_a_job_that_cannot_be_created_holds_the_rollout_unless_its_name_is_about_to_be_free():
    refused = not_made(3, EndpointProblem("Forbidden", "no quota", 60.0))
    assert refused.answer is not None
    assert (refused.answer.result, refused.again) == ("Held", 60.0)
    assert refused.answer.text == "The Job cannot be created: no quota"
    assert not_made(3, EndpointProblem("PartTerminating", "it goes", 2.0, waits=True)) == (None, 2.0)


def revision(number: int, **spec: Any) -> Revision:
    read = EndpointSpec.read({"model": {"source": "hf://o/r/m.gguf"}, **spec})
    subject = EndpointRef("default", "chat", "u", read)
    return Revision(number, subject, ResolvedModel("chat", "hf://o/r/m.gguf"), "f", Capabilities())


def made(gateway_url: str = "", **spec: Any) -> Json:
    given = CanaryJob.read({"image": "eval", "args": ["--fast"], "env": [{"name": "N", "value": "5"}], "atMost": "5m"})
    body: Json = StepJob(3, given, revision(2, **spec), revision(1, **spec)).manifest(gateway_url).body
    return body


def env(body: Json) -> dict[str, str]:
    return {each["name"]: each["value"] for each in body["spec"]["template"]["spec"]["containers"][0]["env"]}


def test_its_manifest():
    body = made()
    assert body["metadata"] == {"name": "chat-2-step3", "labels": labels(revision(2).subject, 2)}
    assert (body["spec"]["backoffLimit"], body["spec"]["activeDeadlineSeconds"]) == (0, 300)
    spec = body["spec"]["template"]["spec"]
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    assert spec["containers"][0]["args"] == ["--fast"]
    assert "command" not in spec["containers"][0]
    assert spec["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_servers_with_a_volume_of_one_node_do_not_follow_it_to_another():
    own = made()["spec"]["template"]["metadata"]["labels"] | {"batch.kubernetes.io/job-name": "chat-2-step3"}
    cached = revision(2, cache={"size": "1Gi", "accessMode": "ReadWriteOnce"})
    deployment = next(part.body for part in cached.parts if part.resource.kind == "Deployment")
    affinity = deployment["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    selector = LabelSelector.from_object(term["labelSelector"])
    assert selector.matches(deployment["spec"]["template"]["metadata"]["labels"])
    assert not selector.matches(own)


def test_its_pod_is_not_taken_for_a_server():
    own = made()["spec"]["template"]["metadata"]["labels"]
    for part in revision(2).parts:
        if part.resource.kind == "Service":
            assert not part.body["spec"]["selector"].items() <= own.items()
        if part.resource.kind == "Deployment":
            assert not part.body["spec"]["selector"]["matchLabels"].items() <= own.items()


@pytest.mark.parametrize(
    ("gateway_url", "spec", "candidate"),
    [
        ("", {"route": {"kind": "HTTPProxy", "host": "a.example"}}, "http://chat-2.default.svc:80/v1"),
        ("http://gw.example:8080/", {"route": {"kind": "PilotageGateway"}},
         "http://gw.example:8080/endpoints/default/chat@2/v1"),
        ("http://gw.example", {"route": {"kind": "HTTPProxy", "host": "a.example"}}, "http://chat-2.default.svc:80/v1"),
        ("http://127.0.0.1:8080", {"route": {"kind": "PilotageGateway"}}, "http://chat-2.default.svc:80/v1"),
        ("http://localhost:8080", {"route": {"kind": "PilotageGateway"}}, "http://chat-2.default.svc:80/v1"),
        ("http://gw.example", {"route": {"kind": "PilotageGateway"}, "placement": {"kind": "KServe"}},
         "http://chat-2-predictor.default.svc:80/v1"),
    ],
)  # fmt: skip
def test_it_gets_the_addresses_of_both_sides(gateway_url, spec, candidate):
    found = env(made(gateway_url, **spec))
    serving = candidate.replace("chat-2", "chat-1").replace("@2", "@1")
    assert found == {"CANDIDATE_URL": candidate, "SERVING_URL": serving, "N": "5"}


def test_a_variable_of_the_user_replaces_one_of_ours():
    given = CanaryJob.read({"image": "eval", "env": [{"name": "SERVING_URL", "value": "http://other"}]})
    body = StepJob(3, given, revision(2), revision(1)).manifest("").body
    assert env(body)["SERVING_URL"] == "http://other"
