"""The agent on a real API server, as a service account that has the agent's rules and nothing else."""

import asyncio
import contextlib
import os
import re
import secrets
import signal

import pytest
import yaml

from controlplane import Cluster
from pilotage.agent.launch import process
from pilotage.agent.pressure import MemoryPressure
from pilotage.agent.run import AgentProcess
from pilotage.agent.settings import AgentSettings
from pilotage.api import rbac_rules
from pilotage.api.names import HOST_LEASES, HOSTS, LABEL_PROCESS_UID, PROCESSES
from pilotage.kube import (
    LEASES,
    Absent,
    AlreadyExists,
    Client,
    ObjectKey,
    Resource,
    load_config,
    merge_patch,
)
from pilotage.processes.identity import ProcessInfo
from pilotage.processes.terminate import StillRunning
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.agent_host import (
    ENDPOINT,
    KINDS,
    SHORT_INTERVALS,
    Strains,
    end_all,
    process_body,
    python_server,
    service_body,
)
from tests.agent.forked_agents import nursery
from tests.agent.servers import PLAIN
from tests.agent.test_crash_points import Story
from tests.agent.test_pressure import CALM, CRITICAL
from tests.api.objects import install
from tests.support.kinds import CLUSTER_ROLES, delete
from tests.support.waiting import eventually, until

SECONDS_MAX = 60
ADDRESS = "198.18.0.1"
"""kube-apiserver takes no loopback address in an EndpointSlice; servers listen there all the same."""
REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
LIGHT = {"runtime": python_server(PLAIN), "drainSeconds": 0}
"""A server that is there at once, where it does not matter which one it is."""


def roles(name, account_namespace):
    """The agent's rules, bound to one account."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": account_namespace}
    group = "rbac.authorization.k8s.io"

    def bound(kind, namespace, rules):
        meta = {"name": name} | ({"namespace": namespace} if namespace else {})
        role = {
            "apiVersion": f"{group}/v1",
            "kind": kind,
            "metadata": meta,
            "rules": [each.written() for each in rules],
        }
        ref = {"apiGroup": group, "kind": kind, "name": name}
        binding = {"apiVersion": f"{group}/v1", "kind": f"{kind}Binding", "metadata": meta, "roleRef": ref}
        return [role, binding | {"subjects": [subject]}]

    return [*bound("ClusterRole", "", rbac_rules.AGENT), *bound("Role", HOST_LEASES, rbac_rules.AGENT_LEASES)]


class Account:
    """The service account of an agent: its kubeconfig, and what it may do."""

    def __init__(self, cluster, namespace, folder):
        self.name, self._cluster = f"agent-{secrets.token_hex(4)}", cluster
        self._user = f"system:serviceaccount:{namespace}:{self.name}"
        self.kubeconfig = folder / "kubeconfig"
        leases = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOST_LEASES}}
        cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(leases))
        cluster.kubectl("create", "serviceaccount", self.name, "-n", namespace)
        self._roles = yaml.safe_dump_all(roles(self.name, namespace))
        cluster.kubectl("create", "-f", "-", input=self._roles)
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        token = cluster.kubectl("create", "token", self.name, "-n", namespace).strip()
        config["users"] = [{"name": "sa", "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = "sa"
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def close(self):
        self._cluster.kubectl("delete", "--wait=false", "-f", "-", input=self._roles)

    @contextlib.asynccontextmanager
    async def without(self, admin, verb, resource):
        """Take this permission away from it meanwhile."""
        rules = [each.written() for each in rbac_rules.AGENT]
        fewer = [
            each | {"verbs": [one for one in each["verbs"] if one != verb or resource not in each["resources"]]}
            for each in rules
        ]
        group = next(each["apiGroups"][0] for each in rules if resource in each["resources"])

        async def allow(given, expected):
            await admin.patch(CLUSTER_ROLES, ObjectKey("", self.name), merge_patch({"rules": given}))
            asked = {"verb": verb, "group": group, "resource": resource, "namespace": "default"}

            async def heard():
                review = {"spec": {"user": self._user, "resourceAttributes": asked}}
                return (await admin.create(REVIEWS, review)).get("status", "allowed") is expected

            await eventually(heard)

        await allow(fewer, expected=False)
        try:
            yield
        finally:
            await allow(rules, expected=True)


@pytest.fixture(scope="module")
def account(cluster, tmp_path_factory):
    """One for all tests here."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    with cluster.namespace("agents", for_pods=False) as namespace:
        made = Account(cluster, namespace, tmp_path_factory.mktemp("account"))
        yield made
        made.close()


class Host:
    """An agent in this process, and an administrator beside it."""

    def __init__(self, admin, client, namespace, folder, model):
        self.admin, self.client, self.namespace, self.model = admin, client, namespace, model
        self.settings = AgentSettings(
            name=f"host-{secrets.token_hex(4)}",
            address=ADDRESS,
            data=folder / "data",
            cache_root=folder / "cache",
            file_roots=(model.parent,),
            metrics_address="",
            allow_commands=True,
            run_as="root",
            priority_max=1000,
        )
        self.key = self.named("chat-1-0")
        self.strains = Strains()
        self.at = lambda _: None
        """Told of each point between two acts."""

    def named(self, name):
        return ObjectKey(self.namespace, name)

    def start(self):
        pressure = MemoryPressure(self.strains, calm_seconds=0.1, next_seconds=60)  # one is stopped, and no other
        self.running = AgentProcess(
            self.settings, self.client, intervals=SHORT_INTERVALS, pressure=pressure, at=lambda point: self.at(point)
        )
        self.task = asyncio.create_task(self.running.run())

    async def crash(self):
        self.task.cancel()
        await asyncio.wait({self.task})
        self.running.journal.close()

    async def place(self, name="chat-1-0", **spec):
        """One that is ready."""
        with contextlib.suppress(AlreadyExists):
            await self.admin.create(SERVICES, service_body(), namespace=self.namespace)
        body = process_body(name, self.model, self.settings.name, **spec)
        await self.admin.create(PROCESSES, body, namespace=self.namespace)
        return await self.until(is_ready, name)

    async def until(self, condition, name="chat-1-0"):
        watching = asyncio.create_task(until(self.admin, PROCESSES, self.named(name), condition, SECONDS_MAX))
        await asyncio.wait({watching, self.task}, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            self.task.result()
        return await watching

    async def delete(self, name="chat-1-0"):
        await delete(self.admin, PROCESSES, await self.admin.get(PROCESSES, self.named(name)))

    async def slices(self):
        return (await self.admin.list(SLICES, self.namespace)).items

    async def theirs(self, name):
        """A slice of another owner."""
        body = {"metadata": {"name": name}, "addressType": "IPv4", "endpoints": [], "ports": []}
        return await self.admin.create(SLICES, body, namespace=self.namespace)

    def processes(self):
        return [seen.pid for found in process.owned(self.settings.data).values() for seen in found]

    def metric(self, line):
        """The value of a metric, by its name and labels."""
        lines = self.running.manager.metrics.render().decode().splitlines()
        return float(next(each.rpartition(" ")[2] for each in lines if each.startswith(f"{line} ")))

    def refused(self):
        """Requests that the API server refused, but for creations of namespaces: those come with the installation."""
        counted = self.running.manager.metrics.render().decode()
        found = re.findall(r'rest_client_requests_total\{code="403",method="(\w+)"\} (\S+)', counted)
        return [each for each in found if each != ("POST", "1.0")]


def is_ready(obj):
    return obj and obj.get("status", "ready")


def message(obj):
    return obj.get("status", "message") or ""


async def clear(admin, namespace, *hosts):
    """Remove whatever a test has left that would disturb others."""
    left = [(PROCESSES, each.key) for each in (await admin.list(PROCESSES, namespace)).items]
    left += [
        (resource, ObjectKey(where, host)) for host in hosts for resource, where in ((HOSTS, ""), (LEASES, HOST_LEASES))
    ]
    for resource, key in left:
        with contextlib.suppress(Absent):
            found = await admin.get(resource, key)
            if found.meta.finalizers:
                await admin.patch(resource, key, merge_patch({"metadata": {"finalizers": None}}))
            await delete(admin, resource, found)


@pytest.fixture
async def admin(own_cluster):
    async with Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as client:
        await install(client, KINDS)
        yield client


@pytest.fixture
async def host(admin, namespace, account, tmp_path, tiny):
    async with Client.connect(load_config(kubeconfig=str(account.kubeconfig))) as client:
        made = Host(admin, client, namespace, tmp_path, tiny)
        made.start()
        try:
            yield made
        finally:
            if not made.task.done():
                await made.crash()
            end_all(made.settings.data)
            await clear(admin, namespace, made.settings.name)


async def test_a_life_with_the_powers_that_an_agent_has(host):
    """It comes, dies, comes again, is adopted by the next agent, is deleted, and leaves nothing."""
    served = await host.place()
    (made,) = await host.slices()
    assert made.get("endpoints")[0]["addresses"] == [ADDRESS]
    assert made.get("endpoints")[0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert made.get("ports")[0]["port"] == served.get("status", "port")
    service = await host.admin.get(SERVICES, ObjectKey(host.namespace, "chat-1"))
    assert [owner.uid for owner in made.meta.owner_references] == [service.meta.uid]
    assert made.meta.labels["pilotage.dev/endpoint-uid"] == ENDPOINT

    first = served.get("status", "pid")
    os.kill(first, signal.SIGKILL)
    again = await host.until(
        lambda obj: obj.get("status", "ready") and obj.get("status", "pid") != first and obj.get("status", "restarts")
    )
    second = again.get("status", "pid")
    await host.crash()
    assert host.refused() == []
    host.start()
    await asyncio.wait_for(host.running.manager.started.wait(), SECONDS_MAX)
    assert [entry.pid for entry in host.running.journal.entries()] == [second]
    await host.delete()
    await host.until(lambda obj: obj is None)
    assert await host.slices() == []
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)
    found = await host.admin.get(HOSTS, ObjectKey("", host.settings.name))
    assert found.get("status", "phase") == "Ready"
    assert found.get("status", "addresses") == [ADDRESS]
    host.running.stop()
    assert await host.task == 0
    assert host.refused() == []


async def test_shutdown_unregisters_there_too(host):
    await host.place()
    host.running.stop()
    assert await host.task == 0
    assert await host.slices() == []
    stopped = await host.admin.get(PROCESSES, host.key)
    assert stopped.get("status", "phase") == "Pending"
    assert not stopped.get("status", "ready")
    lease = await host.admin.get(LEASES, ObjectKey(HOST_LEASES, host.settings.name))
    assert not lease.get("spec", "holderIdentity")
    assert host.refused() == []


async def test_a_service_that_goes_takes_its_slice_and_a_foreign_name_is_refused(host):
    """The collector takes the slice of a Service that is gone; the one that comes under its name is not ours."""
    await host.place()
    await delete(host.admin, SERVICES, await host.admin.get(SERVICES, ObjectKey(host.namespace, "chat-1")))
    await host.admin.create(SERVICES, service_body(app="theirs"), namespace=host.namespace)
    said = await host.until(lambda obj: obj.get("status", "ready") is False)
    said = await host.until(lambda obj: "not a part of this endpoint" in message(obj))
    assert said.get("status", "phase") == "Failed"
    assert [each for each in await host.slices() if each.meta.labels.get("pilotage.dev/host")] == []


async def test_errors_of_several_steps_are_said_together_and_it_is_tried_until_it_is_proven(host, account, monkeypatch):
    """It does not end, and its slice may not be deleted; then may be, and does not go."""
    served = await host.place(**LIGHT)

    async def end(*_args, **_more):
        raise StillRunning([ProcessInfo(7, "", 1, 7)])

    monkeypatch.setattr(process, "end", end)
    await host.admin.patch(SLICES, host.key, merge_patch({"metadata": {"finalizers": ["example.com/mine"]}}))
    async with account.without(host.admin, "delete", "endpointslices"):
        await host.delete()
        said = await host.until(lambda obj: "does not end" in message(obj))
        assert 'cannot delete resource "endpointslices"' in message(said)
        assert host.processes() == [served.get("status", "pid")], "and it is not forgotten"
    monkeypatch.undo()
    said = await host.until(lambda obj: message(obj).startswith("EndpointSlice"))
    assert message(said) == f"EndpointSlice {host.key} is still there."
    assert host.processes() == []
    assert [each.meta.terminating for each in await host.slices()] == [True]
    await host.admin.patch(SLICES, host.key, merge_patch({"metadata": {"finalizers": None}}))
    await host.until(lambda obj: obj is None)
    assert await host.slices() == []


async def test_a_slice_that_somebody_else_takes_away_meanwhile_is_unregistered(host, own_cluster):
    """The slice changes between our list and our delete: once it is gone then, once its name is another's."""
    for name in ("gone", "taken"):
        await host.place(name, **LIGHT)
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{host.namespace}/endpointslices"
    left = ["gone", "taken"]

    def take(point):
        if point == "before the slice is deleted":
            own_cluster.request("DELETE", f"{slices}/{left[0]}")
            if left.pop(0) == "taken":
                body = {"metadata": {"name": "taken"}, "addressType": "IPv4", "endpoints": [], "ports": []}
                own_cluster.request("POST", slices, body)

    host.at = take
    for name in ("gone", "taken"):
        await host.delete(name)
        await host.until(lambda obj: obj is None, name)
    assert left == []
    for code in (404, 409):
        assert host.metric(f'rest_client_requests_total{{code="{code}",method="DELETE"}}') == 1
    assert host.metric("pilotage_agent_takedown_failures_total") == 0
    assert [(each.meta.name, LABEL_PROCESS_UID in each.meta.labels) for each in await host.slices()] == [
        ("taken", False)
    ]
    assert host.processes() == []


async def test_names_that_look_alike_do_not_collide_and_one_that_is_taken_is_refused(host):
    """`a.b` and `a-b`; and a slice of another owner, which is reported and left alone."""
    made = {name: await host.place(name, **LIGHT) for name in ("a.b", "a-b")}
    owners = {each.meta.name: each.meta.labels[LABEL_PROCESS_UID] for each in await host.slices()}
    assert owners == {name: each.meta.uid for name, each in made.items()}
    await host.delete("a.b")
    await host.until(lambda obj: obj is None, "a.b")
    assert [each.meta.name for each in await host.slices()] == ["a-b"]
    assert host.processes() == [made["a-b"].get("status", "pid")]

    theirs = await host.theirs("a.b")
    body = process_body("a.b", host.model, host.settings.name, **LIGHT)
    await host.admin.create(PROCESSES, body, namespace=host.namespace)
    said = await host.until(lambda obj: obj.get("status", "phase") == "Failed", "a.b")
    assert "EndpointSlice a.b is there already, and it is not this server's" in message(said)
    await host.delete("a.b")
    await host.until(lambda obj: obj is None, "a.b")
    found = await host.admin.get(SLICES, theirs.key)
    assert (found.meta.uid, found.meta.resource_version) == (theirs.meta.uid, theirs.meta.resource_version)
    assert host.refused() == []


async def test_memory_pressure_takes_the_lowest_priority_away_and_it_comes_back(host):
    await host.place("low", priority=1, **LIGHT)
    high = await host.place("high", priority=5, **LIGHT)
    host.strains.strain = CRITICAL
    gone = await host.until(lambda obj: obj.get("status", "phase") == "Evicted", "low")
    assert "short of memory" in message(gone)
    assert [each.meta.name for each in await host.slices()] == ["high"]
    assert host.processes() == [high.get("status", "pid")]
    found = await until(
        host.admin, HOSTS, ObjectKey("", host.settings.name), lambda obj: obj.get("status", "phase") == "Pressed"
    )
    assert [each["status"] for each in found.get("status", "conditions") if each["type"] == "MemoryPressure"] == [
        "True"
    ]
    host.strains.strain = CALM
    back = await host.until(is_ready, "low")
    assert back.get("status", "restarts") == 0
    conditions = {each.meta.name: each.get("endpoints")[0]["conditions"]["ready"] for each in await host.slices()}
    assert conditions == {"low": True, "high": True}
    assert host.refused() == []


async def test_death_of_the_agent_leaves_no_orphan_and_no_stale_slice(account, admin, namespace, tmp_path, tiny):
    """A server that is not noted, a slice that is not noted, and a slice whose server is gone."""
    points = ["before noting its process", "before noting the slice", "before the slice is deleted"]
    here = {"namespace": namespace, "address": ADDRESS} | LIGHT
    with nursery(account.kubeconfig) as made:
        stories = [Story(admin, made, tmp_path, tiny, point, **here) for point in points]
        try:
            await asyncio.gather(*(story.run() for story in stories))
        finally:
            await clear(admin, namespace, *(story.settings.name for story in stories))
    assert [story.died for story in stories] == points
    assert [story.adopted for story in stories] == [True, True, False]
