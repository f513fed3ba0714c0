"""Reconciles and Events while the server is busy or unavailable; in virtual time."""

import asyncio
import itertools
import random

import msgspec
import pytest

from pilotage.kube import EVENTS
from pilotage.runtime.events import Recorder
from pilotage.runtime.manager import Manager
from pilotage_harbor.apimachinery.calls import ServerResponse
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.runtime.objects import CONFIGMAPS

LONGER_THAN_A_CLIENT_WAITS = 90
MINUTES = 60.0


class Refusing:
    """Refuses all requests to a resource, as a server does, while `status` is set; counts them."""

    def __init__(self, world, plural):
        self.status, self.seconds, self.times = 0, 0, 0
        self._plural = plural
        world.intercept(self._answer)

    def _answer(self, call):
        if not self.status or f"/{self._plural}" not in call.path:
            return None
        self.times += 1
        body = {"kind": "Status", "status": "Failure", "message": "not now", "code": self.status}
        headers = {"Retry-After": str(self.seconds)} if self.seconds else {}
        return ServerResponse(self.status, msgspec.json.encode(body), headers)


@virtual
async def test_a_reconcile_is_not_tried_again_before_a_throttling_server_asked_for_it():
    async with SimulatedWorld() as world:
        busy, times = Refusing(world, "secrets"), []
        secrets = msgspec.structs.replace(CONFIGMAPS, plural="secrets", kind="Secret")

        async def reconcile(context, key):
            times.append(asyncio.get_running_loop().time())
            await context.client.list(secrets, key.namespace)

        manager = Manager(world.client("operator"), seed=1)
        informer = manager.informer(CONFIGMAPS, namespace="default")
        manager.add("test", informer, lambda context: lambda key: reconcile(context, key))
        running = asyncio.create_task(manager.run())
        await manager.started.wait()
        busy.status, busy.seconds = 429, LONGER_THAN_A_CLIENT_WAITS
        await world.client("user").create(CONFIGMAPS, {"metadata": {"namespace": "default", "name": "a"}})
        await asyncio.sleep(1.5 * LONGER_THAN_A_CLIENT_WAITS)
        busy.status = 0
        await asyncio.sleep(10 * MINUTES)
        assert len(times) == 3, "refused twice, then done"
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(LONGER_THAN_A_CLIENT_WAITS <= gap < LONGER_THAN_A_CLIENT_WAITS + 1 for gap in gaps), gaps
        manager.stop()
        await running


class Desk:
    """A recorder that runs, and an object to note something on."""

    def __init__(self, world, obj):
        self._world = world
        self.obj = obj
        self.events = Refusing(world, "events")
        client = world.client("operator")
        self.recorder = Recorder(client, controller="pilotage.dev/test", instance="test-1", rng=random.Random(3))
        world.live(self.recorder.run(), "recorder")

    async def note(self, times=1):
        for _ in range(times):
            self.recorder.warning(self.obj, "Stuck", "it does not go")
            await self.recorder.flush()

    def counts(self):
        """Counts of the Events that exist."""
        return [event.get("series", {"count": 1})["count"] for event in self._world.objects(EVENTS)]


async def desk_in(world):
    body = {"metadata": {"namespace": "default", "name": "a"}}
    return Desk(world, await world.client("user").create(CONFIGMAPS, body))


@pytest.mark.parametrize(("status", "seconds"), [(503, 0), (429, 0), (429, LONGER_THAN_A_CLIENT_WAITS)])
def test_what_was_dropped_is_said_with_the_next_note(status, seconds):
    @virtual
    async def play():
        async with SimulatedWorld() as world:
            desk = await desk_in(world)
            desk.events.status, desk.events.seconds = status, seconds
            await desk.note(4)
            assert desk.counts() == []
            desk.events.status = 0
            await desk.note()
            assert desk.counts() == [5], "not only when it was noted eight times"
            assert desk.recorder.dropped == 4
            desk.events.status = status
            await desk.note(5)
            desk.events.status = 0
            await desk.note()
            assert desk.counts() == [11]

    play()


@pytest.mark.parametrize("status", [503, 429])
def test_a_short_while_is_waited_for(status):
    @virtual
    async def play():
        async with SimulatedWorld() as world:
            desk = await desk_in(world)
            desk.events.status = status
            writing = asyncio.create_task(desk.note())
            while not desk.events.times:  # noqa: ASYNC110 - virtual time: it costs nothing
                await asyncio.sleep(0.01)
            desk.events.status = 0
            await writing
            assert (desk.recorder.dropped, desk.counts()) == (0, [1])

    play()


@virtual
async def test_what_the_server_refuses_is_not_asked_for_each_time():
    async with SimulatedWorld() as world:
        desk = await desk_in(world)
        desk.events.status = 403
        await desk.note(1000)
        assert desk.events.times == 10  # 1, 2, 4, … 512
        desk.events.status = 0
        await desk.note(24)
        assert desk.counts() == [1024]


@virtual
async def test_a_note_that_repeats_while_the_server_is_away_leaves_room_for_others():
    async with SimulatedWorld() as world:
        desk = await desk_in(world)
        desk.events.status = 503
        for _ in range(5000):
            desk.recorder.warning(desk.obj, "Stuck", "it does not go")
        desk.recorder.normal(desk.obj, "Other", "something else")
        desk.events.status = 0
        await desk.recorder.flush()
        assert sorted(event["reason"] for event in world.objects(EVENTS)) == ["Other", "Stuck"]
        assert (desk.recorder.dropped, sorted(desk.counts())) == (0, [1, 5000])
