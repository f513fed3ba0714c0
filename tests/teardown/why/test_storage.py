"""Claims, volumes and attachments that are held, and those that stay by intent."""

from collections.abc import AsyncIterator

import pytest

from pilotage.kube import PODS, Client, Object
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from tests.support.waiting import until
from tests.teardown.why.objects import (
    ATTACHMENTS,
    CLAIMS,
    STATEFUL_SETS,
    VOLUMES,
    claim,
    force_pods_out,
    pod,
    unique,
    volume,
)
from tests.teardown.why.staging import Stage, all_causes, root_codes, the


@pytest.fixture(autouse=True)
async def no_pods_left(client: Client, namespace: str) -> AsyncIterator[None]:
    yield
    await force_pods_out(client, namespace)


@pytest.mark.usefixtures("namespace_for_pods")
async def test_a_claim_that_a_running_pod_uses(stage: Stage):
    held = await stage.make(CLAIMS, claim("data"))
    await stage.make(PODS, pod("reader", "node-0", claim="data"))
    await stage.delete(CLAIMS, held)
    found = await stage.why(CLAIMS, held)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"pod-uses-claim"}
    root = the(found, "pod-uses-claim")
    assert str(root.subject) == f"pod/reader -n {stage.namespace}"
    assert root.remedies[0].command == f"kubectl delete pod/reader -n {stage.namespace}"
    assert "reader" in the(found, "pvc-in-use").text


@pytest.mark.usefixtures("namespace_for_pods")
async def test_a_claim_that_a_pod_uses_which_never_ends(stage: Stage):
    """The chain continues: the claim waits for the pod, the pod for its kubelet, and the node is gone."""
    held = await stage.make(CLAIMS, claim("data"))
    gone = unique("gone")
    reader = await stage.make(PODS, pod("reader", gone, claim="data", grace=1))
    await stage.delete(PODS, reader)
    await stage.delete(CLAIMS, held)
    found = await stage.why(CLAIMS, held, seconds_later=60)
    assert root_codes(found) == {"node-gone"}
    assert str(found.roots[0].subject) == f"node/{gone}"
    assert [cause.code for cause in all_causes(found)] == ["pvc-in-use", "pod-on-lost-node", "node-gone"]


@pytest.mark.usefixtures("namespace_for_pods")
async def test_a_pod_without_a_node_holds_no_claim(stage: Stage):
    kept = await stage.make(CLAIMS, claim("data"))
    await stage.make(PODS, pod("waiting", claim="data"))
    found = await stage.why(CLAIMS, kept)
    assert found.verdict is StuckVerdict.NOT_STUCK
    await stage.delete(CLAIMS, kept)
    await until(stage.client, CLAIMS, kept.key, lambda now: now is None)  # which the server agrees with


async def test_a_claim_that_outlives_its_stateful_set(stage: Stage):
    labels = {"app": "db"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {
        "replicas": 0,
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": template,
        "volumeClaimTemplates": [claim("data")],
    }
    await stage.make(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": spec})
    kept = await stage.make(CLAIMS, claim("data-db-0"))
    found = await stage.why(CLAIMS, kept)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert f"statefulset/db -n {stage.namespace}" in the(found, "pvc-kept-by-statefulset").text


async def bound(stage: Stage) -> tuple[Object, Object]:
    """A volume and the claim that holds it."""
    name = unique("staged")
    reference = {"namespace": stage.namespace, "name": "data"}
    disk = await stage.make(VOLUMES, volume(name, claimRef=reference))
    wish = claim("data")
    wish["spec"]["volumeName"] = name
    holder = await stage.make(CLAIMS, wish)
    await until(stage.client, VOLUMES, disk.key, lambda now: now and now.get("status", "phase") == "Bound")
    return disk, holder


async def test_a_volume_whose_claim_still_holds_it(stage: Stage):
    disk, holder = await bound(stage)
    await stage.delete(VOLUMES, disk)
    found = await stage.why(VOLUMES, disk)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"pv-bound"}
    root = the(found, "pv-bound")
    assert f"{stage.namespace}/data" in root.text
    assert root.remedies[0].command == f"kubectl delete persistentvolumeclaim/{holder.meta.name} -n {stage.namespace}"


async def test_a_released_volume_stays_by_intent(stage: Stage):
    disk, holder = await bound(stage)
    await stage.delete(CLAIMS, holder)
    await until(stage.client, VOLUMES, disk.key, lambda now: now and now.get("status", "phase") == "Released")
    found = await stage.why(VOLUMES, disk)
    assert found.verdict is StuckVerdict.NOT_STUCK
    note = the(found, "pv-retained")
    assert "Retain" in note.text
    assert note.remedies[0].effect.startswith("LEAKS")


async def test_a_volume_that_is_attached_to_a_lost_node(stage: Stage):
    """Its storage cannot be deleted before it is detached, and no component can confirm that."""
    name, lost = unique("staged"), unique("gone")
    body = volume(name, "Delete", csi={"driver": "csi.example.com", "volumeHandle": name})
    del body["spec"]["hostPath"]
    finalizers = ["external-provisioner.volume.kubernetes.io/finalizer"]
    disk = await stage.make(VOLUMES, body, finalizers=finalizers)
    spec = {"attacher": "csi.example.com", "nodeName": lost, "source": {"persistentVolumeName": name}}
    attachment = await stage.make(
        ATTACHMENTS, {"metadata": {"name": name}, "spec": spec}, finalizers=["external-attacher/csi-example-com"]
    )
    await stage.delete(ATTACHMENTS, attachment)
    await stage.delete(VOLUMES, disk)
    found = await stage.why(VOLUMES, disk)
    assert root_codes(found) == {"node-gone"}
    codes = [cause.code for cause in all_causes(found)]
    assert codes == ["pv-attached", "volume-attached-to-lost-node", "node-gone"]
    alone = await stage.why(ATTACHMENTS, attachment)
    assert "out-of-service" in the(alone, "volume-attached-to-lost-node").remedies[0].command
