"""A disk that takes no more: whatever is to go still goes, in the same order, and leaves nothing; and it is said."""

import asyncio
import contextlib
import signal
import sqlite3

import pytest
import structlog
from msgspec.structs import replace

from pilotage.agent.journal import AgentJournal
from pilotage.kube import Client, ObjectKey, load_config, merge_patch
from pilotage.serving.resources import SLICES
from tests.agent.agent_host import NAMESPACE, python_server
from tests.agent.cluster_host import LIGHT
from tests.agent.servers import PLAIN
from tests.agent.test_process import SECONDS_MAX, Place, agent

FULL = "database or disk is full"


def fill(folder):
    """Until not one byte more can be written; the file that takes all of it."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass
    return path


class Full:
    """A disk on which no journal can be written while `now` is true."""

    def __init__(self, monkeypatch):
        self.now, self.refused = False, 0
        write = AgentJournal._write

        def refuse(journal, uid, entry):
            if self.now:
                self.refused += 1
                raise sqlite3.OperationalError(FULL)
            write(journal, uid, entry)

        monkeypatch.setattr(AgentJournal, "_write", refuse)


@pytest.fixture
def full(monkeypatch):
    return Full(monkeypatch)


@pytest.fixture
async def full_disk_host(cluster_host, small_disk):
    """Its data are on a small disk. Without an agent."""
    await cluster_host.crash()
    cluster_host.settings = replace(cluster_host.settings, data=small_disk / "data")
    return cluster_host


async def test_what_is_deleted_goes_though_the_disk_is_full(full_disk_host, small_disk):
    """The disk is full of its own log, among others: nothing else would ever make room."""
    host = full_disk_host
    host.start()
    served = await host.place(**LIGHT)
    log = served.get("status", "logFile")
    fill(small_disk)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "more").write_bytes(b"x")
    await host.delete()
    await host.until(lambda obj: obj is None)
    assert host.processes() == []
    assert await host.slices() == []
    assert not small_disk.joinpath(log).exists()


async def test_shutdown_withdraws_and_stops_everything_though_the_disk_is_full(full_disk_host, small_disk):
    host = full_disk_host
    host.start()
    for name in ("chat-1-0", "chat-1-1"):
        await host.place(name, **LIGHT)
    filler = fill(small_disk)
    host.running.stop()
    assert await host.task == 0
    assert host.processes() == []
    assert await host.slices() == []
    filler.unlink()
    host.start()
    await host.until(lambda obj: obj.get("status", "ready"), "chat-1-1")


async def test_an_agent_that_starts_on_a_full_disk_adopts_and_stops(full_disk_host, small_disk):
    host = full_disk_host
    host.start()
    before = await host.place(**LIGHT)
    await host.crash()
    fill(small_disk)
    host.start()
    await host.running.manager.started.wait()
    assert [entry.pid for entry in host.running.journal.entries()] == [before.get("status", "pid")]
    await host.delete()
    await host.until(lambda obj: obj is None)
    assert host.processes() == []
    assert await host.slices() == []


async def test_sigterm_ends_it_well_though_its_log_is_on_the_full_disk_as_well(harbor_server, small_disk, tiny):
    """The agent as a process of its own: as `pilotage up` runs it."""
    async with Client.connect(load_config(kubeconfig=str(harbor_server))) as client:
        place = Place(client, small_disk, tiny)
        with agent(harbor_server, place, "--metrics-address", "", "--allow-commands", "--run-as", "root") as running:
            await place.place(**LIGHT)
            filler = fill(small_disk)
            running.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(running.wait, SECONDS_MAX) == 0
            assert place.processes() == {}
            assert await place.has_slice() is None
            filler.unlink()


STOPS = ["before noting that it leaves", "before the slice is leaving", "before SIGTERM", "before forgetting"]


@pytest.mark.parametrize("point", STOPS)
async def test_a_delete_goes_on_from_wherever_the_disk_was_full(host, full, point):
    """From that point on no write succeeds; then the agent is killed, and the next one makes sense of the journal."""

    def at(passed):
        full.now = full.now or passed == point

    await host.start(at=at)
    await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
    await host.delete()
    await host.until(lambda: host.find() is None)
    assert full.refused > 0
    await host.crash()
    full.now = False
    await host.start(at=lambda _: None)
    await host.until(lambda: not host.running.journal.entries())
    host.nothing_is_left()


async def test_a_full_journal_is_reported_and_written_later(host, full):
    """While it is drained and cannot be unregistered: then there is a status to say it in."""
    await host.start()
    await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
    finalizer = {"metadata": {"finalizers": ["example.com/mine"]}}
    await host.client.patch(SLICES, ObjectKey(NAMESPACE, "chat-1-0"), merge_patch(finalizer))
    full.now = True
    with structlog.testing.capture_logs() as logs:
        await host.delete()
        await host.until(lambda: FULL in host.status().get("message", ""))
    assert "is still there" in host.status()["message"], "all of it is said"
    assert len([each for each in logs if "journal cannot be written" in each["event"]]) == 1
    assert host.processes() == []
    full.now = False
    await host.until(lambda: host.running.journal.problem == "")
    await host.client.patch(SLICES, ObjectKey(NAMESPACE, "chat-1-0"), merge_patch({"metadata": {"finalizers": None}}))
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_nothing_is_started_or_registered_that_is_not_written_down(host, full):
    full.now = True
    await host.start()
    await host.place(runtime=python_server(PLAIN), drainSeconds=0)
    await host.until(lambda: host.reason() == "JournalNotWritten")
    assert FULL in host.status()["message"]
    assert host.processes() == []
    full.now = False
    await host.until(lambda: host.is_ready())


async def test_a_server_that_runs_is_not_registered_before_that_is_written_down(host, full):
    def at(passed):
        full.now = full.now or passed == "before noting that a slice is made"

    await host.start(at=at)
    await host.place(runtime=python_server(PLAIN), drainSeconds=0)
    await host.until(lambda: host.reason() == "JournalNotWritten")
    pid = host.pid()
    assert host.slice() is None
    host.running.journal.at = lambda _: None
    full.now = False
    await host.until(lambda: host.is_ready())
    assert host.pid() == pid
