"""Watches: how long they last, and how far behind their readers may be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import MASTERS, UserInfo
from pilotage_harbor.verbs import watches
from pilotage_harbor.verbs.watches import WatchStream
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import CONFIG_MAPS, World, path

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json


async def watch(world: World, **query: str) -> WatchStream:
    asked = {"watch": ["1"], **{name: [value] for name, value in query.items()}}
    stream = await world.handle(Call("GET", path(CONFIG_MAPS), asked, {}, b"", UserInfo("w", groups=(MASTERS,))))
    assert isinstance(stream, WatchStream)
    return stream


async def version(world: World) -> str:
    listed: Json = await world.ask("GET", path(CONFIG_MAPS))
    text: str = listed["metadata"]["resourceVersion"]
    return text


async def rest(stream: WatchStream) -> list[bytes]:
    """All that it says until its end."""
    lines: list[bytes] = []
    while pieces := await stream.chunks():
        lines += pieces
    return lines


@virtual
@pytest.mark.parametrize(
    ("query", "seconds"), [({}, 1800), ({"timeoutSeconds": "0"}, 1800), ({"timeoutSeconds": "7"}, 7)]
)
async def test_a_quiet_watch_ends(query: dict[str, str], seconds: float) -> None:
    async with World() as world:
        stream = await watch(world, resourceVersion=await version(world), **query)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        assert await rest(stream) == []
        assert loop.time() - begun == pytest.approx(seconds)


@virtual
async def test_a_watch_ends_though_there_is_always_something_to_say() -> None:
    async with World() as world:
        stream = await watch(world, resourceVersion=await version(world), timeoutSeconds="5")
        for _ in range(5):
            await world.create(CONFIG_MAPS)
            await world.settle(1.1)
            assert await stream.chunks()
        await world.create(CONFIG_MAPS)
        assert await stream.chunks() == []


@virtual
@pytest.mark.parametrize("bound", ["BACKLOG_EVENTS_MAX", "BACKLOG_BYTES_MAX"])
async def test_who_is_too_far_behind_is_cut_off(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, bound, 4 if bound == "BACKLOG_EVENTS_MAX" else 4000)
    async with World() as world:
        stream = await watch(world, resourceVersion=await version(world))
        for _ in range(3):  # a client that keeps up stays
            for _ in range(3):
                await world.create(CONFIG_MAPS, data={"x": "y" * 900})
            assert len(await stream.chunks()) == 3
        for _ in range(5):
            await world.create(CONFIG_MAPS, data={"x": "y" * 900})
        assert await stream.chunks() == []


@virtual
@pytest.mark.parametrize("replay", [True, False])
async def test_what_a_watch_begins_with_does_not_count(replay: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its client would come back, and be cut off again, for ever."""
    monkeypatch.setattr(watches, "BACKLOG_EVENTS_MAX", 4)
    monkeypatch.setattr(watches, "BACKLOG_BYTES_MAX", 4000)
    async with World() as world:
        before = await version(world)
        for _ in range(20):
            await world.create(CONFIG_MAPS, data={"x": "y" * 900})
        stream = await watch(world, **({"resourceVersion": before} if replay else {}))
        await world.create(CONFIG_MAPS)
        assert len(await stream.chunks()) == 21
        stream.close()
