"""The life of an endpoint on a Host on the real API server, with stand-ins for the agent and for the gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controlplane import Cluster
from pilotage.api.names import (
    ENDPOINTS,
    GATEWAY_ROUTES,
    HOST_LEASES,
    HOSTS,
    LABEL_HOST,
    LABEL_REVISION,
    PROCESSES,
    TEARDOWNS,
)
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import LEASES, AlreadyExists, Client, Object, ObjectKey, Propagation, load_config, merge_patch
from pilotage.runtime.manager import Manager
from pilotage.serving.resources import SERVICES, SLICES
from tests.api.objects import endpoint, install
from tests.controllers.simulated_cluster import NAMESPACES
from tests.controllers.simulated_hosts import Agent, Gateway
from tests.support.waiting import eventually, until

PARTS = (PROCESSES, SERVICES, SLICES, GATEWAY_ROUTES)
SECONDS = 40


@contextlib.asynccontextmanager
async def running(*programs: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in programs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def parts(client: Client, namespace: str) -> list[str]:
    found = [(resource, await client.list(resource, namespace)) for resource in PARTS]
    return sorted(f"{resource.kind}/{each.meta.name}" for resource, listed in found for each in listed.items)


def serves(revision: str, ready: int = 1) -> Any:
    def condition(obj: Object | None) -> bool:
        status = obj.get("status", default={}) if obj is not None else {}
        return (
            status.get("phase") == "Serving"
            and status.get("revision") == revision
            and status.get("replicas") == {"ready": ready, "desired": ready}
        )

    return condition


@pytest.mark.parametrize("route", ["None", "PilotageGateway"])
async def test_an_endpoint_on_a_host_comes_changes_and_goes(own_cluster: Cluster, namespace: str, route: str) -> None:
    host = f"host-of-{namespace}"[:63]
    key = ObjectKey(namespace, "chat")
    async with Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as client:
        await install(client)
        for name in (HOST_LEASES, "pilotage-system"):
            with contextlib.suppress(AlreadyExists):
                await client.create(NAMESPACES, {"metadata": {"name": name}})
        manager = Manager(client.named("operator"), name="operator")
        add_endpoints(manager, Options(NoProxyObserver(), watched=namespace, gateway_url="http://127.0.0.1:8080"))
        agent, gateway = Agent(client.named("agent"), host), Gateway(client.named("gateway"))
        agent.start_seconds, agent.beat_seconds, agent.lease_seconds = 0.1, 0.5, 2
        async with running(manager.run(), agent.run(), gateway.run()):
            spec = {
                "model": {"source": "hf://org/repo/model.gguf"},
                "placement": {"kind": "Host", "host": host},
                "route": {"kind": route},
                "deletion": {"drainSeconds": 2},
            }
            await client.create(ENDPOINTS, endpoint("chat", spec), namespace=namespace)
            await until(client, ENDPOINTS, key, serves("chat-1"), SECONDS)
            await client.scale(ENDPOINTS, key, 2)
            await until(client, ENDPOINTS, key, serves("chat-1", 2), SECONDS)
            await client.patch(ENDPOINTS, key, merge_patch({"spec": {"replicas": 1, "runtime": {"args": ["-c", "9"]}}}))
            await until(client, ENDPOINTS, key, serves("chat-2"), SECONDS)
            routes = ["GatewayRoute/chat"] if route == "PilotageGateway" else []
            left = ["EndpointSlice/chat-2-0", *routes, "HostProcess/chat-2-0", "Service/chat-2"]

            async def only_the_new_one_is_left() -> bool:
                return await parts(client, namespace) == left

            await eventually(only_the_new_one_is_left, SECONDS)
            if route == "PilotageGateway":
                assert gateway.seen == [
                    {"chat-1": 100},
                    {"chat-1": 100, "chat-2": 0},
                    {"chat-1": 0, "chat-2": 100},
                    {"chat-2": 100},
                ]

            agent.alive = False
            await until(
                client, HOSTS, ObjectKey("", host), lambda obj: obj and obj.get("status", "phase") == "Lost", 20
            )
            (lost,) = (await client.list(SLICES, namespace, labels=f"{LABEL_HOST}={host}")).items
            assert lost.get("endpoints")[0]["conditions"]["ready"] is False
            assert lost.meta.labels[LABEL_REVISION] == "2"

            found = await client.get(ENDPOINTS, key)
            await client.delete(ENDPOINTS, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
            process = ObjectKey(namespace, "chat-2-0")
            await until(client, PROCESSES, process, lambda obj: obj and obj.meta.terminating, SECONDS)
            machine = await client.get(HOSTS, ObjectKey("", host))
            await client.delete(HOSTS, machine.key, uid=machine.meta.uid, propagation=Propagation.BACKGROUND)
            await until(client, ENDPOINTS, key, lambda obj: obj is None, SECONDS)
            await until(client, HOSTS, machine.key, lambda obj: obj is None, SECONDS)
            assert await parts(client, namespace) == []
            await until(client, LEASES, ObjectKey(HOST_LEASES, host), lambda obj: obj is None, SECONDS)
            records = (await client.list(TEARDOWNS, namespace)).items
            states = {
                each["state"] for record in records for each in record.get("status", "receipt", "objects", default=[])
            }
            assert states == {"gone"}
