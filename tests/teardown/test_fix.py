"""One remedy at a time: only what is offered, only to the object that was meant, and with a true report."""

import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controlplane import Access, Cluster
from pilotage.kube import PODS, Absent, Client, Discovery, Object, Propagation, Resource, load_config, merge_patch
from pilotage.teardown.diagnosis.fix import FixOutcome, FixRefused, FixResult, fix, propose
from pilotage.teardown.diagnosis.remedies import Remedy, place, redrive_foreground, replay_delete, strip_finalizer
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation, StuckCause, StuckVerdict
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.resolve import until_resolved
from pilotage.teardown.snapshot.world import Item, World
from tests.support.kinds import CONFIG_MAPS, config_map
from tests.teardown.why.objects import FINALIZER, deleting, force_pods_out, pod, policy, refusing, unique
from tests.teardown.why.staging import Stage

OTHER = "staged.example.com/other"
NOW = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)


@pytest.fixture
async def client(cluster: Access) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as connected:
        yield connected


@pytest.fixture
async def stage(client: Client, namespace: str) -> AsyncIterator[Stage]:
    staged = Stage(client, namespace)
    yield staged
    await staged.clear()


async def read(stage: Stage, resource: Resource, obj: Object) -> Item:
    """The object as it is now, as a world would have it."""
    return Item(resource, await stage.client.get(resource, obj.key), full=True)


def offering(item: Item, *remedies: Remedy) -> tuple[World, Explanation]:
    """A live world with one object, and an explanation that offers these remedies for it."""
    world = World(NOW, live=True)
    world.add(item)
    return world, Explanation(
        item, StuckVerdict.STUCK, "stuck", (StuckCause("staged", item, "is staged", remedies=remedies),)
    )


def stripping(item: Item, finalizer: str = FINALIZER) -> tuple[World, Explanation]:
    return offering(item, strip_finalizer(item, finalizer, "what it stood for."))


async def held(stage: Stage, *finalizers: str) -> Object:
    """A ConfigMap that is being deleted, and held by finalizers."""
    made = await stage.make(CONFIG_MAPS, config_map("held", finalizers=list(finalizers or [FINALIZER])))
    await stage.delete(CONFIG_MAPS, made)
    return made


async def is_gone(stage: Stage, resource: Resource, obj: Object) -> bool:
    try:
        return (await stage.client.get(resource, obj.key)).meta.uid != obj.meta.uid
    except Absent:
        return True


# Removing a finalizer


async def test_a_finalizer_that_why_offers_to_remove_is_removed(stage: Stage):
    """The whole way from the question to the end, as the command line does it."""
    made = await held(stage)
    world = await gather(stage.client, Discovery(stage.client), namespaces=[stage.namespace])
    item = world.get(made.meta.uid)
    assert item is not None
    explanation = await until_resolved(stage.client, world, lambda known: explain(known, relate(known), item))
    proposal = propose(world, explanation, "strip-finalizer", finalizer=FINALIZER)
    text = "\n".join(proposal.describe())
    assert f"Removes the finalizer {FINALIZER}" in text
    assert made.meta.uid in text
    assert "LEAKS" in text
    assert not await is_gone(stage, CONFIG_MAPS, made)  # to describe is not to do
    result = await fix(stage.client, world, explanation, "strip-finalizer", finalizer=FINALIZER)
    assert result.outcome is FixOutcome.GONE
    assert await is_gone(stage, CONFIG_MAPS, made)


async def test_a_finalizer_is_never_chosen_for_a_person(stage: Stage):
    made = await held(stage)
    world, explanation = stripping(await read(stage, CONFIG_MAPS, made))
    with pytest.raises(FixRefused, match=f"Say --finalizer with one of: {FINALIZER}"):
        await fix(stage.client, world, explanation, "strip-finalizer")
    with pytest.raises(FixRefused, match="is not offered"):
        await fix(stage.client, world, explanation, "strip-finalizer", finalizer=OTHER)
    assert (await read(stage, CONFIG_MAPS, made)).meta.finalizers == (FINALIZER,)


async def test_other_finalizers_stay(stage: Stage):
    made = await held(stage, FINALIZER, OTHER)
    world, explanation = stripping(await read(stage, CONFIG_MAPS, made))
    proposal = propose(world, explanation, "strip-finalizer", finalizer=FINALIZER)
    assert proposal.describe()[-1] == f"Its other finalizers stay: {OTHER}."
    result = await fix(stage.client, world, explanation, "strip-finalizer", finalizer=FINALIZER)
    assert result.outcome is FixOutcome.GOING
    assert result.changes == (f"finalizer {FINALIZER} is off",)
    assert result.said.endswith(f"is still there: it waits for {OTHER}.")
    assert (await read(stage, CONFIG_MAPS, made)).meta.finalizers == (OTHER,)


async def test_an_object_that_somebody_has_changed_is_not_touched(stage: Stage):
    made = await held(stage)
    world, explanation = stripping(await read(stage, CONFIG_MAPS, made))
    await stage.client.patch(CONFIG_MAPS, made.key, merge_patch({"data": {"at": "work"}}))
    result = await fix(stage.client, world, explanation, "strip-finalizer", finalizer=FINALIZER)
    assert result.outcome is FixOutcome.REFUSED
    assert "has changed since it was read" in result.said
    assert result.command.endswith(f"pilotage why configmap/held -n {stage.namespace}")
    assert (await read(stage, CONFIG_MAPS, made)).meta.finalizers == (FINALIZER,)


async def test_an_object_that_is_not_being_deleted_keeps_its_finalizers(stage: Stage):
    made = await stage.make(CONFIG_MAPS, config_map("kept", finalizers=[FINALIZER]))
    world, explanation = stripping(await read(stage, CONFIG_MAPS, made))
    with pytest.raises(FixRefused, match="is not being deleted"):
        await fix(stage.client, world, explanation, "strip-finalizer", finalizer=FINALIZER)
    assert (await read(stage, CONFIG_MAPS, made)).meta.finalizers == (FINALIZER,)


async def another_of_its_name(stage: Stage, made: Object, **metadata: Any) -> Object:
    """Release the object, and create another one of its name."""
    await stage.client.patch(CONFIG_MAPS, made.key, merge_patch({"metadata": {"finalizers": None}}))
    return await stage.make(CONFIG_MAPS, config_map("held", **metadata))


async def test_another_object_of_the_name_keeps_its_finalizer(stage: Stage):
    made = await held(stage)
    world, explanation = stripping(await read(stage, CONFIG_MAPS, made))
    other = await another_of_its_name(stage, made, finalizers=[FINALIZER])
    await stage.delete(CONFIG_MAPS, other)
    result = await fix(stage.client, world, explanation, "strip-finalizer", finalizer=FINALIZER)
    assert result.outcome is FixOutcome.REFUSED
    assert (await read(stage, CONFIG_MAPS, other)).meta.finalizers == (FINALIZER,)


# Sending a delete again


async def test_a_foreground_deletion_is_driven_on(stage: Stage):
    """Its child is never removed; in the background the owner need not wait for it."""
    owner = await stage.make(CONFIG_MAPS, config_map("owner"))
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner.meta.uid,
        "blockOwnerDeletion": True,
    }
    await stage.make(CONFIG_MAPS, config_map("child", finalizers=[FINALIZER], ownerReferences=[reference]))
    await stage.delete(CONFIG_MAPS, owner, Propagation.FOREGROUND)
    item = await read(stage, CONFIG_MAPS, owner)
    world, explanation = offering(item, redrive_foreground(item))
    result = await fix(stage.client, world, explanation, "redrive-foreground")
    assert result.outcome is FixOutcome.GONE
    assert await is_gone(stage, CONFIG_MAPS, owner)


async def test_a_deletion_that_is_not_foreground_is_not_driven(stage: Stage):
    item = await read(stage, CONFIG_MAPS, await held(stage))
    with pytest.raises(FixRefused, match="is not in a foreground deletion"):
        propose(*offering(item, redrive_foreground(item)), "redrive-foreground")


async def test_a_delete_that_was_refused_is_sent_again(stage: Stage):
    made = await stage.make(CONFIG_MAPS, config_map("settings"))
    item = await read(stage, CONFIG_MAPS, made)
    world, explanation = offering(item, replay_delete(item))
    async with refusing(stage, deleting(stage, CONFIG_MAPS, made), *policy(stage, "DELETE", "not today")):
        refused = await fix(stage.client, world, explanation, "replay-delete")
        assert refused.outcome is FixOutcome.REFUSED
        assert "not today" in refused.said
        assert refused.command.endswith(f"pilotage why configmap/settings -n {stage.namespace}")
        assert not await is_gone(stage, CONFIG_MAPS, made)
    done = await fix(stage.client, world, explanation, "replay-delete")
    assert done.outcome is FixOutcome.GONE
    assert await is_gone(stage, CONFIG_MAPS, made)
    assert (await fix(stage.client, world, explanation, "replay-delete")).said.endswith("was gone already.")


async def test_another_object_of_the_name_is_not_deleted(stage: Stage):
    made = await stage.make(CONFIG_MAPS, config_map("held"))
    item = await read(stage, CONFIG_MAPS, made)
    world, explanation = offering(item, replay_delete(item))
    await stage.delete(CONFIG_MAPS, made)
    other = await stage.make(CONFIG_MAPS, config_map("held"))
    result = await fix(stage.client, world, explanation, "replay-delete")
    assert result.outcome is FixOutcome.REFUSED
    assert "it was not touched" in result.said
    assert not await is_gone(stage, CONFIG_MAPS, other)


async def test_a_deleted_object_that_stays_is_reported_as_it_is(stage: Stage):
    made = await stage.make(CONFIG_MAPS, config_map("held", finalizers=[FINALIZER]))
    item = await read(stage, CONFIG_MAPS, made)
    result = await fix(stage.client, *offering(item, replay_delete(item)), "replay-delete")
    assert result.outcome is FixOutcome.GOING
    assert result.changes[0].startswith("it has been terminating since ")
    assert f"it waits for {FINALIZER}" in result.said


# Forcing a pod


def forcing(item: Item) -> tuple[World, Explanation]:
    return offering(item, Remedy("Force it", "", "LEAKS: the process may still run.", 9, item, "force-delete-pod"))


@pytest.mark.usefixtures("namespace_for_pods")
async def test_a_pod_on_a_node_that_is_gone_is_forced_out(stage: Stage):
    made = await stage.make(PODS, pod("worker", unique("gone")))
    try:
        await stage.delete(PODS, made)
        world, explanation = forcing(await read(stage, PODS, made))
        text = propose(world, explanation, "force-delete-pod").describe()
        assert text[1].startswith(f"Sends DELETE for pod/worker -n {stage.namespace} with no grace")
        assert text[2] == "LEAKS: the process may still run."
        result = await fix(stage.client, world, explanation, "force-delete-pod")
        assert result.outcome is FixOutcome.GONE
        assert await is_gone(stage, PODS, made)
    finally:
        await force_pods_out(stage.client, stage.namespace)


async def test_only_pods_that_are_being_deleted_are_forced_out(stage: Stage):
    going = await read(stage, CONFIG_MAPS, await held(stage))
    with pytest.raises(FixRefused, match="is not a pod"):
        propose(*forcing(going), "force-delete-pod")
    present = Item(PODS, Object.from_dict({"metadata": {"name": "a", "namespace": "b", "uid": "1"}}), full=True)
    with pytest.raises(FixRefused, match="is not being deleted"):
        propose(*forcing(present), "force-delete-pod")


# Refusals before anything is sent


def thing(name: str, uid: str) -> Item:
    meta = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": "1"}
    return Item(CONFIG_MAPS, Object.from_dict({"metadata": meta}), full=True)


def test_what_is_not_offered_is_not_done():
    item = thing("a", "1")
    world, explanation = offering(item, replay_delete(item))
    with pytest.raises(FixRefused, match=r"There is no fix 'magic'\. Those are: replay-delete, redrive-foreground"):
        propose(world, explanation, "magic")
    with pytest.raises(
        FixRefused, match=r"Nothing here calls for force-delete-pod\. What can be done here: replay-delete"
    ):
        propose(world, explanation, "force-delete-pod")


def test_of_several_objects_one_has_to_be_named():
    one, two = thing("one", "1"), thing("two", "2")
    world, explanation = offering(one, replay_delete(one), replay_delete(two))
    with pytest.raises(FixRefused, match="several objects: configmap/one, configmap/two"):
        propose(world, explanation, "replay-delete")
    assert propose(world, explanation, "replay-delete", subject="configmap/two").subject is two
    with pytest.raises(FixRefused, match="is not offered for configmap/three"):
        propose(world, explanation, "replay-delete", subject="configmap/three")


def test_a_dump_is_not_changed():
    item = thing("a", "1")
    world, explanation = offering(item, replay_delete(item))
    world.live = False
    with pytest.raises(FixRefused, match="A dump cannot be changed"):
        propose(world, explanation, "replay-delete")


async def test_somebody_who_may_not_is_told_what_to_ask_for(stage: Stage, own_cluster: Cluster):
    made = await held(stage)
    world, explanation = stripping(await read(stage, CONFIG_MAPS, made))
    config = load_config(kubeconfig=str(own_cluster.user(unique("nobody"))))
    async with Client.connect(config) as nobody:
        result: FixResult = await fix(nobody, world, explanation, "strip-finalizer", finalizer=FINALIZER)
    assert result.outcome is FixOutcome.REFUSED
    assert result.said.startswith("You may not do that: ")
    assert result.advice == "Ask an administrator for the verb patch on configmaps."
    assert place(explanation.subject) == f"configmap/held -n {stage.namespace}"
