"""Remembered discovery is a first guess: it is verified at once, and never hides a new kind."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from pilotage.kube import Client, Discovery, Surface, Unavailable
from pilotage.kube.discovery import as_served
from pilotage.kube.discovery_memory import FORGET_SECONDS, DiscoveryMemory
from pilotage.kube.transport import TransportError
from pilotage_sim.loop import virtual
from tests.support import kinds
from tests.support.raw_server import plain_config
from tests.support.transports import MemoryResponse, ScriptedTransport, answer, observed
from tests.support.waiting import eventually


def serving(etag: str, *plurals: str, group: str = "example.com") -> MemoryResponse:
    """An answer of aggregated discovery."""
    listed = [
        {"resource": plural, "responseKind": {"kind": plural.title()[:-1]}, "scope": "Namespaced", "verbs": ["list"]}
        for plural in plurals
    ]
    groups = [{"metadata": {"name": group}, "versions": [{"version": "v1", "resources": listed}]}] if plurals else []
    body = {"kind": "APIGroupDiscoveryList", "items": groups}
    return answer(body, etag=etag) if etag else answer(body)


def same() -> MemoryResponse:
    return MemoryResponse(b"", status=304)


def names(surface: Surface) -> list[str]:
    return [each.resource.plural for each in surface.resources]


@pytest.fixture
def memory(tmp_path: Path) -> DiscoveryMemory:
    return DiscoveryMemory(tmp_path / "new" / "file")


async def learn(memory: DiscoveryMemory, *etags: str) -> Surface:
    """First discovery, which is kept."""
    first = ScriptedTransport(serving(etags[0]), serving(etags[1], "boats"))
    return await Discovery(Client(first), memory).surface()


@virtual
async def test_the_second_time_nobody_waits_for_the_server(memory: DiscoveryMemory) -> None:
    known = await learn(memory, '"a"', '"b"')
    silent = ScriptedTransport(None, None)
    assert await Discovery(Client(silent), memory).surface() == known
    assert names(known) == ["boats"]


@virtual
async def test_the_server_is_asked_whether_it_still_holds(memory: DiscoveryMemory) -> None:
    await learn(memory, '"a"', '"b"')
    transport = ScriptedTransport(same(), same())
    discovery = Discovery(Client(transport), memory)
    known = await discovery.surface()
    assert await discovery.confirm()
    assert await discovery.surface() is known
    assert [(each.target, each.if_none_match) for each in transport.requests] == [("/api", '"a"'), ("/apis", '"b"')]


@pytest.mark.parametrize("both", [True, False])
@virtual
async def test_what_is_new_is_known_and_kept(memory: DiscoveryMemory, both: bool) -> None:
    await learn(memory, '"a"', '"b"')
    new = [serving('"a"'), serving('"c"', "boats", "rafts")]
    changed = new if both else [same(), serving('"c"', "boats", "rafts"), *new]  # one answer alone is asked for again
    discovery = Discovery(Client(ScriptedTransport(*changed)), memory)
    assert names(await discovery.surface()) == ["boats"]
    assert not await discovery.confirm()
    assert names(await discovery.surface()) == ["boats", "rafts"]
    assert await discovery.confirm()
    assert names(await Discovery(Client(ScriptedTransport(None, None)), memory).surface()) == ["boats", "rafts"]


@virtual
async def test_a_name_that_was_not_served_is_looked_for_again(memory: DiscoveryMemory) -> None:
    await learn(memory, '"a"', '"b"')
    transport = ScriptedTransport(serving('"a"'), serving('"c"', "boats", "rafts"))
    discovery = Discovery(Client(transport), memory)
    assert (await discovery.find("rafts")).resource.group == "example.com"


@virtual
async def test_who_read_before_a_name_was_looked_for_again_reads_again(memory: DiscoveryMemory) -> None:
    await learn(memory, '"a"', '"b"')
    new = [serving('"a"'), serving('"c"', "boats", "rafts")]
    discovery = Discovery(Client(ScriptedTransport(*new)), memory)

    async def read() -> list[str]:
        surface = await discovery.surface()
        await discovery.find("rafts")
        return names(surface)

    assert await as_served(discovery, read) == ["boats", "rafts"]


@virtual
async def test_a_server_that_does_not_answer_confirms_nothing(memory: DiscoveryMemory) -> None:
    await learn(memory, '"a"', '"b"')
    gone = TransportError("gone", sent=False)
    discovery = Discovery(Client(ScriptedTransport(gone, gone)), memory)
    await discovery.surface()
    with pytest.raises(Unavailable):
        await discovery.confirm()


@virtual
async def test_without_etags_nothing_is_kept(memory: DiscoveryMemory) -> None:
    await learn(memory, '"a"', "")
    assert memory.recall() is None


@pytest.mark.parametrize("found", [b"", b"x", b"\x93\x00\x92\xa0\xa0\x92\x90\x80"], ids=["empty", "damaged", "older"])
@virtual
async def test_a_file_that_says_nothing_is_as_good_as_none(
    memory: DiscoveryMemory, tmp_path: Path, found: bytes
) -> None:
    await learn(memory, '"a"', '"b"')
    (file,) = (tmp_path / "new").iterdir()
    file.write_bytes(found)
    transport = ScriptedTransport(serving('"a"'), serving('"b"', "rafts"))
    assert names(await Discovery(Client(transport), memory).surface()) == ["rafts"]


@virtual
async def test_only_its_owner_can_read_it(memory: DiscoveryMemory, tmp_path: Path) -> None:
    await learn(memory, '"a"', '"b"')
    (file,) = (tmp_path / "new").iterdir()  # and nothing else is left there
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@virtual
async def test_clusters_of_long_ago_are_forgotten(memory: DiscoveryMemory, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    for name, seconds in (("old", FORGET_SECONDS + 60), ("young", FORGET_SECONDS - 60)):
        (folder / name).write_text("")
        then = time.time() - seconds
        os.utime(folder / name, (then, then))
    await learn(memory, '"a"', '"b"')
    assert {each.name for each in folder.iterdir()} == {"young", "file"}


@virtual
async def test_where_nothing_can_be_written_it_works_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert names(await learn(DiscoveryMemory(tmp_path / "file" / "x"), '"a"', '"b"')) == ["boats"]


def test_each_cluster_has_its_own(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path), "HOME": "/nowhere"}
    etags, surface = ('"a"', '"b"'), Surface((), {"x/v1": "it is not there"})
    here = DiscoveryMemory.of(plain_config("https://a:1"), env)
    there = DiscoveryMemory.of(plain_config("https://b:1"), env)
    assert here is not None
    assert there is not None
    here.keep(etags, surface)
    assert there.recall() is None
    again = DiscoveryMemory.of(plain_config("https://a:1"), env)
    assert again is not None
    found = again.recall()
    assert found is not None
    assert (found.etags, found.surface) == (etags, surface)
    assert [each.name for each in tmp_path.iterdir()] == ["pilotage"]
    assert DiscoveryMemory.of(plain_config("https://a:1"), {}) is None


class Reader:
    """Reads the names that are served; the first time it fails, if told to."""

    def __init__(self, discovery: Discovery, failing: int = 0) -> None:
        self._discovery = discovery
        self._failing = failing
        self.calls = 0

    async def __call__(self) -> list[str]:
        self.calls += 1
        found = names(await self._discovery.surface())
        if self.calls <= self._failing:
            raise LookupError(str(found))
        return found


@pytest.mark.parametrize("failing", [0, 1])
@virtual
async def test_what_was_read_of_other_kinds_is_read_again(memory: DiscoveryMemory, failing: int) -> None:
    await learn(memory, '"a"', '"b"')
    transport = ScriptedTransport(serving('"a"'), serving('"c"', "rafts"))
    read = Reader(Discovery(Client(transport), memory), failing)
    assert await as_served(read._discovery, read) == ["rafts"]
    assert read.calls == 2


@pytest.mark.parametrize("failing", [0, 1])
@virtual
async def test_what_was_read_of_the_right_kinds_counts(memory: DiscoveryMemory, failing: int) -> None:
    await learn(memory, '"a"', '"b"')
    read = Reader(Discovery(Client(ScriptedTransport(same(), same())), memory), failing)
    if failing:
        with pytest.raises(LookupError, match="boats"):
            await as_served(read._discovery, read)
    else:
        assert await as_served(read._discovery, read) == ["boats"]
    assert read.calls == 1


async def test_a_real_server_says_that_nothing_has_changed_and_then_what_has(
    client: Client, memory: DiscoveryMemory
) -> None:
    watched, seen = observed(client)

    async def is_confirmed() -> bool:
        """Kinds of other tests may come and go."""
        await Discovery(watched, memory).refresh()
        seen.answers.clear()
        discovery = Discovery(watched, memory)
        await discovery.surface()
        return await discovery.confirm()

    await eventually(is_confirmed)
    assert [each.status for each in seen.answers] == [304, 304]
    resource = kinds.widgets()
    before = Discovery(client, memory)
    assert resource not in [each.resource for each in (await before.surface()).resources]
    await before.confirm()
    async with kinds.served(client, resource):

        async def is_noticed() -> Any:
            after = Discovery(client, memory)
            await after.surface()
            await after.confirm()
            return resource in [each.resource for each in (await after.surface()).resources]

        await eventually(is_noticed)
