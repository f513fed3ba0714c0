"""The proof: read afresh, by uid; what could not be read proves nothing."""

from __future__ import annotations

import random

import msgspec
import pytest

from pilotage.controllers.proof import Known
from pilotage.controllers.teardown.observer import CacheObserver
from pilotage.controllers.wiring import NoProxyObserver
from pilotage.kube import ObjectKey, Propagation, Resource
from pilotage.teardown.engine.observers import Reader, WatchObserver
from pilotage.teardown.engine.prove import prove
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.planning.ledger import Disposition
from pilotage.teardown.snapshot.world import State
from pilotage_harbor.apimachinery.calls import ServerResponse
from pilotage_sim.adversaries import dead_api
from pilotage_sim.loop import virtual
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.world import SimulatedWorld
from tests.teardown.building import ledger
from tests.teardown.onharbor import CONFIG_MAPS, config_map, entry_of, unmake, unserve

APPS = "/apis/sim.pilotage.dev/v1/namespaces/default/apps"


@virtual
async def test_what_is_gone_is_proven_by_a_read_of_its_own():
    async with SimulatedWorld() as world:
        client = world.client("me")
        mine, stays = await config_map(client), await config_map(client, "stays")
        await unmake(client, mine)
        proof = await prove(client, ledger(entry_of(mine), entry_of(stays, disposition=Disposition.KEEP)))
        assert proof.holds
        assert proof.gone[mine.meta.uid].request == "GET /api/v1/namespaces/default/configmaps/one"
        assert proof.kept == {stays.meta.uid: True}
        assert (proof.there, proof.unread, proof.taken) == ([], {}, {})


@virtual
async def test_many_of_a_kind_are_proven_by_one_list_of_which_the_version_is_known():
    async with SimulatedWorld() as world:
        client = world.client("me")
        made = [await config_map(client, f"x{number}") for number in range(3)]
        for each in made[:2]:
            await unmake(client, each)
        proof = await prove(client, ledger(*map(entry_of, made)))
        assert not proof.holds
        assert {read.request for read in proof.gone.values()} == {"LIST /api/v1/namespaces/default/configmaps"}
        assert [obj.meta.uid for obj in proof.there] == [made[2].meta.uid]
        assert proof.resource_version.isdigit()


@virtual
async def test_another_of_its_name_is_not_the_one_that_was_meant_and_is_reported():
    async with SimulatedWorld() as world:
        client = world.client("me")
        for count in (1, 3):  # by a get, and by a list
            made = [await config_map(client, f"x{number}") for number in range(count)]
            for each in made:
                await unmake(client, each)
            other = await config_map(client, "x0")
            proof = await prove(client, ledger(*map(entry_of, made)))
            assert proof.holds
            assert proof.taken == {made[0].meta.uid: other.meta.uid}
            await unmake(client, other)


@virtual
async def test_what_was_to_stay_and_is_not_there_is_said():
    async with SimulatedWorld() as world:
        client = world.client("me")
        mine = await config_map(client)
        await unmake(client, mine)
        proof = await prove(client, ledger(entry_of(mine, disposition=Disposition.KEEP)))
        assert proof.kept == {mine.meta.uid: False}


@virtual
async def test_a_kind_that_is_not_served_proves_nothing():
    async with SimulatedWorld() as world:
        client = world.client("me")
        definition = await client.create(*parts.definition())
        app = await client.create(*parts.app("one"))
        end = dead_api(world, "sim.pilotage.dev")
        proof = await prove(client, ledger(entry_of(app, parts.APPS)))
        assert (proof.holds, list(proof.unread)) == (False, [app.meta.uid])
        end()
        await client.delete(
            parts.DEFINITIONS, definition.key, uid=definition.meta.uid, propagation=Propagation.BACKGROUND
        )
        await world.until(lambda: world.find(parts.DEFINITIONS, ObjectKey("", definition.meta.name)) is None)
        proof = await prove(client, ledger(entry_of(app, parts.APPS)))
        assert (proof.holds, list(proof.unread)) == (False, [app.meta.uid])


@virtual
async def test_a_kind_whose_definition_went_with_it_has_no_objects():
    async with SimulatedWorld() as world:
        client = world.client("me")
        definition = await client.create(*parts.definition())
        apps = [await client.create(*parts.app(f"x{number}")) for number in range(3)]
        all_of_it = ledger(entry_of(definition, parts.DEFINITIONS), *(entry_of(app, parts.APPS) for app in apps))
        assert len((await prove(client, all_of_it)).there) == 4
        await client.delete(
            parts.DEFINITIONS, definition.key, uid=definition.meta.uid, propagation=Propagation.BACKGROUND
        )
        await world.until(lambda: world.find(parts.DEFINITIONS, ObjectKey("", definition.meta.name)) is None)
        proof = await prove(client, all_of_it)
        assert proof.holds
        assert len(proof.gone) == 4


KEDA = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
"""A kind that is known to be defined by a CustomResourceDefinition, even without an entry in the ledger."""


async def scaled_object(client):
    """One, with the definition of its kind."""
    definition = await client.create(*parts.definition(KEDA))
    return definition, await client.create(KEDA, {"metadata": {"namespace": "default", "name": "one"}, "spec": {}})


async def undefine(world, client, definition):
    await unmake(client, definition, parts.DEFINITIONS)
    await world.until(lambda: world.find(parts.DEFINITIONS, ObjectKey("", definition.meta.name)) is None)


@virtual
async def test_of_a_kind_that_is_known_to_have_had_a_definition_nothing_is_left_without_it():
    async with SimulatedWorld() as world:
        client = world.client("me")
        definition, mine = await scaled_object(client)
        await undefine(world, client, definition)
        proof = await prove(client, ledger(entry_of(mine, KEDA)))
        request = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/scaledobjects.keda.sh"
        assert (proof.holds, proof.gone[mine.meta.uid].request) == (True, request)


@virtual
async def test_while_a_definition_is_there_its_objects_are_only_unread():
    async with SimulatedWorld() as world:
        client = world.client("me")
        _, mine = await scaled_object(client)
        unserve(world, "keda.sh")
        proof = await prove(client, ledger(entry_of(mine, KEDA)))
        assert (proof.gone, list(proof.unread)) == ({}, [mine.meta.uid])


@virtual
async def test_a_definition_that_cannot_be_read_is_not_taken_for_gone_and_the_cause_is_said():
    async with SimulatedWorld() as world:
        client = world.client("me")
        definition, mine = await scaled_object(client)
        await undefine(world, client, definition)
        forbid(world, "/customresourcedefinitions/")
        proof = await prove(client, ledger(entry_of(mine, KEDA)))
        assert proof.gone == {}
        assert proof.unread[mine.meta.uid].endswith("; you may not")


@pytest.mark.parametrize("by", ["watch", "cache"])
@virtual
async def test_both_observers_agree_on_the_objects_of_a_kind_that_is_not_served(by):
    async with SimulatedWorld() as world:
        client = world.client("me")
        definition, mine = await scaled_object(client)
        app_definition = await client.create(*parts.definition())
        app = await client.create(*parts.app("one"))
        await undefine(world, client, definition)
        await undefine(world, client, app_definition)
        state = RunState(ledger(entry_of(mine, KEDA), entry_of(app, parts.APPS)))
        reader = Reader(client, state)
        await (
            WatchObserver(reader, rng=random.Random(1))
            if by == "watch"
            else CacheObserver(reader, NoCaches(), NoProxyObserver(), Known("default", "x"), pods="")
        ).look()
        seen = [state.observations.get(each.meta.uid).state for each in (mine, app)]
        assert seen == [State.GONE, State.UNKNOWN]


class NoCaches:
    """Caches that have nothing."""

    def get(self, *_):
        return None


def forbid(world, path):
    body = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "you may not", "code": 403}
    world.intercept(lambda call: ServerResponse(403, msgspec.json.encode(body)) if path in call.path else None)


@virtual
async def test_who_may_not_read_has_no_proof():
    async with SimulatedWorld() as world:
        mine = await config_map(world.client("me"))
        await unmake(world.client("me"), mine)
        proof = await prove(world.client("nobody", groups=()), ledger(entry_of(mine)))
        assert not proof.holds
        assert "cannot get resource" in proof.unread[mine.meta.uid]
        assert world.find(CONFIG_MAPS, mine.key) is None
