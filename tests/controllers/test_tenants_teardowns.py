"""Teardowns that another client has written: their targets, their subjects, and their statuses."""

import asyncio
from typing import Any

import msgspec
import pytest

from pilotage.api.names import TEARDOWNS
from pilotage.kube import Json, ObjectKey, Propagation, merge_patch
from pilotage.serving.resources import CLAIMS, DEPLOYMENTS
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import SimulatedCluster
from tests.controllers.two_teams import WHILE, part_labels, stalled, two_teams, uids


async def record(place: SimulatedCluster, namespace: str, about: str, parts: list[Json], **more: Any) -> ObjectKey:
    whose = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "namespace": about, "name": "chat"}
    spec = {"target": {**whose, "uid": "a-uid", **more.pop("target", {})}, "reason": "Deleted", "parts": parts, **more}
    body = {"metadata": {"namespace": namespace, "name": "mine", "labels": part_labels("a-uid", "chat")}, "spec": spec}
    return (await place.user.create(TEARDOWNS, body)).key


async def database(place: SimulatedCluster, namespace: str, **metadata: Any) -> Json:
    """A Deployment that Pilotage has nothing to do with; returns it as a part of a Teardown."""
    labels = {"app": "database"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "db"}]}}
    body = {
        "metadata": {"namespace": namespace, "name": "database", **metadata},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }
    made = await place.user.create(DEPLOYMENTS, body)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "resource": "deployments",
        "name": "database",
        "uid": made.meta.uid,
    }


@virtual
async def test_a_teardown_about_another_namespace_is_refused_once_and_touches_nothing():
    async with two_teams() as place:
        part = await database(place, "default")
        uid = (await place.deploy())["metadata"]["uid"]
        await place.serving()
        before = uids(place)
        key = await record(place, "team-a", "default", [part], allParts=True, target={"uid": uid})
        await place.until(lambda: stalled(place.world.find(TEARDOWNS, key)))
        condition = stalled(place.world.find(TEARDOWNS, key))
        assert (condition["type"], condition["reason"]) == ("Stalled", "ForeignTarget")
        assert "acts in its own namespace only" in condition["message"]
        await asyncio.sleep(WHILE)
        assert [each for each in place.writes() if "teardowns" in each] == [
            "patch teardowns.pilotage.dev/status team-a/mine"
        ]
        assert uids(place) == before
        assert place.world.find(DEPLOYMENTS, ObjectKey("default", "database"))


UNSERVED = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "chat", "uid": "other"}


@virtual
@pytest.mark.parametrize("owners", [[], [UNSERVED]], ids=["without an owner", "whose owner's kind is not served"])
async def test_a_teardown_does_not_take_what_it_names_by_uid_and_is_no_part(owners):
    async with two_teams() as place:
        part = await database(place, "team-a", ownerReferences=owners)
        key = await record(place, "team-a", "team-a", [part], allParts=True)
        await place.until(lambda: place.world.find(TEARDOWNS, key).get("status", {}).get("phase") == "done")
        assert "deletionTimestamp" not in place.world.find(DEPLOYMENTS, ObjectKey("team-a", "database"))["metadata"]
        notes = place.world.find(TEARDOWNS, key)["status"]["receipt"]["notes"]
        assert any("deployment/database stays: it is not proven to be a part" in note for note in notes)


async def forge_ledger(place, where, **forged):
    """A Teardown with a ledger that names the database, written while no operator runs."""
    part = await database(place, where)
    place.managers[-1].stop()
    await asyncio.sleep(30.0)
    key = await record(place, "team-a", "team-a", [])
    entry = {
        "resource": msgspec.to_builtins(DEPLOYMENTS),
        "namespace": where,
        "name": "database",
        "uid": part["uid"],
        "phase": "stop",
        "disposition": "delete",
        "reason": "named",
        **forged,
    }
    ledger = {"targets": [], "started": "2026-01-01T00:00:00Z", "policy": {}, "entries": [entry]}
    patch = merge_patch({"status": {"phase": "cordon", "ledger": ledger}})
    await place.user.patch(TEARDOWNS, key, patch, subresource="status")
    return key


@virtual
@pytest.mark.parametrize(
    ("where", "forged", "words"),
    [
        ("default", {}, "is in another namespace than the endpoint"),
        ("team-a", {}, "is not proven to be a part of the endpoint"),
        ("team-a", {"resource": msgspec.to_builtins(DEPLOYMENTS) | {"version": ".."}}, "is no kind"),
        ("team-a", {"after": ["u-1"]}, "'u-1', which is not in it"),
    ],
    ids=["another namespace", "its own namespace", "another path", "an order that contradicts itself"],
)
async def test_a_ledger_that_somebody_wrote_into_a_status_is_not_acted_on(where, forged, words):
    async with two_teams() as place:
        key = await forge_ledger(place, where, **forged)
        place.operate()
        await place.until(lambda: stalled(place.world.find(TEARDOWNS, key)))
        await asyncio.sleep(WHILE)
        assert stalled(place.world.find(TEARDOWNS, key))["reason"] == "LedgerRefused"
        assert words in stalled(place.world.find(TEARDOWNS, key))["message"]
        assert "deletionTimestamp" not in place.world.find(DEPLOYMENTS, ObjectKey(where, "database"))["metadata"]


@virtual
@pytest.mark.parametrize("where", ["team-a", "default"])
async def test_a_ledger_that_somebody_wrote_takes_nothing_of_others_into_keeping(where):
    async with two_teams() as place:
        key = await forge_ledger(place, where, disposition="keep")
        before = place.world.find(DEPLOYMENTS, ObjectKey(where, "database"))
        place.operate()
        await place.until(lambda: place.world.find(TEARDOWNS, key)["status"]["phase"] == "done")
        assert place.world.find(DEPLOYMENTS, ObjectKey(where, "database")) == before
        assert "it stays" in str(place.world.find(TEARDOWNS, key)["status"]["receipt"]["notes"])


@virtual
async def test_a_finished_record_of_another_namespace_does_not_release_an_endpoint():
    async with two_teams() as place:
        uid = (await place.deploy(deletion={"drainSeconds": 0}))["metadata"]["uid"]
        await place.serving()
        for namespace in ("team-a", "default"):
            labels = part_labels(uid, "chat")
            target = {"apiVersion": "v1", "kind": "x", "namespace": "team-a", "name": "chat", "uid": uid}
            name = f"chat-{uid[:8]}"  # that which the operator's own would have
            body = {"metadata": {"namespace": namespace, "name": name, "labels": labels}}
            made = await place.user.create(TEARDOWNS, body | {"spec": {"target": target, "reason": "Deleted"}})
            done = merge_patch({"status": {"phase": "done", "finished": "2126-01-01T00:00:00Z"}})
            await place.user.patch(TEARDOWNS, made.key, done, subresource="status")
        await asyncio.sleep(WHILE)
        await place.delete()
        await asyncio.sleep(WHILE)
        assert place.endpoint() is not None
        assert "exists and is about something else: delete it" in place.status()["waitingFor"]
        key = ObjectKey("default", f"chat-{uid[:8]}")
        forged = place.world.find(TEARDOWNS, key)["metadata"]["uid"]
        await place.user.delete(TEARDOWNS, key, uid=forged, propagation=Propagation.BACKGROUND)
        await place.gone()
        assert place.parts() == []


@virtual
async def test_a_teardown_does_not_take_a_volume_that_an_endpoint_left_on_purpose():
    """It is sealed for the next endpoint of its name: no uid that a record invents is that one's."""
    async with two_teams() as place:
        await place.deploy(cache={"size": "1Gi"}, deletion={"drainSeconds": 0, "keep": ["ModelCache"]})
        await place.serving()
        await place.delete()
        await place.gone()
        volume = ObjectKey("default", "chat-cache")
        part = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "resource": "persistentvolumeclaims"}
        part |= {"name": "chat-cache", "uid": place.world.find(CLAIMS, volume)["metadata"]["uid"]}
        key = await record(place, "default", "default", [part], target={"uid": "kept/chat"})
        await place.until(lambda: place.world.find(TEARDOWNS, key).get("status", {}).get("phase") == "done")
        assert "deletionTimestamp" not in place.world.find(CLAIMS, volume)["metadata"]
