"""Tenants on a real API server with real RBAC: two teams with `edit` in a namespace each, and the operator's account.

What one team writes has no effect on the other, though the operator has the rights for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from controlplane import Cluster
from pilotage.api.names import (
    ENDPOINTS,
    GATEWAY_ROUTES,
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    LABEL_MANAGED_BY,
    PROCESSES,
    TEARDOWNS,
)
from pilotage.controllers.caches import MADE_BY_US
from pilotage.kube import (
    Client,
    Forbidden,
    Invalid,
    Json,
    Object,
    ObjectKey,
    Propagation,
    load_config,
    merge_patch,
)
from pilotage.operator.run import operating, prepare
from pilotage.operator.settings import OperatorSettings
from pilotage.serving.resources import CLAIMS, DEPLOYMENTS, SERVICES
from tests.api.objects import endpoint, install
from tests.support.waiting import eventually, until

SECONDS_MAX = 60
SOURCE = {"model": {"source": "hf://org/repo/model.gguf"}, "deletion": {"drainSeconds": 0}}
VICTIMS: dict[str, Json] = {
    "plain": {},
    "behind": {"route": {"kind": "PilotageGateway"}},
    "hosted": {"placement": {"kind": "Host", "host": "nowhere"}},
}
PARTS = (*MADE_BY_US, PROCESSES, GATEWAY_ROUTES)


class TeamClients(NamedTuple):
    """Clients of everybody, and where they are at home. Ann may view everything; the owner has all of pilotage.dev."""

    admin: Client
    ann: Client
    bob: Client
    owner: Client
    a: str
    b: str


@pytest.fixture
def teams(own_cluster: Cluster, namespace_for_pods: str) -> Iterator[tuple[str, str]]:
    """Two namespaces; Ann and the owner are editors of the first, Bob of the second."""
    with own_cluster.namespace("team-a") as a, own_cluster.namespace("team-b") as b:
        for user, place in (("ann", a), ("bob", b), ("owner", a)):
            for role in ("edit", f"pilotage-edit-{namespace_for_pods}"):
                own_cluster.kubectl(
                    "create",
                    "rolebinding",
                    f"{user}-{role}"[:63],
                    "-n",
                    place,
                    f"--clusterrole={role}",
                    f"--user={user}",
                )
        own_cluster.kubectl("create", "rolebinding", "ann-views-b", "-n", b, "--clusterrole=view", "--user=ann")
        own_cluster.kubectl(
            "create", "role", "all", "-n", a, "--verb=*", "--resource=*.pilotage.dev,*.pilotage.dev/status"
        )
        own_cluster.kubectl("create", "rolebinding", "owner-all", "-n", a, "--role=all", "--user=owner")
        yield a, b


@pytest.fixture
async def clients(own_cluster: Cluster, account: Path, teams: tuple[str, str]) -> AsyncIterator[TeamClients]:
    async with contextlib.AsyncExitStack() as stack:

        async def connect(kubeconfig: Path) -> Client:
            return await stack.enter_async_context(Client.connect(load_config(kubeconfig=str(kubeconfig))))

        admin = await connect(own_cluster.kubeconfig)
        await install(admin)
        ann, bob, owner = [await connect(own_cluster.user(name)) for name in ("ann", "bob", "owner")]
        yield TeamClients(admin, ann, bob, owner, *teams)


@pytest.fixture
def operator(namespace_for_pods: str, account: Path, tmp_path: Path) -> Any:
    """Lets the operator run, as its account, for as long as the context lasts."""
    settings = OperatorSettings(
        namespace=namespace_for_pods, metrics_address="", cache_root=tmp_path, fetch="pods", fetch_image="pilotage:test"
    )

    @contextlib.asynccontextmanager
    async def run() -> AsyncIterator[None]:
        async with Client.connect(load_config(kubeconfig=str(account))) as client:
            await prepare(settings, client)
            async with operating(settings, client) as manager:
                running = asyncio.create_task(manager.run())
                try:
                    yield
                finally:
                    manager.stop()
                    await running

    return run


async def serving(client: Client, namespace: str, name: str) -> Object:
    found = await until(
        client,
        ENDPOINTS,
        ObjectKey(namespace, name),
        lambda obj: obj and obj.get("status", "phase") == "Serving",
        SECONDS_MAX,
    )
    assert found is not None
    return found


async def parts(clients: TeamClients) -> dict[str, str]:
    """The uids of all that was made for Bob, and is not on its way out."""
    return {
        f"{resource.kind}/{each.meta.name}": each.meta.uid
        for resource in PARTS
        for each in (await clients.admin.list(resource, clients.b, labels=LABEL_ENDPOINT_UID)).items
        if not each.meta.terminating
    }


async def plant(client: Client, namespace: str, name: str, uid: str, endpoint_name: str, **meta: Any) -> None:
    labels = {LABEL_MANAGED_BY: "pilotage", LABEL_ENDPOINT: endpoint_name, LABEL_ENDPOINT_UID: uid}
    metadata = {"namespace": namespace, "name": name, "labels": labels, **meta}
    await client.create(SERVICES, {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})


async def test_labels_with_the_uids_of_another_teams_endpoints_have_no_effect_on_them(
    clients: TeamClients, operator: Any
) -> None:
    """Nor do finalizers on what carries them, when these endpoints are deleted."""
    made = {
        name: await clients.admin.create(ENDPOINTS, endpoint(name, SOURCE | spec), namespace=clients.b)
        for name, spec in VICTIMS.items()
    }
    async with operator():
        expected = {"Service/plain-1", "Deployment/plain-1", "Service/behind-1", "Deployment/behind-1"}
        expected |= {"Service/hosted-1", "HostProcess/hosted-1-0", "GatewayRoute/behind"}
        await serving(clients.bob, clients.b, "plain")
        await eventually(lambda: _all_made(clients, expected), SECONDS_MAX)
        before = await parts(clients)
        for victim in made.values():
            key = ObjectKey(clients.b, f"{victim.meta.name}-1")
            service = await clients.ann.get(SERVICES, key)
            with pytest.raises(Forbidden):
                await clients.ann.delete(SERVICES, key, uid=service.meta.uid, propagation=Propagation.BACKGROUND)
            await plant(
                clients.ann,
                clients.a,
                f"bait-{victim.meta.name}",
                victim.meta.uid,
                "ghost",
                finalizers=["example.com/never"],
            )
        # An endpoint is reconciled after the leftovers of others of its name: once this one serves, the bait was seen.
        await clients.ann.create(ENDPOINTS, endpoint("ghost", SOURCE), namespace=clients.a)
        await serving(clients.ann, clients.a, "ghost")
        assert await parts(clients) == before
        assert not (await clients.admin.list(TEARDOWNS, clients.a)).items
        assert not (await clients.admin.list(TEARDOWNS, clients.b)).items
        for name, victim in made.items():
            key = ObjectKey(clients.b, name)
            await clients.bob.delete(ENDPOINTS, key, uid=victim.meta.uid, propagation=Propagation.BACKGROUND)
        for name in made:
            await until(clients.bob, ENDPOINTS, ObjectKey(clients.b, name), lambda obj: obj is None, SECONDS_MAX)
        assert await parts(clients) == {}
        for name in made:
            bait = await clients.ann.get(SERVICES, ObjectKey(clients.a, f"bait-{name}"))
            assert not bait.meta.terminating
            await clients.ann.patch(SERVICES, bait.key, merge_patch({"metadata": {"finalizers": None}}))


async def _all_made(clients: TeamClients, expected: set[str]) -> bool:
    return expected <= (await parts(clients)).keys()


async def database(client: Client, namespace: str) -> list[Json]:
    """A workload that Pilotage has nothing to do with: what a Teardown would call it."""
    labels = {"app": "database"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "db"}]}}
    deployment = {"selector": {"matchLabels": labels}, "template": pod}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    found = []
    for resource, spec in ((DEPLOYMENTS, deployment), (CLAIMS, claim)):
        made = await client.create(resource, {"metadata": {"namespace": namespace, "name": "database"}, "spec": spec})
        named = {"apiVersion": resource.api_version, "kind": resource.kind, "resource": resource.plural}
        found.append(named | {"name": "database", "uid": made.meta.uid})
    return found


def record(name: str, about: str, doomed: list[Json]) -> Json:
    target = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "namespace": about, "name": "x", "uid": "u"}
    return {"metadata": {"name": name}, "spec": {"target": target, "reason": "Deleted", "parts": doomed}}


def forged_ledger(namespace: str, part: Json) -> Json:
    entry = {
        "resource": msgspec.to_builtins(DEPLOYMENTS),
        "namespace": namespace,
        "name": part["name"],
        "uid": part["uid"],
        "phase": "stop",
        "disposition": "delete",
        "reason": "named",
    }
    return {"targets": [], "started": "2026-01-01T00:00:00Z", "policy": {}, "entries": [entry]}


def said(reason: str, obj: Object | None) -> bool:
    conditions = obj.get("status", "conditions", default=[]) if obj is not None else []
    return any(each["reason"] == reason for each in conditions)


async def test_a_teardown_takes_nothing_of_another_namespace_and_nothing_that_is_no_part(
    clients: TeamClients, operator: Any
) -> None:
    with pytest.raises(Forbidden):
        await clients.ann.create(TEARDOWNS, record("mine", clients.a, []), namespace=clients.a)
    theirs, own = await database(clients.bob, clients.b), await database(clients.owner, clients.a)
    await clients.owner.create(TEARDOWNS, record("foreign", clients.b, theirs), namespace=clients.a)
    await clients.owner.create(TEARDOWNS, record("own", clients.a, own), namespace=clients.a)
    for name, place, part in (("forged-b", clients.b, theirs[0]), ("forged-a", clients.a, own[0])):
        made = await clients.owner.create(TEARDOWNS, record(name, clients.a, []), namespace=clients.a)
        patch = merge_patch({"status": {"phase": "cordon", "ledger": forged_ledger(place, part)}})
        await clients.owner.patch(TEARDOWNS, made.key, patch, subresource="status")
    async with operator():
        for name, reason in (
            ("foreign", "ForeignTarget"),
            ("forged-b", "LedgerRefused"),
            ("forged-a", "LedgerRefused"),
            ("own", "ProvenGone"),
        ):
            await until(clients.owner, TEARDOWNS, ObjectKey(clients.a, name), partial(said, reason), SECONDS_MAX)
    for place in (clients.a, clients.b):
        for resource in (DEPLOYMENTS, CLAIMS):
            found = await clients.admin.get(resource, ObjectKey(place, "database"))
            assert not found.meta.terminating


async def test_nobody_asks_for_more_replicas_than_the_operator_can_bear(clients: TeamClients) -> None:
    with pytest.raises(Invalid, match=r"spec\.replicas"):
        await clients.ann.create(ENDPOINTS, endpoint("huge", SOURCE | {"replicas": 100_000}), namespace=clients.a)
    made = await clients.ann.create(ENDPOINTS, endpoint("grows", SOURCE), namespace=clients.a)
    with pytest.raises(Invalid, match="replicas"):
        await clients.ann.patch(ENDPOINTS, made.key, merge_patch({"spec": {"replicas": 100_000}}), subresource="scale")
