"""Two tenants, two Hosts with their agents, and what an administrator has installed and bound for them.

The same on the real API server and on harbor: `accounts` makes a client for a user of some groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pilotage.api.names import (
    AGENTS_GROUP,
    ENDPOINTS,
    GATEWAY_ROUTES,
    HOST_LEASES,
    HOST_SERVICES,
    HOSTS,
    LABEL_HOST,
    LABEL_PROCESS_UID,
    MODELS,
    PROCESS_FINALIZER,
    PROCESSES,
    TEARDOWNS,
)
from pilotage.controllers.host.grants import KEY
from pilotage.kube import (
    LEASES,
    AlreadyExists,
    ApiError,
    Client,
    Json,
    ObjectKey,
    Propagation,
    Resource,
    merge_patch,
)
from pilotage.serving.resources import SERVICES, SLICES
from tests.api.objects import endpoint, gateway_route, model, teardown

RBAC = "rbac.authorization.k8s.io"
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
ROLES = Resource(RBAC, "v1", "roles", "Role")
OWN, OTHER = "gpu-a", "gpu-b"
"""The Host whose agent's key the attacker has, and another one."""

Accounts = Callable[[str, tuple[str, ...]], Client]


class TwoTenants(NamedTuple):
    """Users of the cluster. The namespaces of both tenants exist."""

    admin: Client
    accounts: Accounts
    mine: str
    """The namespace of the tenant who is attacked from, or who may place."""
    theirs: str

    def user(self, name: str) -> Client:
        return self.accounts(name, ())

    def agent(self, host: str = OWN) -> Client:
        return self.accounts(f"system:serviceaccount:{HOST_LEASES}:{host}", ("system:serviceaccounts", AGENTS_GROUP))

    async def bind(self, user: str, role: str, kind: str = "ClusterRole", namespace: str = "") -> None:
        ref = {"apiGroup": RBAC, "kind": kind, "name": role}
        subjects = [{"apiGroup": RBAC, "kind": "User", "name": user}]
        body = {"metadata": {"name": f"{user}-{role}"}, "roleRef": ref, "subjects": subjects}
        await self.admin.create(ROLE_BINDINGS, body, namespace=namespace or self.mine)

    async def settle(self) -> None:
        """Both Hosts have a process of `theirs`, with its Service and its slice; only OWN has one of `mine`."""
        spec = {"hosts": {OWN: [f"{self.mine}/chat-1"], OTHER: [f"{self.theirs}/chat-1"]}}
        try:
            await self.admin.create(HOST_SERVICES, {"metadata": {"name": KEY.name}, "spec": spec})
        except AlreadyExists:
            await self.admin.patch(HOST_SERVICES, KEY, merge_patch({"spec": spec}))
        for host in (OWN, OTHER):
            try:
                await self.admin.create(HOSTS, {"metadata": {"name": host}, "spec": {}})
            except AlreadyExists:
                continue
        for namespace, host in ((self.mine, OWN), (self.theirs, OTHER)):
            await self.admin.create(SERVICES, service("chat-1"), namespace=namespace)
            await self.admin.create(PROCESSES, process("chat-1-0", host), namespace=namespace)
        await self.admin.create(SERVICES, service("shop"), namespace=self.mine)
        await self.admin.create(SLICES, slice_of("chat-1", OTHER), namespace=self.theirs)


def process(name: str, host: str, **spec: object) -> Json:
    served = {"name": "tiny", "source": "file:///models/a.gguf"}
    return {
        "metadata": {"name": name, "labels": {LABEL_HOST: host}},
        "spec": {"host": host, "hostName": host, "endpoint": "chat", "service": "chat-1", "model": served, **spec},
    }


def service(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"ports": [{"name": "http", "port": 80}]}}


def slice_of(service_name: str, host: str, name: str = "chat-1-0") -> Json:
    labels = {
        "kubernetes.io/service-name": service_name,
        "endpointslice.kubernetes.io/managed-by": "pilotage.dev",
        LABEL_HOST: host,
        LABEL_PROCESS_UID: "1",
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["198.18.0.1"]}],
        "ports": [{"name": "http", "port": 4000, "protocol": "TCP"}],
    }


def lease(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": name}}


def on_host(name: str, **placement: object) -> Json:
    spec = {"model": {"source": "hf://o/r/m.gguf"}, "placement": {"kind": "Host", **placement}}
    return endpoint(name, spec)


async def answer(request: object) -> str:
    """Empty if it was done; else what the server said."""
    try:
        await request  # type: ignore[misc]
    except ApiError as error:
        return f"{type(error).__name__}: {error.message}"
    return ""


async def work_of_an_agent(tenants: TwoTenants) -> dict[str, str]:
    """All that an agent does to the API, in its order; what was refused of it."""
    agent, here = tenants.agent(), ObjectKey(tenants.mine, "chat-1-0")
    said: dict[str, str] = {}
    found = await tenants.admin.get(HOSTS, ObjectKey("", OWN))
    said["label"] = await answer(agent.patch(HOSTS, found.key, merge_patch({"metadata": {"labels": {"gpu": "l4"}}})))
    status = merge_patch({"status": {"phase": "Ready", "addresses": ["198.18.0.1"]}})
    said["status"] = await answer(agent.patch(HOSTS, found.key, status, subresource="status"))
    said["lease"] = await answer(agent.create(LEASES, lease(OWN), namespace=HOST_LEASES))
    held = await agent.get(LEASES, ObjectKey(HOST_LEASES, OWN))
    said["renew"] = await answer(agent.replace(LEASES, held.to_dict()))
    for finalizers in ([PROCESS_FINALIZER], []):
        said[f"hold {finalizers}"] = await answer(
            agent.patch(PROCESSES, here, merge_patch({"metadata": {"finalizers": finalizers}}))
        )
    running = merge_patch({"status": {"phase": "Running", "ready": True}})
    said["process"] = await answer(agent.patch(PROCESSES, here, running, subresource="status"))
    said["slice"] = await answer(agent.create(SLICES, slice_of("chat-1", OWN), namespace=tenants.mine))
    leaving = [{"addresses": ["198.18.0.1"], "conditions": {"ready": False}}]
    said["withdraw"] = await answer(agent.patch(SLICES, here, merge_patch({"endpoints": leaving})))
    made = await tenants.admin.get(SLICES, here)
    gone = agent.delete(SLICES, here, uid=made.meta.uid, propagation=Propagation.BACKGROUND)
    said["unregister"] = await answer(gone)
    return {what: why for what, why in said.items() if why}


async def attacks_with_the_key_of_an_agent(tenants: TwoTenants) -> dict[str, str]:
    """Attacks with the key of one agent, each with the expected answer."""
    key = tenants.agent()
    own, others = ObjectKey(tenants.mine, "chat-1-0"), ObjectKey(tenants.theirs, "chat-1-0")
    command = merge_patch({"spec": {"runtime": {"name": "custom", "command": ["/bin/sh", "-c", "id"]}}})
    ready = merge_patch({"status": {"ready": True}})
    foreign = await tenants.admin.get(SLICES, others)
    to_own = merge_patch({"metadata": {"labels": {LABEL_HOST: OWN}}})
    hold = merge_patch({"metadata": {"finalizers": [PROCESS_FINALIZER]}})
    never = merge_patch({"metadata": {"finalizers": ["attacker.example/never"]}})
    tries = {
        "what runs on its own host": key.patch(PROCESSES, own, command),
        "what runs on another": key.patch(PROCESSES, others, command),
        "the status of another's process": key.patch(PROCESSES, others, ready, subresource="status"),
        "the finalizer of another's process": key.patch(PROCESSES, others, hold),
        "a finalizer that is not its own": key.patch(PROCESSES, own, never),
        "another's process made its own": key.patch(PROCESSES, others, to_own),
        "the label of its own process": key.patch(
            PROCESSES, own, merge_patch({"metadata": {"labels": {LABEL_HOST: OTHER}}})
        ),
        "an address for default/kubernetes": key.create(SLICES, slice_of("kubernetes", OWN, "x"), namespace="default"),
        "the same in another's name": key.create(SLICES, slice_of("kubernetes", OTHER, "y"), namespace="default"),
        "an address for another's Service": key.create(SLICES, slice_of("chat-1", OWN, "z"), namespace=tenants.theirs),
        "the same in that one's name": key.create(SLICES, slice_of("chat-1", OTHER, "z"), namespace=tenants.theirs),
        "an address for a Service without a process": key.create(SLICES, slice_of("shop", OWN), namespace=tenants.mine),
        "another's slice deleted": key.delete(SLICES, others, uid=foreign.meta.uid, propagation=Propagation.BACKGROUND),
        "another's slice taken over": key.patch(SLICES, others, to_own),
        "another's slice changed": key.patch(SLICES, others, merge_patch({"endpoints": []})),
        "the status of another Host": key.patch(
            HOSTS, ObjectKey("", OTHER), merge_patch({"status": {"phase": "Lost"}}), subresource="status"
        ),
        "the labels of another Host": key.patch(HOSTS, ObjectKey("", OTHER), to_own),
        "a Host of another name": key.create(HOSTS, {"metadata": {"name": "gpu-c"}, "spec": {}}),
        "whose processes its Host takes": key.patch(
            HOSTS, ObjectKey("", OWN), merge_patch({"spec": {"allowedNamespaces": [tenants.theirs]}})
        ),
        "another's Lease": key.create(LEASES, lease(OTHER), namespace=HOST_LEASES),
        "its own grants": key.patch(
            HOST_SERVICES, KEY, merge_patch({"spec": {"hosts": {OWN: ["default/kubernetes"]}}})
        ),
        "a process": key.create(PROCESSES, process("more-1-0", OWN), namespace=tenants.mine),
    }
    return {what: await answer(request) for what, request in tries.items()}


async def statuses(tenants: TwoTenants) -> dict[str, str]:
    """Attacks on statuses in a namespace by an owner of our kinds; our programs act upon these statuses."""
    owner = tenants.user("none")
    served = {"model": {"source": "hf://o/r/m.gguf"}}
    ledger = {"apiVersion": "v1", "kind": "Secret", "resource": "secrets", "name": "s"}
    record = {"namespace": tenants.mine, "name": "chat", "uid": "1", "apiVersion": "pilotage.dev/v1alpha1"}
    made = {
        ENDPOINTS: (endpoint("status", served), {"ledger": [ledger]}),
        MODELS: (model("status", {"source": "hf://o/r/m.gguf"}), {"phase": "Ready"}),
        TEARDOWNS: (teardown("status", {"target": {**record, "kind": "ServingEndpoint"}}), {"ledger": {}}),
        GATEWAY_ROUTES: (
            gateway_route("status"),
            {"claims": [{"kind": "model", "name": "gpt", "turn": 9, "held": True}]},
        ),
        PROCESSES: (process("status", OWN), {"ready": True}),
    }
    said: dict[str, str] = {}
    for resource, (body, status) in made.items():
        obj = await tenants.admin.create(resource, body, namespace=tenants.mine)
        patch = merge_patch({"status": status})
        said[resource.kind] = await answer(owner.patch(resource, obj.key, patch, subresource="status"))
    return said


async def placing(tenants: TwoTenants) -> dict[str, str]:
    """Attempts to place on Hosts by users with `edit` and the right to all Hosts, one, or none; with the answers."""
    both, one, none = map(tenants.user, ("both", "one", "none"))
    host: Json = {"host": OWN}
    selector: Json = {"hostSelector": {"matchLabels": {}}}
    there = ObjectKey(tenants.mine, "there")
    plain = {"model": {"source": "hf://o/r/m.gguf"}}
    said: dict[str, str] = {}

    async def note(what: str, request: object) -> None:
        said[what] = await answer(request)

    await note("both: by name", both.create(ENDPOINTS, on_host("there", **host), namespace=tenants.mine))
    await note("both: by selector", both.create(ENDPOINTS, on_host("any", **selector), namespace=tenants.mine))
    await note("one: by name", one.create(ENDPOINTS, on_host("one", **host), namespace=tenants.mine))
    await note("one: another name", one.create(ENDPOINTS, on_host("two", host=OTHER), namespace=tenants.mine))
    await note("one: by selector", one.create(ENDPOINTS, on_host("three", **selector), namespace=tenants.mine))
    await note("none: by name", none.create(ENDPOINTS, on_host("four", **host), namespace=tenants.mine))
    await note("none: by selector", none.create(ENDPOINTS, on_host("five", **selector), namespace=tenants.mine))
    await note("none: as pods", none.create(ENDPOINTS, endpoint("pods", plain), namespace=tenants.mine))
    moved = merge_patch({"spec": {"placement": {"kind": "Host", **host}}})
    await note("none: moved to a host", none.patch(ENDPOINTS, ObjectKey(tenants.mine, "pods"), moved))
    changed = merge_patch({"spec": {"runtime": {"args": ["-c", "9"]}}})
    await note("none: what runs", none.patch(ENDPOINTS, there, changed))
    await note("none: a label", none.patch(ENDPOINTS, there, merge_patch({"metadata": {"labels": {"a": "b"}}})))
    await note("none: a process", none.create(PROCESSES, process("own-1-0", OWN), namespace=tenants.mine))
    await note("both: what runs", both.patch(ENDPOINTS, there, changed))
    await note("both: elsewhere", both.create(ENDPOINTS, on_host("six", **host), namespace=tenants.theirs))
    found = await tenants.admin.get(ENDPOINTS, there)
    gone = none.delete(ENDPOINTS, there, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
    await note("none: deleted", gone)
    return said


ALLOWED = {
    "both: by name",
    "both: by selector",
    "one: by name",
    "none: as pods",
    "none: a label",
    "both: what runs",
    "none: deleted",
}
"""Expected outcomes of `placing`."""
