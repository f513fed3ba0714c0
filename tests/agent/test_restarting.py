"""An agent that starts: it takes up what is wanted and runs, stops what is not, and sweeps what was left."""

import os
import shutil
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.agent.journal import Entry, Journal, JournalError, State
from pilotage.agent.launch.process import start
from pilotage.agent.restart import sort
from pilotage.api.names import HOST_LEASES, LABEL_HOST, LABEL_PROCESS_UID, PROCESSES
from pilotage.kube import LEASES, ObjectKey, merge_patch
from pilotage.processes import census
from pilotage.processes.identity import is_running
from pilotage.serving.resources import SLICES
from tests.agent.servers import FORKING
from tests.agent.town import NAMESPACE, python_server, streaming
from tests.support.kinds import delete


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


async def test_what_runs_and_is_wanted_is_adopted_with_its_requests(town):
    await town.start()
    await town.serving()
    pid, uid = town.pid(), town.slice()["metadata"]["uid"]
    with streaming(town.status()["port"]) as stream:
        await town.crash()
        await town.start()
        await town.until(lambda: town.running.journal.entries() and town.is_ready())
        await town.until(lambda: town.metric('pilotage_agent_health_checks_total{result="healthy"}') >= 2)
        assert stream.readline() is not None
    assert town.pid() == pid
    assert town.slice()["metadata"]["uid"] == uid
    assert town.status()["restarts"] == 0
    os.kill(pid, signal.SIGKILL)  # and it is watched as before
    await town.until(lambda: town.status()["restarts"] == 1 and town.is_ready())


async def test_what_died_meanwhile_is_started_again(town):
    await town.start()
    await town.serving(runtime=python_server(FORKING), drainSeconds=0)
    await town.until(lambda: len(town.processes()) == 4)
    before, pid = town.processes(), town.pid()
    await town.crash()
    os.kill(pid, signal.SIGKILL)
    await town.start()
    await town.until(lambda: town.is_ready() and town.pid() != pid)
    assert not {*before} & {*town.processes()}, "and what it had started went first"


async def test_what_was_deleted_meanwhile_goes(town):
    await town.start()
    await town.serving()
    await town.crash()
    await town.delete()
    await town.start()
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()


async def test_a_pid_that_is_another_process_now_is_not_touched(town):
    """The journal has its number, and another time of its start."""
    await town.start()
    await town.serving()
    pid = town.pid()
    await town.crash()
    end(pid)
    stranger = start(["/bin/sleep", "1000"], {}, town.folder / "sleep.log")
    try:
        with Journal(town.settings.data) as journal:
            entry = journal.entries()[0]
            journal.put(entry.but(pid=stranger.pid), "a pid that was given again")
        await town.start()
        await town.until(lambda: town.is_ready() and town.pid() not in (pid, stranger.pid))
        await town.delete()
        await town.until(lambda: town.find() is None)
        assert is_running(stranger)
    finally:
        end(stranger.pid)


async def test_servers_whose_journal_was_lost_are_stopped_and_started_again(town):
    await town.start()
    await town.serving()
    pid = town.pid()
    await town.crash()
    for path in town.settings.data.glob("agent.sqlite*"):
        path.unlink()
    # Who has lost its journal has lost its name, too, and waits until the Lease of the other has run out.
    lease = await town.client.get(LEASES, ObjectKey(HOST_LEASES, town.host))
    await delete(town.client, LEASES, lease)
    await town.start()
    await town.until(lambda: town.is_ready() and town.pid() != pid)
    assert town.processes() == [town.pid()]


async def test_servers_of_another_agents_folder_are_left_alone(town):
    await town.start()
    uid = "11111111-1111-1111-1111-111111111111"
    environment = {census.PROCESS_UID: uid, census.AGENT_FOLDER: "/somewhere/else"}
    other = start(["/bin/sleep", "1000"], environment, town.folder / "sleep.log")
    try:
        await town.crash()
        await town.start()
        await town.serving()
        assert is_running(other)
    finally:
        end(other.pid)


def left_behind(name, host):
    """A slice of a process that is no more."""
    manager = {"endpointslice.kubernetes.io/managed-by": "pilotage.dev"}
    labels = {LABEL_HOST: host, LABEL_PROCESS_UID: "gone"} | manager
    return {"metadata": {"name": name, "labels": labels}, "addressType": "IPv4", "endpoints": [], "ports": []}


async def test_a_slice_of_a_process_that_nobody_knows_is_swept(town):
    await town.client.create(SLICES, left_behind("old-1-0", town.host), namespace=NAMESPACE)
    for name, labels in (("theirs", {}), ("labelled", {LABEL_HOST: town.host})):
        metadata = {"name": name, "labels": labels}
        theirs = {"metadata": metadata, "addressType": "IPv4", "endpoints": [], "ports": []}
        await town.client.create(SLICES, theirs, namespace=NAMESPACE)
    await town.start()
    await town.until(lambda: town.slice("old-1-0") is None)
    await town.serving()  # by then it has seen all of them
    assert town.slice("theirs") is not None
    assert town.slice("labelled") is not None, "no agent made it"


async def test_a_slice_of_an_earlier_process_of_this_name_makes_room(town):
    await town.client.create(SLICES, left_behind("chat-1-0", town.host), namespace=NAMESPACE)
    await town.start()
    uid = await town.serving()
    assert town.slice()["metadata"]["labels"][LABEL_PROCESS_UID] == uid


async def test_one_folder_is_for_one_agent(town):
    await town.start()
    with pytest.raises(JournalError, match="in use by another agent"):
        Journal(town.settings.data)


async def test_a_label_that_was_lost_stops_nothing(town):
    """It is gone from our watch, and still there, and ours."""
    await town.start()
    await town.serving()
    pid = town.pid()
    patch = merge_patch({"metadata": {"labels": {LABEL_HOST: None}}})
    await town.client.patch(PROCESSES, ObjectKey(NAMESPACE, "chat-1-0"), patch)
    await town.until(lambda: town.metric('pilotage_cached_objects{resource="hostprocesses.pilotage.dev"}') == 0)
    checks = town.metric('pilotage_agent_health_checks_total{result="healthy"}')
    await town.until(lambda: town.metric('pilotage_agent_health_checks_total{result="healthy"}') >= checks + 2)
    assert town.processes() == [pid]


ENTRIES = st.builds(
    Entry,
    uid=st.sampled_from("abcdef"),
    namespace=st.just("n"),
    name=st.sampled_from("xy"),
    state=st.sampled_from(State),
    pid=st.integers(0, 5),
    port=st.integers(0, 5),
    slice_uid=st.sampled_from(["", "s"]),
    since=st.floats(0, 9),
)


@given(st.lists(ENTRIES), st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_everything_that_is_found_has_one_fate(entries, wanted, running):
    own = {entry.uid for entry in entries}
    found = sort(entries, wanted, {uid: [] for uid in running})
    assert sorted(map(id, (*found.adopted, *found.stopped))) == sorted(map(id, entries))
    assert all(entry.uid in wanted for entry in found.adopted)
    assert found.stray.keys() == running - own


@settings(max_examples=15)  # each write is on the disk when it returns
@given(st.lists(st.tuples(st.booleans(), ENTRIES), max_size=8))
def test_a_journal_that_is_opened_again_has_what_was_written(tmp_path_factory, acts):
    folder = tmp_path_factory.mktemp("journal")
    known = {}
    with Journal(folder) as journal:
        for forget, entry in acts:
            if forget:
                journal.forget(entry.uid)
                known.pop(entry.uid, None)
            else:
                known[journal.put(entry, "it").uid] = entry
        identity = journal.identity
    with Journal(folder) as journal:
        assert {entry.uid: entry for entry in journal.entries()} == known
        assert journal.identity == identity
    shutil.rmtree(folder)


def test_a_file_that_is_no_journal_is_said_so(tmp_path):
    (tmp_path / "agent.sqlite").write_text("no database at all, " * 100)
    with pytest.raises(JournalError, match=r"cannot be read.*Move it away"):
        Journal(tmp_path)


def test_a_folder_that_cannot_be_used_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"cannot be used \(Not a directory\). Choose another --data\.$"):
        Journal(tmp_path / "file" / "agent")
