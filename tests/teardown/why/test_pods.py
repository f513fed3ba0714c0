"""Pods that are going, or should be: their grace, their node, their kubelet."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilotage.kube import PODS, Client, Object
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from pilotage.teardown.diagnosis.why.render import remedies_of
from tests.support.waiting import until
from tests.teardown.why.objects import FINALIZER, SILENT, event, force_pods_out, node, pod, unique
from tests.teardown.why.staging import Stage, all_causes, name_of, root_codes, the

pytestmark = pytest.mark.usefixtures("namespace_for_pods")


@pytest.fixture(autouse=True)
async def no_pods_left(client: Client, namespace: str) -> AsyncIterator[None]:
    yield
    await force_pods_out(client, namespace)


async def deleted_pod(stage: Stage, on: str, grace: int = 30, **spec: Any) -> Object:
    """A pod that is being deleted, on a node whose kubelet says nothing about it."""
    made = await stage.make(PODS, pod("worker", on, grace=grace, **spec), annotations=SILENT)
    await stage.status(PODS, made, {"phase": "Running"})
    await stage.delete(PODS, made)
    return made


async def test_a_pod_on_a_lost_node(stage: Stage):
    name = unique("lost")
    made = await deleted_pod(stage, name, grace=1)
    lost = await node(stage, name, "Unknown", "NodeStatusUnknown")
    found = await stage.why(PODS, made, seconds_later=60)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"node-lost"}
    root = the(found, "node-lost")
    assert name_of(root.subject).name == lost.meta.name
    assert "NodeStatusUnknown" in root.evidence[0]
    assert root.remedies[0].title == f"Bring node/{name} back"
    step = the(found, "pod-on-lost-node")
    assert "out-of-service" in step.remedies[0].command
    assert step.remedies[-1].code == "force-delete-pod"
    assert "the record, not the process" in step.remedies[-1].effect


async def test_a_pod_whose_node_was_deleted(stage: Stage):
    name = unique("gone")
    made = await deleted_pod(stage, name, grace=1)
    found = await stage.why(PODS, made, seconds_later=60)
    assert root_codes(found) == {"node-gone"}
    assert str(the(found, "node-gone").subject) == f"node/{name}"
    assert [remedy.code for remedy in the(found, "pod-on-lost-node").remedies] == ["force-delete-pod"]


async def test_a_pod_within_its_grace_is_not_stuck(stage: Stage):
    name = unique("calm")
    hook = {"preStop": {"exec": {"command": ["sleep", "200"]}}}
    containers = [{"name": "main", "image": "none", "lifecycle": hook}]
    made = await deleted_pod(stage, name, grace=300, containers=containers)
    await node(stage, name, "True")
    found = await stage.why(PODS, made, seconds_later=60)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert found.headline.startswith("not stuck: ")
    assert found.headline.endswith(" of grace left")
    note = the(found, "pod-in-grace")
    assert "preStop hook of main" in note.evidence[1]
    assert note.remedies == ()


async def test_a_pod_past_its_grace_that_no_kubelet_confirms(stage: Stage):
    name = unique("deaf")
    limits = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}
    containers = [{"name": "main", "image": "none", "resources": limits}]
    made = await deleted_pod(stage, name, grace=5, containers=containers)
    await node(stage, name, "True")
    found = await stage.why(PODS, made, seconds_later=125)
    assert found.verdict is StuckVerdict.STUCK
    root = the(found, "pod-overdue")
    assert root.text.startswith("is 2m past its grace") or root.text.startswith("is 11")
    assert name in root.text
    force = root.remedies[-1]
    assert force.code == "force-delete-pod"
    assert "hold 2 nvidia.com/gpu" in force.effect


async def test_a_pod_just_past_its_grace_is_not_stuck(stage: Stage):
    name = unique("slow")
    made = await deleted_pod(stage, name, grace=5)
    await node(stage, name, "True")
    found = await stage.why(PODS, made, seconds_later=8)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert root_codes(found) == {"pod-confirming"}


async def test_a_pod_whose_node_is_not_ready(stage: Stage):
    name = unique("ill")
    made = await deleted_pod(stage, name, grace=5)
    await node(stage, name, "False", "KubeletNotReady")
    found = await stage.why(PODS, made, seconds_later=90)
    assert root_codes(found) == {"node-not-ready"}
    assert "KubeletNotReady" in the(found, "node-not-ready").evidence[0]


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("FailedUnMount", "UnmountVolume.TearDown failed: device is busy", "pod-volume-stuck"),
        ("FailedKillPod", "error killing pod: context deadline exceeded", "pod-cannot-be-killed"),
    ],
)
async def test_a_pod_whose_kubelet_says_why_it_cannot_end_it(stage: Stage, reason: str, message: str, code: str):
    name = unique("busy")
    made = await deleted_pod(stage, name, grace=5)
    await node(stage, name, "True")
    await event(stage, PODS, made, reason, message)
    found = await stage.why(PODS, made, seconds_later=60)
    assert root_codes(found) == {code}
    assert message in the(found, code).evidence[0]
    assert the(found, code).remedies[0].title == "Fix what the kubelet reports"


async def test_a_pod_with_a_finalizer_is_held_by_it_and_not_by_its_kubelet(stage: Stage):
    made = await stage.make(PODS, pod("held", "node-0", grace=1), finalizers=[FINALIZER])
    await stage.delete(PODS, made)
    await until(
        stage.client, PODS, made.key, lambda now: now is not None and now.meta.deletion_grace_period_seconds == 0
    )
    found = await stage.why(PODS, made, seconds_later=600)
    assert not [cause for cause in all_causes(found) if cause.code.startswith("pod-")]
    assert FINALIZER in the(found, "finalizer").text
    look, strip = remedies_of(found)
    assert look.command == f"kubectl describe pod/held -n {stage.namespace}"
    assert (strip.code, strip.detail, strip.subject) == ("strip-finalizer", FINALIZER, found.subject)
    assert strip.effect.startswith("LEAKS: ")


async def test_a_static_pod_comes_back(stage: Stage):
    annotations = {"kubernetes.io/config.mirror": "as-staged"}
    made = await stage.make(PODS, pod("kept", "node-0"), annotations=annotations)
    found = await stage.why(PODS, made)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert "node-0" in the(found, "pod-static").text
    assert the(found, "pod-static").remedies[0].command == "ssh node-0 ls /etc/kubernetes/manifests"
