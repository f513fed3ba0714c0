"""Newcomers: members that appear after the plan was made are found before anything is called proven."""

from __future__ import annotations

import asyncio
import random

import pytest

from pilotage.catalogue.phase import Phase
from pilotage.kube import Discovery, GroupKind, Resource, merge_patch
from pilotage.teardown.engine.executor import watching
from pilotage.teardown.engine.newcomers import owner_of, searched
from pilotage.teardown.snapshot.gather import gather
from pilotage_sim.loop import virtual
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.world import SimulatedWorld
from tests.teardown.building import entry, ledger
from tests.teardown.onharbor import CONFIG_MAPS, config_map, entry_of

SECRETS = Resource("", "v1", "secrets", "Secret")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
ALL = (*parts.SERVING, parts.APPS, SECRETS, NODES)


def reference(owner, kind="App", **more):
    api_version = parts.APPS.api_version if kind == "App" else "v1"
    return {"apiVersion": api_version, "kind": kind, "name": owner.meta.name, "uid": owner.meta.uid} | more


@pytest.mark.parametrize("gathered", [True, False])
@virtual
async def test_a_part_of_a_kind_that_nobody_watches_is_taken_along(gathered):
    async with SimulatedWorld() as world:
        client = world.client("me")
        await client.create(*parts.definition())
        app = await client.create(*parts.app("one"))
        seen = await gather(client, Discovery(client), namespaces=("default",)) if gathered else None
        late = await config_map(client, "late", ownerReferences=[reference(app)], finalizers=["example.com/slow"])
        mine = ledger(entry_of(app, parts.APPS, phase=Phase.RELEASE))
        driving = asyncio.create_task(watching(client, mine, rng=random.Random(1), world=seen).run())
        await asyncio.sleep(5)
        assert not driving.done()
        await client.patch(CONFIG_MAPS, late.key, merge_patch({"metadata": {"finalizers": None}}))
        outcome = await driving
        assert outcome.complete
        assert world.find(CONFIG_MAPS, late.key) is None
        assert outcome.ledger.by_uid()[late.meta.uid].reason == "appeared later; owned by app/one -n default"


@virtual
async def test_what_somebody_else_owns_too_is_left_alone():
    async with SimulatedWorld() as world:
        client = world.client("me")
        await client.create(*parts.definition())
        app, other = await client.create(*parts.app("one")), await config_map(client, "other")
        shared = await config_map(client, "shared", ownerReferences=[reference(app), reference(other, "ConfigMap")])
        seen = await gather(client, Discovery(client), namespaces=("default",))
        mine = ledger(entry_of(app, parts.APPS, phase=Phase.RELEASE))
        outcome = await watching(client, mine, rng=random.Random(1), world=seen).run()
        assert outcome.complete
        assert world.find(CONFIG_MAPS, shared.key) is not None


def test_of_kubernetes_own_kinds_it_is_known_what_they_make():
    assert searched(ledger(entry("Deployment"), entry("ConfigMap")), ALL) == [parts.REPLICA_SETS]
    assert searched(ledger(entry("Service")), ALL) == [parts.SLICES]
    assert searched(ledger(entry("ConfigMap")), ALL) == []
    made_before = entry("Secret", owner=entry("ConfigMap").uid)
    assert searched(ledger(entry("ConfigMap"), made_before), ALL) == [SECRETS]


def test_what_others_make_may_be_of_any_kind_with_a_namespace():
    mine = ledger(entry_of_app(), entry("Deployment"))
    assert searched(mine, ALL) == [each for each in ALL if each.namespaced]


def entry_of_app():
    made = entry("App")
    assert made.group_kind != GroupKind("", "App")
    return made


@virtual
async def test_who_belongs_to_somebody_else_or_to_nobody_is_no_newcomer():
    async with SimulatedWorld() as world:
        client = world.client("me")
        owner = await config_map(client)
        mine = {owner.meta.uid: entry_of(owner)}
        child = await config_map(client, "child", ownerReferences=[reference(owner, "ConfigMap")])
        renamed = await config_map(client, "renamed", ownerReferences=[reference(owner, "ConfigMap", name="x")])
        assert owner_of(child, mine) == mine[owner.meta.uid]
        assert owner_of(renamed, mine) is None
        shared = await config_map(
            client, "shared", ownerReferences=[reference(each, "ConfigMap") for each in (owner, child)]
        )
        assert owner_of(shared, mine) is None
        elsewhere = {owner.meta.uid: entry_of(owner, namespace="elsewhere")}
        assert owner_of(child, elsewhere) is None
        assert owner_of(owner, mine) is None
