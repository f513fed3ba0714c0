"""Bounds of what is stored: no object beyond etcd's limit by any path, and no uid that one can tell in advance."""

import json
import random

import pytest

from pilotage_harbor.core import OBJECT_BYTES_MAX, Core
from pilotage_harbor.core import core as harbor_core
from tests.harbor.test_by_passes import ask, harbor

__all__ = ["harbor"]

CONFIG_MAPS = "/api/v1/namespaces/x/configmaps"
PODS = "/api/v1/namespaces/x/pods"
LARGE = "x" * (OBJECT_BYTES_MAX // 2)
PATCHES = {
    "application/merge-patch+json": {"status": {"message": LARGE * 2}},
    "application/json-patch+json": [{"op": "add", "path": "/status/message", "value": LARGE * 2}],
    "application/strategic-merge-patch+json": {"status": {"message": LARGE * 2}},
}


async def pod(harbor, **meta):
    await ask(harbor, "POST", "/api/v1/namespaces/x/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "a", "image": "b", "args": [LARGE]}]}
    made = await ask(harbor, "POST", PODS, {"metadata": {"name": "a", **meta}, "spec": spec})
    assert made.status == 201
    return json.loads(made.body)


def message(answer):
    return answer.status, json.loads(answer.body).get("message")


TOO_LARGE = (500, "etcdserver: request is too large")


@pytest.mark.parametrize("media", PATCHES)
async def test_an_object_cannot_grow_by_patches(harbor, media):
    await pod(harbor)
    assert message(await ask(harbor, "PATCH", f"{PODS}/a/status", PATCHES[media], content_type=media)) == TOO_LARGE


async def test_an_object_that_is_too_large_is_not_created(harbor):
    data = {f"k{at}": "" for at in range(90_000)}  # little of it is data, and all of it has an owner
    assert message(await ask(harbor, "POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": data})) == TOO_LARGE
    assert json.loads((await ask(harbor, "GET", CONFIG_MAPS)).body)["items"] == []


async def test_an_object_of_the_largest_size_can_be_deleted(harbor, monkeypatch):
    made = await pod(harbor, finalizers=["example.com/hold"])
    monkeypatch.setattr(harbor_core, "OBJECT_BYTES_MAX", len(json.dumps(made, separators=(",", ":"))))
    deleted = await ask(harbor, "DELETE", f"{PODS}/a")
    assert json.loads(deleted.body)["metadata"]["deletionTimestamp"]
    freed = {"metadata": {"finalizers": None}}
    assert (await ask(harbor, "PATCH", f"{PODS}/a", freed, content_type="application/merge-patch+json")).status == 200
    assert (await ask(harbor, "GET", f"{PODS}/a")).status == 404


async def test_an_object_from_before_the_limit_can_shrink_and_go(harbor, monkeypatch):
    await pod(harbor, finalizers=["example.com/hold"], labels={"a": "b"})
    monkeypatch.setattr(harbor_core, "OBJECT_BYTES_MAX", 1000)
    media = "application/merge-patch+json"
    more = {"metadata": {"labels": {"a": "b", "c": "d"}}}
    assert message(await ask(harbor, "PATCH", f"{PODS}/a", more, content_type=media)) == TOO_LARGE
    less = {"metadata": {"labels": None}}
    assert (await ask(harbor, "PATCH", f"{PODS}/a", less, content_type=media)).status == 200
    assert (await ask(harbor, "DELETE", f"{PODS}/a")).status == 200


def test_uids_follow_from_a_seed_alone():
    assert Core(seed=1).uid() == Core(seed=1).uid()
    state = random.getstate()
    uids = []
    for _ in range(2):
        random.setstate(state)
        uids.append(Core().uid())
    assert uids[0] != uids[1]


def test_without_a_seed_nothing_can_be_recovered_from_uids():
    """A generator with a state gives it away in 400 uids or so; the system's has none."""
    with pytest.raises(NotImplementedError):
        Core()._rng.getstate()
