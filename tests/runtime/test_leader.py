"""One writer at a time, whatever happens to it: shown by the requests that a real API server got, in order."""

import asyncio
import contextlib
import itertools
import random
import signal
import sys

import pytest

from pilotage.kube import LEASES, Client, ObjectKey, load_config, merge_patch
from pilotage.runtime.leader import Election, Leader, LeaseLost
from pilotage.runtime.manager import _Gate
from pilotage_sim.loop import virtual
from tests.runtime.objects import THINGS
from tests.runtime.things import install_things, make_thing
from tests.runtime.waiting import eventually
from tests.support.tcp_proxy import TcpProxy
from tests.support.transports import ScriptedTransport, answer

ADMINISTRATORS = ("system:masters",)


@pytest.fixture
async def client(cluster, namespace, no_leaks):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install_things(client, namespace)
        yield client


class Writers:
    """Processes of `tests.runtime.writer`, each a user of its own, and what the audit log says they wrote."""

    def __init__(self, cluster, namespace):
        self._cluster = cluster
        self._namespace = namespace
        self._since = cluster.audit_mark()
        self.processes = {}

    async def start(self, name):
        kubeconfig = self._cluster.user(name, ADMINISTRATORS)
        self.processes[name] = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.runtime.writer", str(kubeconfig), self._namespace, name),
            stdout=asyncio.subprocess.PIPE,
        )

    async def leads(self, name):
        async with asyncio.timeout(60):
            assert await self.processes[name].stdout.readline() == b"leads\n"

    def history(self):
        """Authors of the writes to the Things, in the order in which the server answered."""
        records = self._cluster.audit(since=self._since, resource="things", namespace=self._namespace)
        return [record.user for record in records if record.verb == "patch" and record.code == 200]

    def holders(self):
        """Whom the Lease named, in order."""
        records = self._cluster.audit(since=self._since, resource="leases", namespace=self._namespace)
        return [record.body["spec"]["holderIdentity"] for record in records if record.body and record.code < 300]

    async def write(self, name):
        """Wait until this one has written."""
        await eventually(lambda: name in self.history())


@pytest.fixture
async def writers(own_cluster, client, namespace):
    writers = Writers(own_cluster, namespace)
    yield writers
    for process in writers.processes.values():
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def holder(client, namespace):
    return (await client.get(LEASES, ObjectKey(namespace, "writers"))).get("spec")


def turns(history):
    """The history without repetitions: who wrote, then who, then who."""
    return [name for name, _ in itertools.groupby(history)]


async def test_a_frozen_leader_does_not_write_when_it_wakes_up(client, namespace, writers):
    await make_thing(client, namespace)
    await writers.start("writer-a")
    await writers.leads("writer-a")
    await writers.write("writer-a")
    await writers.start("writer-b")
    writers.processes["writer-a"].send_signal(signal.SIGSTOP)
    await writers.leads("writer-b")
    await writers.write("writer-b")
    writers.processes["writer-a"].send_signal(signal.SIGCONT)
    assert await writers.processes["writer-a"].wait() == 3
    assert turns(writers.history()) == ["writer-a", "writer-b"]
    assert (await holder(client, namespace))["leaseTransitions"] == 1


async def test_a_clean_stop_hands_over_at_once(client, namespace, writers):
    await make_thing(client, namespace)
    await writers.start("writer-a")
    await writers.leads("writer-a")
    await writers.write("writer-a")
    await writers.start("writer-b")
    await eventually(lambda: bool(writers._cluster.audit(user="writer-b", resource="leases", namespace=namespace)))
    writers.processes["writer-a"].terminate()
    assert await writers.processes["writer-a"].wait() == 0
    await writers.leads("writer-b")
    await writers.write("writer-b")
    writers.processes["writer-b"].terminate()
    assert await writers.processes["writer-b"].wait() == 0
    assert turns(writers.history()) == ["writer-a", "writer-b"]
    assert turns(writers.holders()) == ["writer-a", "", "writer-b", ""], "given up each time, not run out"


async def test_a_killed_leader_is_followed_when_its_lease_has_run_out(client, namespace, writers):
    await make_thing(client, namespace)
    await writers.start("writer-a")
    await writers.leads("writer-a")
    await writers.write("writer-a")
    await writers.start("writer-b")
    writers.processes["writer-a"].kill()
    await writers.leads("writer-b")
    await writers.write("writer-b")
    assert turns(writers.history()) == ["writer-a", "writer-b"]


async def test_a_leader_that_is_cut_off_stops_before_anybody_else_may_start(cluster, client, namespace):
    lease = ObjectKey(namespace, "writers")

    def candidate(identity, of):
        return Leader(of, Election(lease, identity, 3.0, 2.0, 0.2), random.Random(1))

    config = load_config(kubeconfig=str(cluster.kubeconfig))
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config)) as cut_off:
        first, second = candidate("first", cut_off), candidate("second", client)
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        waiting = asyncio.create_task(second.acquire())
        first.check()
        with pytest.raises(LeaseLost):
            second.check()
        proxy.refuse()
        with pytest.raises(LeaseLost):
            await keeping
        with pytest.raises(LeaseLost):
            first.check()
        assert not waiting.done(), "the second may start only after the first has stopped"
        await waiting
        second.check()
        await second.release()


async def test_a_guarded_write_is_not_sent_without_the_lease(own_cluster, client, namespace):
    """The gate is the clock at the moment of the write: no task has to have noticed anything."""
    key = await make_thing(client, namespace)
    leader = Leader(client, Election(ObjectKey(namespace, "writers"), "me", 3.0, 1e-9, 0.0), random.Random(1))
    await leader.acquire()  # with so short a renewal it is unsure as soon as it has it
    mark = own_cluster.audit_mark()
    with pytest.raises(LeaseLost):
        await client.guarded_by(_Gate(leader.check)).patch(THINGS, key, merge_patch({"status": {"by": "me"}}))
    await client.get(THINGS, key)
    assert [record.verb for record in own_cluster.audit(since=mark, resource="things", namespace=namespace)] == ["get"]


@virtual
async def test_a_write_that_had_to_wait_is_not_sent_when_the_lease_was_lost_meanwhile():
    lost_at = asyncio.get_running_loop().time() + 2.0

    def check():
        if asyncio.get_running_loop().time() > lost_at:
            raise LeaseLost("lost")

    transport = ScriptedTransport(answer({}, status=429, retry_after="3"), answer({}))
    with pytest.raises(LeaseLost):
        await Client(transport).guarded_by(_Gate(check)).patch(THINGS, ObjectKey("ns", "a"), merge_patch({}))
    assert len(transport.requests) == 1


@pytest.mark.parametrize(("lease", "renew", "retry"), [(10, 15, 2), (15, 15, 2), (15, 2, 2), (15, 10, -1)])
def test_durations_that_would_allow_two_leaders_are_refused(lease, renew, retry):
    with pytest.raises(ValueError, match="must last longer"):
        Leader(Client(ScriptedTransport()), Election(ObjectKey("ns", "l"), "me", lease, renew, retry), random.Random(1))
