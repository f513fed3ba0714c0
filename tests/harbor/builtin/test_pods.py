"""Pods: what admission adds, how long they have to end, and what kubectl says about them."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.builtin.pod_cells import summary
from pilotage_harbor.builtin.pods import grace_period, qos_class
from tests.harbor.builtin.harness import KINDS, NAMESPACE, SYSTEM, Json, Shelf, default_shelf

STRATEGY = KINDS["v1", "Pod"].strategy
RUNNING = {"name": "a", "ready": True, "restartCount": 2, "state": {"running": {}}}


def pod(**spec: Any) -> Json:
    meta = SYSTEM | {"name": "p", "namespace": NAMESPACE}
    spec.setdefault("containers", [{"name": "a", "image": "x"}])
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    STRATEGY.default(obj)
    return obj


def test_a_token_is_mounted_where_the_account_exists_and_wants_it():
    with_account, without = pod(), pod()
    STRATEGY.prepare_create(with_account, default_shelf())
    STRATEGY.prepare_create(without, Shelf())
    assert len(with_account["spec"]["volumes"]) == 1
    assert "volumes" not in without["spec"]
    assert without["spec"]["serviceAccountName"] == "default"


def test_an_account_that_is_named_must_exist():
    with pytest.raises(StatusError, match='serviceaccount "nobody" not found') as refused:
        STRATEGY.prepare_create(pod(serviceAccountName="nobody"), default_shelf())
    assert refused.value.code == 403


def test_priority_comes_from_the_class_and_from_the_default_class():
    classes = [
        {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"},
        {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True},
    ]
    shelf = Shelf(**{"priorityclasses.scheduling.k8s.io": classes})
    named, plain = pod(priorityClassName="high"), pod()
    for each in (named, plain):
        STRATEGY.prepare_create(each, shelf)
    assert (named["spec"]["priority"], named["spec"]["preemptionPolicy"]) == (7, "Never")
    assert (plain["spec"]["priority"], plain["spec"]["priorityClassName"]) == (3, "usual")


@pytest.mark.parametrize(
    ("spec", "status", "requested", "seconds"),
    [
        ({}, {}, None, 0),
        ({"nodeName": "n"}, {}, None, 30),
        ({"nodeName": "n"}, {}, 5, 5),
        ({"nodeName": "n"}, {}, -1, 1),
        ({"nodeName": "n"}, {"phase": "Succeeded"}, 5, 0),
    ],
)
def test_how_long_a_pod_has_to_end(spec: Json, status: Json, requested: int | None, seconds: int):
    assert grace_period(pod(**spec) | {"status": status}, requested) == seconds


@pytest.mark.parametrize(
    ("resources", "name"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}, "Burstable"),
    ],
)
def test_class_of_service(resources: Json, name: str):
    assert qos_class({"containers": [{"resources": resources}]}) == name


@pytest.mark.parametrize(
    ("status", "word", "ready"),
    [
        ({"phase": "Pending"}, "Pending", 0),
        ({"phase": "Running", "containerStatuses": [RUNNING]}, "Running", 1),
        (
            {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "CrashLoopBackOff",
            0,
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3", 0),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, "Init:0/1", 0),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted", 0),
    ],
)
def test_the_one_word_for_its_state(status: Json, word: str, ready: int):
    obj = pod(initContainers=[{"name": "i", "image": "x"}]) | {"status": status}
    found = summary(obj)
    assert (found.reason, found.ready, found.total) == (word, ready, 1)
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert summary(obj).reason == ("Terminating" if status["phase"] not in ("Failed", "Succeeded") else word)


def test_a_status_keeps_its_class_of_service():
    old = pod() | {"status": {"phase": "Pending", "qosClass": "BestEffort"}}
    new = pod(nodeName="elsewhere") | {"status": {"phase": "Running"}}
    STRATEGY.prepare_status_update(new, old)
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert "nodeName" not in new["spec"]
    new["status"]["qosClass"] = "Guaranteed"
    assert [cause.field for cause in STRATEGY.validate_status_update(new, old, Shelf())] == ["status.qosClass"]
