"""Each fault does what it says, seen from a client."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import (
    ANY,
    Absent,
    ApiError,
    Client,
    Conflict,
    Expired,
    Forbidden,
    Foreign,
    Invalid,
    KindNotServed,
    ObjectKey,
    Resource,
    Terminating,
    Throttled,
    Unavailable,
    Uncertain,
    merge_patch,
)
from pilotage_sim.fault_injection import FaultInjection
from pilotage_sim.faulty_transport import FaultyTransport
from pilotage_sim.loop import virtual
from pilotage_sim.plan import Failure, Fault, FaultKind, format_plan, parse_plan
from pilotage_sim.process import Process
from pilotage_sim.world import SimulatedWorld

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
A = ObjectKey("default", "a")


def config_map(name="a", **data):
    return {"metadata": {"namespace": "default", "name": name}, "data": data}


@contextlib.asynccontextmanager
async def disturbed(plan):
    """A world with one object, a client without faults, and one with the faults of the plan."""
    async with SimulatedWorld() as world:
        honest = world.client("honest")
        await honest.create(CONFIG_MAPS, config_map(n="1"))
        injection = FaultInjection(world, parse_plan(plan))
        yield honest, Client(FaultyTransport(world.transport("subject"), injection), name="subject"), injection


CALLS = {
    "get": lambda client: client.get(CONFIG_MAPS, A),
    "list": lambda client: client.list(CONFIG_MAPS, "default"),
    "create": lambda client: client.create(CONFIG_MAPS, config_map("b")),
    "patch": lambda client: client.patch(CONFIG_MAPS, A, merge_patch({"data": {"n": "2"}})),
}

REFUSED = [
    ("get", Failure.ABSENT, Absent),
    ("list", Failure.ABSENT, KindNotServed),
    ("patch", Failure.ABSENT, Absent),
    ("list", Failure.CONFLICT, Expired),
    ("patch", Failure.CONFLICT, Conflict),
    ("create", Failure.CONFLICT, Conflict),
    ("patch", Failure.FOREIGN, Foreign),
    ("create", Failure.TERMINATING, Terminating),
    *((call, Failure.FORBIDDEN, Forbidden) for call in CALLS),
    *((call, Failure.INVALID, Invalid) for call in CALLS),
    *((call, Failure.THROTTLED, Throttled) for call in CALLS),
    *((call, Failure.UNAVAILABLE, Unavailable) for call in CALLS),
    ("create", Failure.LOST, Uncertain),
    ("patch", Failure.LOST, Uncertain),
]


@pytest.mark.parametrize(("call", "failure", "error"), REFUSED)
def test_a_refused_call_is_of_its_class_and_changes_nothing(call, failure, error):
    @virtual
    async def run():
        async with disturbed(f"fail-call:2:{failure}") as (honest, client, injection):
            await client.get(CONFIG_MAPS, A)
            with pytest.raises(ApiError) as caught:
                await CALLS[call](client)
            assert isinstance(caught.value, error)
            listed = await honest.list(CONFIG_MAPS, "default")
            assert [(obj.meta.name, obj.get("data")) for obj in listed.items] == [("a", {"n": "1"})]
            await CALLS[call](client)
            assert [str(fault) for fault in injection.done] == [f"fail-call:2:{failure}"]

    run()


@pytest.mark.parametrize("failure", [Failure.APPLIED, Failure.HANGS])
def test_an_uncertain_write_may_have_been_applied(failure):
    @virtual
    async def run():
        async with disturbed(f"fail-call:1:{failure}") as (honest, client, _):
            began = asyncio.get_running_loop().time()
            with pytest.raises(Uncertain):
                await CALLS["patch"](client)
            assert (await honest.get(CONFIG_MAPS, A)).get("data") == {"n": "2"}
            took = asyncio.get_running_loop().time() - began
            assert (took > 29) == (failure is Failure.HANGS)

    run()


@virtual
async def test_a_slow_call_takes_as_long_to_arrive_as_its_answer():
    async with disturbed("slow-call:1:3,slow-call:2:20") as (honest, client, _):
        loop = asyncio.get_running_loop()
        began, patch = loop.time(), asyncio.ensure_future(CALLS["patch"](client))
        await asyncio.sleep(2.9)
        assert (await honest.get(CONFIG_MAPS, A)).get("data") == {"n": "1"}
        await asyncio.sleep(0.2)
        assert (await honest.get(CONFIG_MAPS, A)).get("data") == {"n": "2"}
        assert (await patch).get("data") == {"n": "2"}
        assert 6.0 <= loop.time() - began < 6.1
        with pytest.raises(Uncertain):  # longer than the client waits
            await CALLS["create"](client)
        assert len((await honest.list(CONFIG_MAPS, "default")).items) == 2


@virtual
async def test_a_stale_read_is_as_it_was_some_changes_ago():
    async with disturbed("stale-read:1:1,stale-read:2:2,stale-read:3:3,stale-read:4:1") as (honest, client, _):
        for number in "23":
            await honest.patch(CONFIG_MAPS, A, merge_patch({"data": {"n": number}}))
        assert (await client.get(CONFIG_MAPS, A, version=ANY)).get("data") == {"n": "2"}
        assert (await client.get(CONFIG_MAPS, A, version=ANY)).get("data") == {"n": "1"}
        with pytest.raises(Absent):
            await client.get(CONFIG_MAPS, A, version=ANY)
        assert [obj.get("data") for obj in (await client.list(CONFIG_MAPS, "default")).items] == [{"n": "2"}]
        assert (await client.get(CONFIG_MAPS, A)).get("data") == {"n": "3"}


async def watched(client, version, count):
    """Observations of a careful client in a collection, up to `count`: events, breaks and lists, with times."""
    seen = []
    loop = asyncio.get_running_loop()
    began = loop.time()
    while len(seen) < count:
        try:
            async with client.watch(CONFIG_MAPS, "default", resource_version=version) as watch:
                async for event in watch:
                    seen.append(event.object.get("data", "n"))
                    version = event.object.meta.resource_version
                    if len(seen) == count:
                        break
        except Expired:
            listed = await client.list(CONFIG_MAPS, "default")
            seen.append(f"list {listed.items[0].get('data', 'n')}")
            version = listed.resource_version
        except Unavailable:
            seen.append("break")
            await asyncio.sleep(1)
    return seen, round(loop.time() - began)


@pytest.mark.parametrize(
    ("plan", "seen", "seconds"),
    [
        ("", ["2", "3", "4"], 0),
        ("cut-watches:2", ["2", "break", "3", "4"], 1),
        ("drop-event:2", ["2", "break", "list 4"], 1),
        ("delay-event:2", ["2", "3", "4"], 5),
        ("duplicate-event:2", ["2", "3", "break", "3", "4"], 1),
        ("coalesce-event:2", ["2", "break", "break", "break", "break", "break", "list 4"], 5),
    ],
)
def test_what_happens_to_events(plan, seen, seconds):
    @virtual
    async def run():
        async with disturbed(plan) as (honest, client, _):
            version = (await honest.list(CONFIG_MAPS, "default")).resource_version
            for number in "234":
                await honest.patch(CONFIG_MAPS, A, merge_patch({"data": {"n": number}}))
            assert await watched(client, version, len(seen)) == (seen, seconds)

    run()


@virtual
async def test_a_partition_cuts_off_everything_for_a_while():
    async with disturbed("partition:2:10") as (honest, client, _):
        version = (await honest.list(CONFIG_MAPS, "default")).resource_version
        async with client.watch(CONFIG_MAPS, "default", resource_version=version) as watch:
            with pytest.raises(Unavailable):
                await client.get(CONFIG_MAPS, A)
            with pytest.raises(Unavailable):
                await anext(watch)
        await asyncio.sleep(9)
        with pytest.raises(Unavailable):
            await CALLS["patch"](client)
        await asyncio.sleep(1)
        await client.get(CONFIG_MAPS, A)


@pytest.mark.parametrize(("plan", "made"), [("crash-before-write:2", 1), ("crash-after-write:2", 2)])
def test_a_crash_ends_a_process_at_that_write_and_it_starts_anew(plan, made):
    @virtual
    async def run():
        async with SimulatedWorld() as world:
            lives = []

            async def main(client):
                lives.append([])
                try:
                    for number in range(3):
                        await client.create(CONFIG_MAPS, config_map(f"{len(lives)}-{number}"))
                        lives[-1].append(number)
                    await asyncio.Event().wait()
                finally:
                    with contextlib.suppress(ApiError):
                        await client.create(CONFIG_MAPS, config_map("last-will"))

            process = Process(world, main, plan=parse_plan(plan))
            process.start()
            await world.settle(10)
            await process.stop()
            assert lives == [[0], [0, 1, 2]]
            first = [obj for obj in world.objects(CONFIG_MAPS) if obj["metadata"]["name"].startswith("1-")]
            assert len(first) == made
            assert world.find(CONFIG_MAPS, ObjectKey("default", "last-will")) is None, "the dead do not write"

    run()


faults = st.builds(
    Fault,
    kind=st.sampled_from([kind for kind in FaultKind if kind is not FaultKind.FAIL_CALL]),
    number=st.integers(1, 99),
    detail=st.sampled_from(["", "1", "10"]),
    process=st.sampled_from(["subject", "b"]),
) | st.builds(
    Fault,
    kind=st.just(FaultKind.FAIL_CALL),
    number=st.integers(1, 99),
    detail=st.sampled_from(list(Failure)),
    process=st.just("b"),
)


@given(st.lists(faults, max_size=4).map(tuple))
def test_a_plan_can_be_written_down_and_read_back(plan):
    assert parse_plan(format_plan(plan)) == plan


@pytest.mark.parametrize("text", ["crash", "crash-before-write:x", "fail-call:1:nonsense", "fail-call:1", "boom:1"])
def test_nonsense_is_no_plan(text):
    with pytest.raises(ValueError):
        parse_plan(text)
