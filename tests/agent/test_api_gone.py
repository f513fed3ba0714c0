"""The API server does not answer: servers go on, and what was asked for meanwhile happens afterwards."""

import asyncio
import math
import secrets

from pilotage.agent.health import Health, Prober, ProbeResult
from pilotage.agent.journal import LifecycleState
from pilotage.agent.launch import process
from pilotage.agent.run import AgentProcess
from pilotage.agent.settings import AgentSettings
from pilotage.api.names import HOST_LEASES, PROCESSES
from pilotage.kube import LEASES, Client, ObjectKey, Propagation
from pilotage.models.blocking import inline
from pilotage.processes.identity import is_running
from pilotage.serving.resources import SERVICES, SLICES
from pilotage_sim.fault_injection import FaultInjection
from pilotage_sim.faulty_transport import FaultyTransport
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.agent.agent_host import KINDS, NAMESPACE, ask, end_all, process_body, service_body
from tests.api.objects import install


class Line:
    """The way of an agent to the API server, which can be cut."""

    def __init__(self, world):
        self._world = world
        self._injection = FaultInjection(world)
        self.client = Client(FaultyTransport(world.transport("agent"), self._injection), name="agent")
        self.lists = 0
        """Number of times that the agent has listed HostProcesses."""
        world.intercept(self._listen)

    def _listen(self, call):
        listed = call.user.name == "agent" and call.method == "GET" and call.path.endswith("/hostprocesses")
        self.lists += listed and not call.flag("watch")

    def cut(self):
        """Refuse every request, and break the watches that are open."""
        self._injection.part(math.inf)

    def mend(self):
        """It answers again. What happened meanwhile has left its history, as after five minutes of Kubernetes's."""
        self._world.core.store.compact(self._world.core.store.version)
        self._injection.partitioned_until = 0.0


async def test_servers_go_on_and_deletes_happen_afterwards(host):
    """Both are real, and both answer: that one of them is to go cannot be known."""
    line = Line(host.world)
    await host.start(line.client)
    await host.serving("stays")
    await host.serving("goes", drainSeconds=0)
    pids = {name: host.pid(name) for name in ("stays", "goes")}
    line.cut()
    await host.delete("goes")
    checks = host.metric('pilotage_agent_health_checks_total{result="healthy"}')
    await host.until(lambda: host.metric('pilotage_agent_health_checks_total{result="healthy"}') >= checks + 4)
    for name in pids:
        assert (await asyncio.to_thread(ask, host.status(name)["port"]))["model"] == "tiny"
    assert sorted(host.processes()) == sorted(pids.values())
    assert host.find("goes") is not None
    assert host.conditions("stays")["ready"]
    lists = line.lists
    line.mend()
    await host.until(lambda: host.find("goes") is None)
    assert line.lists > lists, "no watch has told it"
    assert host.processes() == [pids["stays"]]
    assert host.is_ready("stays")


async def test_what_cannot_be_read_is_not_gone(host):
    """It vanishes from the watch, and the API server does not say whether it is there."""
    line = Line(host.world)
    await host.start(line.client)
    await host.serving(drainSeconds=0)
    pid = host.pid()
    line.cut()
    key = ObjectKey(NAMESPACE, "chat-1-0")
    host.running.agent._store.remove(key)
    host.running.agent.controller.queue.add(key)
    failed = 'controller_runtime_reconcile_total{controller="agent",result="requeue_after"}'
    before = host.metric(failed)
    await host.until(lambda: host.metric(failed) > before)
    assert host.running.journal.entries()[0].state is LifecycleState.RUNNING
    assert host.processes() == [pid]


class Well(Prober):
    """Health check that reports every living server as healthy."""

    def __init__(self):
        super().__init__("127.0.0.1")
        self.asked = 0

    async def __aenter__(self):
        return self

    async def check(self, entry):
        self.asked += 1
        return Health(ProbeResult.HEALTHY if is_running(entry.process) else ProbeResult.DEAD)

    async def in_flight(self, _entry):
        return 0


def test_five_minutes_without_an_api_server(tmp_path_factory):
    """Five minutes of virtual time, with the agent's real intervals; the servers are real processes."""
    folder, model = tmp_path_factory.mktemp("host"), tmp_path_factory.mktemp("model") / "a.bin"
    model.write_bytes(b"weights")
    settings = AgentSettings(
        name=f"host-{secrets.token_hex(4)}",
        address="127.0.0.1",
        data=folder,
        cache_root=folder / "cache",
        file_roots=(model.parent,),
        metrics_address="",
        allow_commands=True,
        run_as="root",
    )
    try:
        play(settings, model)
    finally:
        end_all(folder)


@virtual
async def play(settings, model):
    runtime = {"name": "custom", "command": ["sleep", "1000"], "args": []}

    def lives():
        return sorted(seen.pid for found in process.owned(settings.data).values() for seen in found)

    async with SimulatedWorld(secrets.randbits(32)) as world:
        admin, prober = world.client("admin"), Well()
        await install(admin, KINDS)
        line = Line(world)
        running = AgentProcess(settings, line.client, prober=prober, blocking=inline)
        agent = asyncio.create_task(running.run())
        await admin.create(SERVICES, service_body(), namespace=NAMESPACE)
        for name in ("stays", "goes"):
            body = process_body(name, model, settings.name, runtime=runtime, drainSeconds=1)
            await admin.create(PROCESSES, body, namespace=NAMESPACE)
        # When all is said: the answer to a later write would tell of the delete, too.
        await world.until(
            lambda: [each.get("status", {}).get("ready") for each in world.objects(PROCESSES)] == [True, True], 60
        )
        before = lives()
        assert len(before) == 2
        line.cut()
        key = ObjectKey(NAMESPACE, "goes")
        uid = world.find(PROCESSES, key)["metadata"]["uid"]
        await admin.delete(PROCESSES, key, uid=uid, propagation=Propagation.BACKGROUND)
        asked, lease = prober.asked, world.find(LEASES, ObjectKey(HOST_LEASES, settings.name))["spec"]["renewTime"]
        await asyncio.sleep(300)
        assert world.find(LEASES, ObjectKey(HOST_LEASES, settings.name))["spec"]["renewTime"] == lease
        assert prober.asked >= asked + 50, "and it looked after them all the time"
        stays = running.journal.of(ObjectKey(NAMESPACE, "stays"))[0].pid
        assert lives() == before, "nobody has told it of the delete"
        assert world.find(SLICES, ObjectKey(NAMESPACE, "stays"))["endpoints"][0]["conditions"]["ready"]
        lists = line.lists
        line.mend()
        await world.until(lambda: world.find(PROCESSES, key) is None, 180)  # a watch is tried again, then a list
        assert line.lists > lists
        assert lives() == [stays]
        assert [each["metadata"]["name"] for each in world.objects(SLICES)] == ["stays"]
        await world.until(
            lambda: world.find(LEASES, ObjectKey(HOST_LEASES, settings.name))["spec"]["renewTime"] != lease, 60
        )
        running.stop()
        assert await agent == 0
        assert lives() == []
