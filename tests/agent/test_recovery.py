"""An agent that starts: it takes up what is wanted and runs, stops what is not, and sweeps what was left."""

import os
import shutil
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.agent.journal import AgentJournal, JournalEntry, JournalError, LifecycleState
from pilotage.agent.launch.process import start
from pilotage.agent.recovery import classify
from pilotage.api.names import HOST_LEASES, LABEL_HOST, LABEL_PROCESS_UID, PROCESSES
from pilotage.kube import LEASES, ObjectKey, merge_patch
from pilotage.processes import census
from pilotage.processes.identity import is_running
from pilotage.serving.resources import SLICES
from tests.agent.agent_host import NAMESPACE, python_server, streaming
from tests.agent.servers import FORKING
from tests.support.kinds import delete


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


async def test_what_runs_and_is_wanted_is_adopted_with_its_requests(host):
    await host.start()
    await host.serving()
    pid, uid = host.pid(), host.slice()["metadata"]["uid"]
    with streaming(host.status()["port"]) as stream:
        await host.crash()
        await host.start()
        await host.until(lambda: host.running.journal.entries() and host.is_ready())
        await host.until(lambda: host.metric('pilotage_agent_health_checks_total{result="healthy"}') >= 2)
        assert stream.readline() is not None
    assert host.pid() == pid
    assert host.slice()["metadata"]["uid"] == uid
    assert host.status()["restarts"] == 0
    os.kill(pid, signal.SIGKILL)  # and it is watched as before
    await host.until(lambda: host.status()["restarts"] == 1 and host.is_ready())


async def test_what_died_meanwhile_is_started_again(host):
    await host.start()
    await host.serving(runtime=python_server(FORKING), drainSeconds=0)
    await host.until(lambda: len(host.processes()) == 4)
    before, pid = host.processes(), host.pid()
    await host.crash()
    os.kill(pid, signal.SIGKILL)
    await host.start()
    await host.until(lambda: host.is_ready() and host.pid() != pid)
    assert not {*before} & {*host.processes()}, "and what it had started went first"


async def test_what_was_deleted_meanwhile_goes(host):
    await host.start()
    await host.serving()
    await host.crash()
    await host.delete()
    await host.start()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_a_pid_that_is_another_process_now_is_not_touched(host):
    """The journal has its number, and another time of its start."""
    await host.start()
    await host.serving()
    pid = host.pid()
    await host.crash()
    end(pid)
    stranger = start(["/bin/sleep", "1000"], {}, host.folder / "sleep.log")
    try:
        with AgentJournal(host.settings.data) as journal:
            entry = journal.entries()[0]
            journal.put(entry.but(pid=stranger.pid), "a pid that was given again")
        await host.start()
        await host.until(lambda: host.is_ready() and host.pid() not in (pid, stranger.pid))
        await host.delete()
        await host.until(lambda: host.find() is None)
        assert is_running(stranger)
    finally:
        end(stranger.pid)


async def test_servers_whose_journal_was_lost_are_stopped_and_started_again(host):
    await host.start()
    await host.serving()
    pid = host.pid()
    await host.crash()
    for path in host.settings.data.glob("agent.sqlite*"):
        path.unlink()
    # An agent that lost its journal has lost its name, too, and waits until the other one's Lease has expired.
    lease = await host.client.get(LEASES, ObjectKey(HOST_LEASES, host.name))
    await delete(host.client, LEASES, lease)
    await host.start()
    await host.until(lambda: host.is_ready() and host.pid() != pid)
    assert host.processes() == [host.pid()]


async def test_servers_of_another_agents_folder_are_left_alone(host):
    await host.start()
    uid = "11111111-1111-1111-1111-111111111111"
    environment = {census.PROCESS_UID: uid, census.AGENT_FOLDER: "/somewhere/else"}
    other = start(["/bin/sleep", "1000"], environment, host.folder / "sleep.log")
    try:
        await host.crash()
        await host.start()
        await host.serving()
        assert is_running(other)
    finally:
        end(other.pid)


def left_behind(name, host):
    """A slice of a process that is no more."""
    manager = {"endpointslice.kubernetes.io/managed-by": "pilotage.dev"}
    labels = {LABEL_HOST: host, LABEL_PROCESS_UID: "gone"} | manager
    return {"metadata": {"name": name, "labels": labels}, "addressType": "IPv4", "endpoints": [], "ports": []}


async def test_a_slice_of_a_process_that_nobody_knows_is_swept(host):
    await host.client.create(SLICES, left_behind("old-1-0", host.name), namespace=NAMESPACE)
    for name, labels in (("theirs", {}), ("labelled", {LABEL_HOST: host.name})):
        metadata = {"name": name, "labels": labels}
        theirs = {"metadata": metadata, "addressType": "IPv4", "endpoints": [], "ports": []}
        await host.client.create(SLICES, theirs, namespace=NAMESPACE)
    await host.start()
    await host.until(lambda: host.slice("old-1-0") is None)
    await host.serving()  # by then it has seen all of them
    assert host.slice("theirs") is not None
    assert host.slice("labelled") is not None, "no agent made it"


async def test_a_slice_of_an_earlier_process_of_this_name_makes_room(host):
    await host.client.create(SLICES, left_behind("chat-1-0", host.name), namespace=NAMESPACE)
    await host.start()
    uid = await host.serving()
    assert host.slice()["metadata"]["labels"][LABEL_PROCESS_UID] == uid


async def test_one_folder_is_for_one_agent(host):
    await host.start()
    with pytest.raises(JournalError, match="in use by another agent"):
        AgentJournal(host.settings.data)


async def test_a_label_that_was_lost_stops_nothing(host):
    """It is gone from our watch, and still there, and ours."""
    await host.start()
    await host.serving()
    pid = host.pid()
    patch = merge_patch({"metadata": {"labels": {LABEL_HOST: None}}})
    await host.client.patch(PROCESSES, ObjectKey(NAMESPACE, "chat-1-0"), patch)
    await host.until(lambda: host.metric('pilotage_cached_objects{resource="hostprocesses.pilotage.dev"}') == 0)
    checks = host.metric('pilotage_agent_health_checks_total{result="healthy"}')
    await host.until(lambda: host.metric('pilotage_agent_health_checks_total{result="healthy"}') >= checks + 2)
    assert host.processes() == [pid]


ENTRIES = st.builds(
    JournalEntry,
    uid=st.sampled_from("abcdef"),
    namespace=st.just("n"),
    name=st.sampled_from("xy"),
    state=st.sampled_from(LifecycleState),
    pid=st.integers(0, 5),
    port=st.integers(0, 5),
    slice_uid=st.sampled_from(["", "s"]),
    since=st.floats(0, 9),
)


@given(st.lists(ENTRIES), st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_everything_that_is_found_has_one_fate(entries, wanted, running):
    own = {entry.uid for entry in entries}
    found = classify(entries, wanted, {uid: [] for uid in running})
    assert sorted(map(id, (*found.adopted, *found.stopped))) == sorted(map(id, entries))
    kept = [entry for entry in entries if entry.uid in wanted and entry.state is not LifecycleState.LEAVING]
    assert found.adopted == kept, "a stop that has begun is finished"
    assert found.stray.keys() == running - own


@settings(max_examples=15)  # each write is on the disk when it returns
@given(st.lists(st.tuples(st.booleans(), ENTRIES), max_size=8))
def test_a_journal_that_is_opened_again_has_what_was_written(tmp_path_factory, acts):
    folder = tmp_path_factory.mktemp("journal")
    known = {}
    with AgentJournal(folder) as journal:
        for forget, entry in acts:
            if forget:
                journal.forget(entry.uid)
                known.pop(entry.uid, None)
            else:
                known[journal.put(entry, "it").uid] = entry
        identity = journal.identity
    with AgentJournal(folder) as journal:
        assert {entry.uid: entry for entry in journal.entries()} == known
        assert journal.identity == identity
    shutil.rmtree(folder)


def test_a_file_that_is_no_journal_is_said_so(tmp_path):
    (tmp_path / "agent.sqlite").write_text("no database at all, " * 100)
    with pytest.raises(JournalError, match=r"cannot be read.*Move it away"):
        AgentJournal(tmp_path)


def test_a_folder_that_cannot_be_used_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"cannot be used \(Not a directory\). Choose another --data\.$"):
        AgentJournal(tmp_path / "file" / "agent")
