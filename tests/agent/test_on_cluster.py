"""On a real API server, as a service account that has the agent's rules and nothing else."""

import asyncio
import os
import re
import secrets
import signal

import pytest
import yaml

from pilotage.agent.run import Running
from pilotage.agent.settings import Settings
from pilotage.kinds import powers
from pilotage.kinds.names import HOST_LEASES, HOSTS, PROCESSES
from pilotage.kube import LEASES, Absent, Client, ObjectKey, Propagation, load_config
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.town import ENDPOINT, HASTY, KINDS, end_all, process_body, service_body
from tests.kinds.objects import install
from tests.support.kinds import delete
from tests.support.waiting import until

SECONDS_MAX = 60
ADDRESS = "198.18.0.1"
"""kube-apiserver takes no loopback address in an EndpointSlice; servers listen there all the same."""


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

    return [*bound("ClusterRole", "", powers.AGENT), *bound("Role", HOST_LEASES, powers.AGENT_LEASES)]


@pytest.fixture
def account(own_cluster, namespace_for_pods, tmp_path):
    """The kubeconfig of an agent's service account, and the host's name."""
    name = f"agent-{secrets.token_hex(4)}"
    leases = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOST_LEASES}}
    own_cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(leases))
    own_cluster.kubectl("create", "serviceaccount", name, "-n", namespace_for_pods)
    text = yaml.safe_dump_all(roles(name, namespace_for_pods))
    own_cluster.kubectl("create", "-f", "-", input=text)
    config = yaml.safe_load(own_cluster.kubeconfig.read_text())
    token = own_cluster.kubectl("create", "token", name, "-n", namespace_for_pods).strip()
    config["users"] = [{"name": "sa", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "sa"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    yield path, name
    own_cluster.kubectl("delete", "--wait=false", "-f", "-", input=text)
    own_cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "lease", name, "-n", HOST_LEASES)


class Host:
    """An agent in this process, and an administrator beside it."""

    def __init__(self, admin, client, name, namespace, folder, model):
        self.admin, self.client, self.namespace, self.model = admin, client, namespace, model
        self.settings = Settings(
            name=name,
            address=ADDRESS,
            data=folder / "data",
            cache_root=folder / "cache",
            file_roots=(model.parent,),
            metrics_address="",
        )
        self.key = ObjectKey(namespace, "chat-1-0")

    def start(self):
        self.running = Running(self.settings, self.client, pace=HASTY)
        self.task = asyncio.create_task(self.running.run())

    async def crash(self):
        self.task.cancel()
        await asyncio.wait({self.task})
        self.running.journal.close()

    async def place(self, **spec):
        await self.admin.create(SERVICES, service_body(), namespace=self.namespace)
        body = process_body("chat-1-0", self.model, self.settings.name, **spec)
        await self.admin.create(PROCESSES, body, namespace=self.namespace)
        return await self.until(lambda obj: obj and obj.get("status", "ready"))

    async def until(self, condition):
        watching = asyncio.create_task(until(self.admin, PROCESSES, self.key, condition, SECONDS_MAX))
        await asyncio.wait({watching, self.task}, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            self.task.result()
        return await watching

    async def delete(self):
        found = await self.admin.get(PROCESSES, self.key)
        await self.admin.delete(PROCESSES, self.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    async def slices(self):
        return (await self.admin.list(SLICES, self.namespace)).items

    def refused(self):
        """What the API server did not allow. It may not make namespaces: those are installed."""
        counted = self.running.manager.metrics.render().decode()
        found = re.findall(r'rest_client_requests_total\{code="403",method="(\w+)"\} (\S+)', counted)
        return [each for each in found if each != ("POST", "1.0")]


@pytest.fixture
async def host(own_cluster, namespace_for_pods, account, tmp_path, tiny):
    path, name = account
    async with (
        Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as admin,
        Client.connect(load_config(kubeconfig=str(path))) as client,
    ):
        await install(admin, KINDS)
        made = Host(admin, client, name, namespace_for_pods, tmp_path, tiny)
        made.start()
        try:
            yield made
        finally:
            if not made.task.done():
                await made.crash()
            end_all(made.settings.data)
            for resource, key in ((PROCESSES, made.key), (HOSTS, ObjectKey("", name))):
                try:
                    found = await admin.get(resource, key)
                except Absent:
                    continue
                if found.meta.finalizers:
                    own_cluster.kubectl(
                        *("patch", "hp", key.name, "-n", key.namespace, "--type=merge"),
                        *("-p", '{"metadata":{"finalizers":null}}'),
                    )
                await delete(admin, resource, found)


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
    said = await host.until(lambda obj: "not a part of this endpoint" in (obj.get("status", "message") or ""))
    assert said.get("status", "phase") == "Failed"
    assert [each for each in await host.slices() if each.meta.labels.get("pilotage.dev/host")] == []
