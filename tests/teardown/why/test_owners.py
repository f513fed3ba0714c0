"""Ownership that blocks, is lost, is cyclic or points nowhere, staged on the real API server."""

import asyncio
import secrets
import shlex
import uuid

import pytest

from controlplane import Cluster
from pilotage.kube import Object, Propagation, Resource
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from pilotage.teardown.diagnosis.why.render import remedies_of, render
from tests.support import kinds
from tests.support.waiting import until
from tests.teardown.why.staging import Stage, controllers_paused, name_of, owner, root_codes, the

MINUTES = 60
MAPS = kinds.CONFIG_MAPS


def hold() -> str:
    """A finalizer that no controller removes."""
    return f"x{secrets.token_hex(4)}.test/hold"


async def test_a_foreground_deletion_waits_for_a_chain_of_dependents(stage: Stage) -> None:
    top = await stage.make(MAPS, kinds.config_map("top"))
    middle = await stage.make(MAPS, kinds.config_map("middle"), ownerReferences=[owner(MAPS, top)])
    bottom = await stage.make(
        MAPS, kinds.config_map("bottom"), ownerReferences=[owner(MAPS, middle)], finalizers=[hold()]
    )
    await stage.delete(MAPS, top, Propagation.FOREGROUND)
    await until(stage.client, MAPS, bottom.key, _terminating)
    explanation = await stage.why(MAPS, top)
    assert root_codes(explanation) == {CauseCode.FINALIZER_UNCLAIMED}
    assert name_of(the(explanation, CauseCode.FINALIZER_UNCLAIMED).subject).name == "bottom"
    lines = render(explanation)
    assert lines[0].endswith("(foreground)")
    assert [line.strip(" └─") for line in lines[1:3]] == [
        f"waits for configmap/middle -n {stage.namespace}, which it owns",
        f"waits for configmap/bottom -n {stage.namespace}, which it owns",
    ]
    assert remedies_of(explanation)[-1].subject.name.name == "bottom"  # type: ignore[union-attr]


@pytest.mark.usefixtures("paused_controllers")
async def test_a_foreground_deletion_whose_dependent_is_not_being_deleted(stage: Stage) -> None:
    top = await stage.make(MAPS, kinds.config_map("top"))
    await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[owner(MAPS, top)])
    await stage.delete(MAPS, top, Propagation.FOREGROUND)
    assert (await stage.why(MAPS, top)).verdict is StuckVerdict.NOT_STUCK  # it has only just begun
    explanation = await stage.why(MAPS, top, seconds_later=10 * MINUTES)
    root = the(explanation, CauseCode.FOREGROUND_DEPENDENT_NOT_DELETED)
    assert name_of(root.subject).name == "child"
    assert [remedy.code for remedy in remedies_of(explanation)] == ["", "replay-delete"]
    assert explanation.verdict is StuckVerdict.STUCK


@pytest.mark.usefixtures("paused_controllers")
async def test_a_foreground_deletion_that_lost_its_way(stage: Stage) -> None:
    top = await stage.make(MAPS, kinds.config_map("top"))
    await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[owner(MAPS, top, blockOwnerDeletion=False)])
    await stage.delete(MAPS, top, Propagation.FOREGROUND)
    assert (await stage.why(MAPS, top)).verdict is StuckVerdict.NOT_STUCK
    explanation = await stage.why(MAPS, top, seconds_later=10 * MINUTES)
    assert root_codes(explanation) == {CauseCode.FOREGROUND_LOST}
    first = remedies_of(explanation)[0]
    assert (first.code, first.subject.uid) == ("redrive-foreground", top.meta.uid)  # type: ignore[union-attr]
    assert await stage.delete(MAPS, top, Propagation.BACKGROUND) is None  # the remedy's effect: it is gone


@pytest.mark.usefixtures("paused_controllers")
async def test_an_orphaning_deletion_that_is_not_finished(stage: Stage) -> None:
    top = await stage.make(MAPS, kinds.config_map("top"))
    child = await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[owner(MAPS, top)])
    await stage.delete(MAPS, top, Propagation.ORPHAN)
    explanation = await stage.why(MAPS, top, seconds_later=10 * MINUTES)
    root = the(explanation, CauseCode.ORPHAN_PENDING)
    assert root.evidence == (f"configmap/{child.meta.name} -n {stage.namespace} still names it as an owner.",)
    assert root_codes(explanation) == {CauseCode.ORPHAN_PENDING}
    assert "although it was to stay" in remedies_of(explanation)[-1].effect


@pytest.mark.usefixtures("paused_controllers")
async def test_two_that_own_each_other_wait_for_each_other(stage: Stage) -> None:
    one = await stage.make(MAPS, kinds.config_map("one"))
    two = await stage.make(MAPS, kinds.config_map("two"), ownerReferences=[owner(MAPS, one)])
    changed = {**one.to_dict(), "metadata": {**one.to_dict()["metadata"], "ownerReferences": [owner(MAPS, two)]}}
    await stage.client.replace(MAPS, changed)
    present = await stage.why(MAPS, one)
    assert root_codes(present) == {CauseCode.OWNER_CYCLE}
    assert present.verdict is StuckVerdict.NOT_STUCK  # a delete of either takes both
    await stage.delete(MAPS, one, Propagation.FOREGROUND)
    await stage.delete(MAPS, two, Propagation.FOREGROUND)
    explanation = await stage.why(MAPS, one, seconds_later=10 * MINUTES)
    root = the(explanation, CauseCode.CYCLE)
    here = stage.namespace
    assert root.text == f"waits for itself: configmap/one -n {here} → configmap/two -n {here} → configmap/one -n {here}"
    assert explanation.verdict is StuckVerdict.STUCK
    [remedy] = remedies_of(explanation)
    assert remedy.command == f"pilotage delete configmap/one configmap/two -n {here}"


async def test_an_owner_in_another_namespace_counts_as_gone(stage: Stage) -> None:
    other = await stage.make(MAPS, kinds.config_map(f"owner-{secrets.token_hex(3)}"), namespace="default")
    child = await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[owner(MAPS, other)], finalizers=[hold()])
    await until(stage.client, MAPS, child.key, _terminating)  # the garbage collector did that
    explanation = await stage.why(MAPS, child)
    root = the(explanation, CauseCode.OWNER_IN_OTHER_NAMESPACE)
    assert f"configmap/{other.meta.name} -n default is in another namespace" in root.text
    assert "began to delete it" in root.text
    assert root_codes(explanation) == {CauseCode.OWNER_IN_OTHER_NAMESPACE, CauseCode.FINALIZER_UNCLAIMED}
    marked = [line for line in render(explanation) if line.endswith("← root cause")]
    assert len(marked) == 1  # the reason for the deletion is a note; the reason why it does not finish is the cause
    assert "NO OWNER FOUND" in marked[0]
    assert [(remedy.code, remedy.subject) for remedy in remedies_of(explanation)] == [
        ("", explanation.subject),
        ("strip-finalizer", explanation.subject),
    ]


@pytest.mark.parametrize("wrong", [CauseCode.OWNER_IN_OTHER_NAMESPACE, CauseCode.OWNER_WRONG_UID])
async def test_what_is_not_collected_yet_is_kept_without_its_wrong_owner(
    stage: Stage, own_cluster: Cluster, wrong: CauseCode
) -> None:
    """The remedy of `why`, applied before the garbage collector has processed it: the object stays afterwards."""
    where = "default" if wrong is CauseCode.OWNER_IN_OTHER_NAMESPACE else stage.namespace
    other = await stage.make(MAPS, kinds.config_map(f"owner-{secrets.token_hex(3)}"), namespace=where)
    reference = owner(MAPS, other) | ({"uid": str(uuid.uuid4())} if wrong is CauseCode.OWNER_WRONG_UID else {})
    with controllers_paused(own_cluster):
        child = await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[reference])
        lost = await stage.make(MAPS, kinds.config_map("lost"), ownerReferences=[reference])
        explanation = await stage.why(MAPS, child)
        assert root_codes(explanation) == {wrong}
        [remedy] = remedies_of(explanation)
        assert (remedy.title, remedy.effect) == ("Remove the owner reference", "It stays, without an owner.")
        await asyncio.to_thread(own_cluster.kubectl, *shlex.split(remedy.command)[1:])
    await until(stage.client, MAPS, lost.key, lambda found: found is None)  # that one was collected, and so would it be
    kept = await stage.client.get(MAPS, child.key)
    assert (kept.meta.uid, kept.meta.owner_references, kept.meta.terminating) == (child.meta.uid, (), False)


async def test_an_owner_of_the_same_name_with_another_uid_counts_as_gone(stage: Stage) -> None:
    again = await stage.make(MAPS, kinds.config_map("owner"))
    old = owner(MAPS, again, uid=str(uuid.uuid4()))
    child = await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[old], finalizers=[hold()])
    await until(stage.client, MAPS, child.key, _terminating)
    explanation = await stage.why(MAPS, child)
    root = the(explanation, CauseCode.OWNER_WRONG_UID)
    assert root.evidence == (
        f"The owner reference names uid {old['uid']}; configmap/owner -n {stage.namespace} has uid {again.meta.uid}.",
    )
    assert CauseCode.FINALIZER_UNCLAIMED in root_codes(explanation)
    assert [(remedy.code, remedy.subject) for remedy in remedies_of(explanation)] == [
        ("", explanation.subject),
        ("strip-finalizer", explanation.subject),
    ]


async def test_an_owner_that_is_gone_is_why_it_is_being_deleted(stage: Stage) -> None:
    first = await stage.make(MAPS, kinds.config_map("owner"))
    child = await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[owner(MAPS, first)], finalizers=[hold()])
    await stage.delete(MAPS, first)
    await until(stage.client, MAPS, child.key, _terminating)
    explanation = await stage.why(MAPS, child)
    assert "its owner configmap/owner" in the(explanation, CauseCode.OWNER_GONE).text


async def test_what_has_no_namespace_is_never_collected_for_an_owner_that_has_one(stage: Stage) -> None:
    top = await stage.make(MAPS, kinds.config_map("owner"))
    role = {"metadata": {"name": f"dependent-{secrets.token_hex(3)}"}, "rules": []}
    child = await stage.make(kinds.CLUSTER_ROLES, role, ownerReferences=[owner(MAPS, top)])
    explanation = await stage.why(kinds.CLUSTER_ROLES, child)
    assert root_codes(explanation) == {CauseCode.OWNER_NAMESPACED}
    assert explanation.headline == "present; nothing collects it"
    assert remedies_of(explanation)[0].command == f"pilotage delete clusterrole/{child.meta.name}"


async def test_an_owner_of_a_kind_that_is_not_served_leaves_it_alone(stage: Stage) -> None:
    lost = {"apiVersion": "gone.example.org/v1", "kind": "Gadget", "name": "g", "uid": str(uuid.uuid4())}
    child = await stage.make(MAPS, kinds.config_map("child"), ownerReferences=[lost])
    explanation = await stage.why(MAPS, child)
    assert root_codes(explanation) == {CauseCode.OWNER_UNREADABLE}
    assert f"gadget/g -n {stage.namespace}" in the(explanation, CauseCode.OWNER_UNREADABLE).text
    assert explanation.unread[0].startswith("Gadget.gone.example.org: ")
    assert remedies_of(explanation)[0].command == "kubectl api-resources"


@pytest.mark.usefixtures("paused_controllers")
async def test_another_owner_that_lives_keeps_it(stage: Stage) -> None:
    living = await stage.make(MAPS, kinds.config_map("living"))
    leaving = await stage.make(MAPS, kinds.config_map("leaving"))
    references = [owner(MAPS, living), owner(MAPS, leaving)]
    child = await stage.make(MAPS, kinds.config_map("child"), ownerReferences=references)
    await stage.delete(MAPS, leaving)
    explanation = await stage.why(MAPS, child)
    root = the(explanation, CauseCode.OWNER_KEEPS)
    assert f"configmap/living -n {stage.namespace} owns it, too" in root.text
    assert explanation.verdict is StuckVerdict.NOT_STUCK


async def test_what_still_serves_below_it_is_named(stage: Stage, widgets: Resource) -> None:
    top = await stage.make(widgets, {"metadata": {"name": "endpoint"}}, finalizers=["longhorn.io"])
    below = owner(widgets, top)
    await stage.make(kinds.DEPLOYMENTS, kinds.deployment("web", replicas=0), ownerReferences=[below])
    await stage.make(
        kinds.SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}, ownerReferences=[below]
    )
    await stage.make(MAPS, kinds.config_map("web"), ownerReferences=[below])
    await stage.delete(widgets, top)
    explanation = await stage.why(widgets, top)
    serving = {f"{item.resource.kind}/{item.meta.name}" for item in explanation.still_serving}
    assert serving == {"Deployment/web", "Service/web"}
    line = next(line for line in render(explanation) if line.startswith("Still serving: "))
    assert set(line.removeprefix("Still serving: ").split(", ")) == {"deployment/web", "service/web"}


def _terminating(obj: Object | None) -> bool:
    return obj is not None and obj.meta.terminating
