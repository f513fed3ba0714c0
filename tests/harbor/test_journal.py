"""A journal that is damaged, and a disk that is full: it is said, nothing is hidden, and deletions go on."""

import asyncio
import json
import sqlite3
import subprocess
import sys

import pytest

from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_harbor.core import Core
from pilotage_harbor.storage.journal import Damaged, SqliteJournal
from pilotage_harbor.storage.reserve import RESERVE_BYTES, Reserve
from pilotage_harbor.storage.store import VersionedStore
from tests.harbor.test_by_passes import ask

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def kept(path, names):
    """A journal with a ConfigMap of each name; the versions that they were written as."""
    journal = SqliteJournal(path)
    harbor = Harbor(Core(journal))
    await harbor.start()
    versions = []
    for name in names:
        made = await ask(harbor, "POST", CONFIG_MAPS, {"metadata": {"name": name}})
        versions.append(int(json.loads(made.body)["metadata"]["resourceVersion"]))
    await harbor.stop()
    journal.close()
    return versions


def spoil(path, version, raw=b'{"metadata":'):
    with sqlite3.connect(path) as db:
        db.execute("UPDATE log SET object = ? WHERE version = ?", (raw, version))
    db.close()


def names_of(store):
    return {entry.name for entry in store.entries("configmaps")}


@pytest.mark.parametrize("raw", [b'{"metadata":', b"", b"[]", "text", 7, b'{"metadata":{"name":5}}', b"\xff"])
async def test_a_row_that_cannot_be_read_is_named_and_nothing_starts_without_it(tmp_path, raw):
    path = tmp_path / "harbor.sqlite"
    versions = await kept(path, ["a", "b", "c"])
    spoil(path, versions[1], raw)
    journal = SqliteJournal(path)
    with pytest.raises(Damaged, match=f"1 row cannot be read: version {versions[1]}, of configmaps"):
        VersionedStore(journal)
    journal.close()
    journal = SqliteJournal(path, set_aside=True)
    store = VersionedStore(journal)
    assert {"a", "c"} <= names_of(store)
    assert "b" not in names_of(store)
    journal.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT version FROM damaged").fetchall() == [(versions[1],)]
    db.close()
    journal = SqliteJournal(path)
    assert names_of(VersionedStore(journal)) == names_of(store)
    journal.close()


async def test_no_version_is_given_twice_when_the_last_row_is_set_aside(tmp_path):
    path = tmp_path / "harbor.sqlite"
    *_, last = await kept(path, ["a", "b"])
    spoil(path, last)
    journal = SqliteJournal(path, set_aside=True)
    assert VersionedStore(journal).next_version() == last + 1
    journal.close()


@pytest.mark.parametrize("offset", [0, 4096 + 2])
async def test_a_file_that_is_damaged_is_a_sentence_with_what_to_do(tmp_path, offset):
    path = tmp_path / "harbor.sqlite"
    await kept(path, [f"name-{at}" for at in range(200)])
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 30_000)
    before = path.read_bytes()
    command = [sys.executable, "-m", "pilotage", "harbor", "--data", str(tmp_path)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {path}"), done.stderr
    assert "cannot be read" in done.stderr
    assert "Restore" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == before


# a full disk


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of its own, of some mebibytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = RESERVE_BYTES + 4 * 1024 * 1024
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=False)
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


async def test_on_a_full_disk_deletions_go_on_and_readiness_says_why(small_disk):
    journal = SqliteJournal(small_disk / "harbor.sqlite")
    harbor = Harbor(Core(journal))
    await harbor.start()

    async def create(name, size=1000):
        return (await ask(harbor, "POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"k": "x" * size}})).status

    async def ready():
        return await harbor.handle(Call("GET", "/readyz", {}, {}, b"", LOOPBACK))

    assert await create("held", 100_000) == 201
    made = [name for name in (f"m{at}" for at in range(100)) if await create(name, 100_000) == 201]
    refused = await ask(harbor, "POST", CONFIG_MAPS, {"metadata": {"name": "large"}, "data": {"k": "x" * 500_000}})
    assert (refused.status, b"the disk is full" in refused.body) == (500, True)
    assert (await ready()).status == 500
    assert b"[-]journal failed: the disk is full" in (await ready()).body
    patch = {"metadata": {"labels": {"a": "b"}}, "data": {"k": "less"}}
    changed = await ask(harbor, "PATCH", f"{CONFIG_MAPS}/held", patch, content_type="application/merge-patch+json")
    assert changed.status == 200
    for name in made:
        assert (await ask(harbor, "DELETE", f"{CONFIG_MAPS}/{name}")).status == 200
    assert await create("record") == 201
    assert await create("large", 100_000) == 500
    acknowledged = names_of(harbor.core.store)
    await harbor.stop()
    journal.close()
    await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,size=64m", small_disk], check=True)
    journal = SqliteJournal(small_disk / "harbor.sqlite")
    harbor = Harbor(Core(journal))
    await harbor.start()
    assert names_of(harbor.core.store) == acknowledged
    assert await create("large", 100_000) == 201
    assert (await ready()).status == 200
    await harbor.stop()
    journal.close()


def test_the_reserve_comes_back_when_there_is_room(tmp_path):
    now = 0.0
    path = tmp_path / "reserve"
    reserve = Reserve(path, lambda: now)
    assert reserve.held
    assert path.stat().st_blocks * 512 >= RESERVE_BYTES
    reserve.give_up()
    assert not path.exists()
    assert not reserve.restore()  # it has just been given up
    assert reserve.allows(-5)
    assert reserve.allows(1000)
    assert not reserve.allows(100_000)
    assert sum(reserve.allows(10_000) for _ in range(1000)) < RESERVE_BYTES / 10_000 / 2
    now = 2.0
    assert reserve.restore()
    assert path.stat().st_size == RESERVE_BYTES
