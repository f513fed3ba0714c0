"""An agent in this process that serves a real API server, as a service account with the agent's rules alone."""

import asyncio
import contextlib
import re
import secrets

import yaml

from pilotage.agent.launch import process
from pilotage.agent.pressure import MemoryPressure
from pilotage.agent.run import AgentProcess
from pilotage.agent.settings import AgentSettings
from pilotage.api import rbac_rules
from pilotage.api.names import HOST_LEASES, HOSTS, PROCESSES
from pilotage.kube import (
    LEASES,
    Absent,
    AlreadyExists,
    ObjectKey,
    Resource,
    merge_patch,
)
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.agent_host import SHORT_INTERVALS, Strains, process_body, python_server, service_body
from tests.agent.servers import PLAIN
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
        self.user = f"system:serviceaccount:{namespace}:{self.name}"
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
                review = {"spec": {"user": self.user, "resourceAttributes": asked}}
                return (await admin.create(REVIEWS, review)).get("status", "allowed") is expected

            await eventually(heard)

        await allow(fewer, expected=False)
        try:
            yield
        finally:
            await allow(rules, expected=True)


class ClusterHost:
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
        self.prober = None
        self.at = lambda _: None
        """Told of each point between two acts."""

    def named(self, name):
        return ObjectKey(self.namespace, name)

    def start(self):
        pressure = MemoryPressure(self.strains, calm_seconds=0.1, next_seconds=60)  # one is stopped, and no other
        self.running = AgentProcess(
            self.settings,
            self.client,
            intervals=SHORT_INTERVALS,
            pressure=pressure,
            prober=self.prober,
            at=lambda point: self.at(point),
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
