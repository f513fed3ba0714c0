"""The executor in both pacings. How it ends under faults, with both observers, is tested in `tests/sim`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection

import msgspec
import pytest

from pilotage.catalogue.phase import Phase
from pilotage.kube import PODS, Client, Object, Unavailable
from pilotage.kube.wire import format_time
from pilotage.runtime.clock import utc_now
from pilotage.teardown.engine.decision import Decision, Withheld
from pilotage.teardown.engine.executor import Executor, watching
from pilotage.teardown.engine.observers import Observer, Reader
from pilotage.teardown.engine.partitions import LARGE
from pilotage.teardown.engine.progress import Outcome
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Policy, extend
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.teardown.building import seconds
from tests.teardown.onharbor import CONFIG_MAPS, config_map, entry_of, reference, unmake


@virtual
async def test_another_object_of_the_name_is_not_waited_for_and_not_touched():
    async with SimulatedWorld() as world:
        client = world.client("me")
        mine = await config_map(client)
        await unmake(client, mine)
        other = await config_map(client)
        outcome = await watching(client, of(entry_of(mine)), rng=random.Random(1)).run()
        assert outcome.complete
        assert outcome.asked_at == {}
        assert outcome.proof is not None
        assert outcome.proof.taken == {mine.meta.uid: other.meta.uid}
        assert (await client.get(CONFIG_MAPS, other.key)).meta == other.meta


class Blind(Observer):
    """Sees nothing but what is read for it, once."""

    async def look(self) -> None:
        entries = [entry for entry in self.state.ledger.entries if not self.state.is_over(entry)]
        await asyncio.gather(*map(self.reader.read, entries))


def of(*entries: Entry) -> Ledger:
    return Ledger(targets=("configmap/one",), started=format_time(utc_now()), policy=Policy(), entries=entries)


def executor(client: Client, *entries: Entry, kind: type[Observer] = Blind, hasten: bool = True) -> Executor:
    return Executor(kind(Reader(client, RunState(of(*entries), hasten=hasten))))


def status(code: int, message: str) -> ServerResponse:
    return ServerResponse(
        code, msgspec.json.encode({"kind": "Status", "status": "Failure", "message": message, "code": code})
    )


async def advanced(running: Executor) -> Outcome:
    """The pacing of a reconcile, to the end."""
    while True:
        decision = await running.advance()
        if decision.finished and (proof := await running.prove()).holds:
            return running.outcome(proof)
        await asyncio.sleep(1.0)


@pytest.mark.parametrize("pacing", [Executor.run, advanced])
@virtual
async def test_both_pacings_come_to_the_same_end(pacing):
    async with SimulatedWorld() as world:
        client = world.client("me")
        first, second = await config_map(client), await config_map(client, "two")
        entries = entry_of(first), entry_of(second, after=(first.meta.uid,))
        outcome = await pacing(executor(client, *entries))
        assert outcome.complete
        assert [write.key for write in world.trace.writes if write.verb == "delete"] == ["default/one", "default/two"]
        assert {*outcome.gone_at} == {*outcome.asked_at} == {first.meta.uid, second.meta.uid}
        assert outcome.notes == ()


@pytest.mark.parametrize("pacing", [Executor.run, advanced])
@virtual
async def test_what_a_proof_shows_to_be_there_after_all_is_taken_down(pacing):
    class Wrong(Blind):
        looked = False

        async def look(self) -> None:
            if not self.looked:
                self.state.is_gone(self.state.ledger.entries[0])
            self.looked = True

    async with SimulatedWorld() as world:
        client = world.client("me")
        mine = await config_map(client)
        outcome = await pacing(executor(client, entry_of(mine), kind=Wrong))
        assert outcome.complete
        assert {*outcome.asked_at} == {mine.meta.uid}
        assert world.find(CONFIG_MAPS, mine.key) is None


@pytest.mark.parametrize("pacing", [Executor.run, advanced])
@virtual
async def test_a_proof_that_could_not_read_leaves_no_note_once_another_could(pacing):
    async with SimulatedWorld() as world:
        client = world.client("me")
        mine = await config_map(client)
        running = executor(client, entry_of(mine))
        await running.advance()
        back = world.intercept(lambda call: status(503, "no answer") if call.path.endswith("/one") else None)
        assert not (await running.prove()).holds
        assert "could not be read to prove it gone: no answer" in running.outcome(None).notes[0]
        back()
        assert (await pacing(running)).notes == ()


@virtual
async def test_what_is_found_while_everything_is_proven_is_taken_down_and_proven_too():
    class Growing(Blind):
        async def verified(self) -> Collection[str]:
            if len(self.state.ledger.entries) == 1:
                late = await config_map(self.reader.client, "late")
                self.state.grow(extend(self.state.ledger, [entry_of(late)]))
                self.state.see(late)
            return ()

    async with SimulatedWorld() as world:
        client = world.client("me")
        outcome = await executor(client, entry_of(await config_map(client)), kind=Growing).run()
        assert outcome.complete
        assert world.objects(CONFIG_MAPS) == []
        assert {*outcome.proof.gone} == {entry.uid for entry in outcome.ledger.entries}


@virtual
async def test_a_write_without_effect_is_not_repeated_at_once():
    async with SimulatedWorld() as world:
        client = world.client("me")
        mine = await config_map(client)
        body = msgspec.json.encode(mine.to_dict())
        patches: list[str] = []

        def undo(call: Call) -> ServerResponse | None:
            if call.method != "PATCH":
                return None
            patches.append(call.path)
            return ServerResponse(200, body)

        world.intercept(undo)
        running = executor(client, entry_of(mine, hold=True))
        decision = await running.advance()
        assert len(patches) == 1
        assert [wait.text for wait in decision.waits] == [
            "hold was refused (conflict): the API server accepted it, and configmap/one -n default is as it was"
        ]


@virtual
async def test_after_an_answer_that_was_lost_the_object_is_read():
    """The delete was done, and reported as failed: the read tells without a watch event."""
    async with SimulatedWorld() as world:
        client, others = world.client("me"), world.client("others")
        mine = await config_map(client)

        async def perform(*_: object) -> None:
            await unmake(others, mine)
            raise Unavailable("the connection broke")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pilotage.teardown.engine.executor.perform", perform)
            decision = await executor(client, entry_of(mine)).advance()
        assert decision.finished


@pytest.mark.parametrize("answer_seconds", [0.0, 2.0])
@pytest.mark.parametrize("pacing", [Executor.run, advanced])
@virtual
async def test_what_is_withheld_stays_until_it_is_admitted(pacing, answer_seconds):
    """However long the one who withholds takes to say so."""

    class Withholding(Blind):
        async def admit(self, decision: Decision) -> bool:
            now = self.state.clock.now()
            for _, entry in decision.actions:
                wait = Withheld("the gateway", "it drains", now + seconds(1), draining=True) if now < until else None
                await asyncio.sleep(answer_seconds)
                self.state.withhold(entry, wait)
            return True

    async with SimulatedWorld() as world:
        client = world.client("me")
        mine = await config_map(client)
        running = executor(client, entry_of(mine), kind=Withholding)
        began, until = asyncio.get_running_loop().time(), running.state.clock.now() + seconds(5)
        assert (await pacing(running)).complete
        (delete,) = (write for write in world.trace.writes if write.verb == "delete")
        assert 5.0 <= delete.at - began < 8.0 + answer_seconds


@virtual
async def test_each_pass_says_anew_how_long_a_wait_lasts():
    deletion = {"deletionTimestamp": format_time(utc_now() + seconds(30)), "deletionGracePeriodSeconds": 30}
    metadata = {"namespace": "default", "name": "one", "uid": "u-1", "resourceVersion": "7", **deletion}
    pod = Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    async with SimulatedWorld() as world:
        running = executor(world.client("me"), entry_of(pod, PODS, phase=Phase.STOP), kind=Observer)
        running.state.see(pod)
        assert [wait.text for wait in (await running.advance()).waits] == ["30 s of grace left"]
        await asyncio.sleep(10.0)
        assert [wait.text for wait in (await running.advance()).waits] == ["20 s of grace left"]


@virtual
async def test_what_many_owners_leave_is_the_collectors():
    async with SimulatedWorld() as world:
        client = world.client("me")
        entries = []
        for number in range(LARGE + 1):
            owner = await config_map(client, f"owner-{number}")
            part = await config_map(client, f"part-{number}", ownerReferences=[reference(owner)])
            entries += entry_of(owner), entry_of(part, disposition=Disposition.COLLECT, owner=owner.meta.uid)
        await executor(client, *entries, hasten=True).advance()
        deleted = {write.key for write in world.trace.writes if write.verb == "delete" and write.who == "me"}
        assert deleted == {f"default/owner-{number}" for number in range(LARGE + 1)}


@pytest.mark.parametrize("hasten", [True, False])
@virtual
async def test_what_an_owner_leaves_is_deleted_at_once_only_where_that_is_wanted(hasten):
    async with SimulatedWorld() as world:
        client = world.client("me")
        owner = await config_map(client)
        part = await config_map(client, "part", ownerReferences=[reference(owner)])
        entries = entry_of(owner), entry_of(part, disposition=Disposition.COLLECT, owner=owner.meta.uid)
        await executor(client, *entries, hasten=hasten).advance()
        deleted = [write.key for write in world.trace.writes if write.verb == "delete" and write.who == "me"]
        assert deleted == (["default/one", "default/part"] if hasten else ["default/one"])
