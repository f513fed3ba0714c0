"""Each act, as the API server sees it: nothing is done to another uid, and nothing but what the act is about."""

from __future__ import annotations

import datetime as dt

import pytest

from pilotage.kube import Conflict, Forbidden, Propagation, Throttled
from pilotage.kube.errors import ErrorClass
from pilotage.teardown.engine.actions import ObjectGone, perform, refusal
from pilotage.teardown.engine.decision import Act, Action, Refusal
from pilotage.teardown.planning.ledger import HOLD, Disposition
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.teardown.building import NOW, entry, seconds
from tests.teardown.onharbor import CONFIG_MAPS, config_map, entry_of, reference, unmake


@virtual
async def test_a_delete_returns_none_or_what_stays_for_now():
    async with SimulatedWorld() as world:
        client = world.client("me")
        free, kept = await config_map(client, "free"), await config_map(client, "kept", finalizers=["test.dev/x"])
        assert await perform(client, Action(Act.DELETE, entry_of(free))) is None
        left = await perform(client, Action(Act.DELETE, entry_of(kept)))
        assert left is not None
        assert (left.meta.terminating, left.meta.finalizers) == (True, ("test.dev/x",))


@pytest.mark.parametrize("act", [Act.DELETE, Act.REDRIVE, Act.HOLD, Act.RELEASE, Act.DISOWN])
def test_another_object_of_the_name_is_never_touched(act):
    @virtual
    async def run():
        async with SimulatedWorld() as world:
            client = world.client("me")
            mine = await config_map(client)
            await unmake(client, mine)
            owner = await config_map(client, "owner")
            other = await config_map(client, finalizers=[HOLD], ownerReferences=[reference(owner)])
            with pytest.raises(ObjectGone) as gone:
                await perform(client, Action(act, entry_of(mine, disown=(owner.meta.uid,))))
            assert gone.value.foreign
            assert (await client.get(CONFIG_MAPS, other.key)).meta == other.meta

    run()


@pytest.mark.parametrize("act", [Act.DELETE, Act.HOLD, Act.RELEASE, Act.DISOWN])
def test_what_is_not_there_is_gone(act):
    @virtual
    async def run():
        async with SimulatedWorld() as world:
            client = world.client("me")
            mine = await config_map(client)
            await unmake(client, mine)
            with pytest.raises(ObjectGone) as gone:
                await perform(client, Action(act, entry_of(mine)))
            assert not gone.value.foreign

    run()


@virtual
async def test_the_hold_is_put_on_and_taken_off_and_nothing_else():
    async with SimulatedWorld() as world:
        client = world.client("me")
        owner = await config_map(client, finalizers=["test.dev/x"])
        held = await perform(client, Action(Act.HOLD, entry_of(owner)))
        assert held is not None
        assert held.meta.finalizers == ("test.dev/x", HOLD)
        again = await perform(client, Action(Act.HOLD, entry_of(owner)))
        assert again is not None
        assert again.meta.resource_version == held.meta.resource_version
        free = await perform(client, Action(Act.RELEASE, entry_of(owner)))
        assert free is not None
        assert free.meta.finalizers == ("test.dev/x",)


@virtual
async def test_nothing_is_put_on_what_is_going():
    async with SimulatedWorld() as world:
        client = world.client("me")
        owner = await config_map(client, finalizers=["test.dev/x"])
        await unmake(client, owner)
        left = await perform(client, Action(Act.HOLD, entry_of(owner)))
        assert left is not None
        assert left.meta.finalizers == ("test.dev/x",)


@virtual
async def test_what_stays_is_taken_off_the_owners_that_go_and_off_no_other():
    async with SimulatedWorld() as world:
        client = world.client("me")
        one, two, three = [await config_map(client, name) for name in ("one", "two", "three")]
        child = await config_map(client, "child", ownerReferences=[reference(each) for each in (one, two, three)])
        entry = entry_of(child, disposition=Disposition.KEEP, disown=(one.meta.uid, three.meta.uid))
        left = await perform(client, Action(Act.DISOWN, entry))
        assert left is not None
        assert [owner.uid for owner in left.meta.owner_references] == [two.meta.uid]


@virtual
async def test_a_foreground_deletion_that_nobody_goes_on_with_ends_when_it_is_driven_again():
    async with SimulatedWorld() as world:
        client = world.client("me")
        owner = await config_map(client)
        reference_ = {**reference(owner), "blockOwnerDeletion": True}
        child = await config_map(client, "child", ownerReferences=[reference_], finalizers=["test.dev/x"])
        waiting = await client.delete(CONFIG_MAPS, owner.key, uid=owner.meta.uid, propagation=Propagation.FOREGROUND)
        assert waiting is not None
        assert waiting.meta.finalizers == ("foregroundDeletion",)
        assert await perform(client, Action(Act.REDRIVE, entry_of(owner))) is None
        assert (await client.get(CONFIG_MAPS, child.key)).meta.uid == child.meta.uid


DELETE = Action(Act.DELETE, entry("Ingress"))
HOLDING = Action(Act.HOLD, entry("App"))


def after(number: float) -> dt.datetime:
    return NOW + seconds(number)


def test_pauses_grow_with_the_time_that_was_waited_up_to_a_bound():
    error = Forbidden("no")
    first = refusal(DELETE, error, None, NOW)
    assert first == Refusal(Act.DELETE, ErrorClass.FORBIDDEN, "no", NOW, after(0.2))
    assert refusal(DELETE, error, first, after(1)) == first._replace(retry=after(2))
    assert refusal(DELETE, error, first, after(8)) == first._replace(retry=after(16))
    assert refusal(DELETE, error, first, after(100)) == first._replace(retry=after(120))


def test_who_is_told_when_to_come_back_does():
    error = Throttled("slowly", retry_after=7.0)
    assert refusal(DELETE, error, None, NOW).retry == after(7)


def test_a_conflict_of_versions_is_tried_again_soon():
    first = refusal(HOLDING, Conflict("changed"), None, NOW)
    assert refusal(HOLDING, Conflict("changed"), first, after(10)).retry == after(10.2)


def test_another_act_begins_anew():
    first = refusal(HOLDING, Forbidden("no"), None, NOW)
    assert refusal(DELETE, Forbidden("no"), first, after(9)) == Refusal(
        Act.DELETE, ErrorClass.FORBIDDEN, "no", after(9), after(9.2)
    )
