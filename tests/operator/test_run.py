"""The operator as a process: it starts, reports missing prerequisites, serves, and stops on request."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
import structlog

from pilotage.api.names import ENDPOINTS
from pilotage.kube import LEASES, NAMESPACES, Client, ObjectKey, load_config
from pilotage.kube.wire import format_micro_time
from pilotage.models.blocking import inline
from pilotage.operator.run import LEASE, operating, prepare
from pilotage.operator.settings import OperatorSettings
from pilotage.runtime.clock import utc_now
from pilotage.teardown.session.operator_lease import find_operator
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import endpoint, install
from tests.harbor.server.test_run import harbor
from tests.support.waiting import eventually, until

SECONDS_MAX = 30


@contextmanager
def operator(kubeconfig, folder, *arguments):
    """A running process, and what it logs, line by line."""
    command = [sys.executable, "-m", "pilotage", "operator", "--kubeconfig", str(kubeconfig), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PILOTAGE_")}
    with (
        (folder / "log").open("w+") as log,
        subprocess.Popen(command, stderr=log, env=environment | {"XDG_CACHE_HOME": str(folder)}) as process,
    ):
        try:
            yield process, lambda: [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        finally:
            process.kill()


def asked(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


async def test_the_process_on_harbor(tmp_path, unused_tcp_port):
    address = f"127.0.0.1:{unused_tcp_port}"
    with (
        harbor(tmp_path / "data", "--memory") as (_, _, kubeconfig),
        operator(kubeconfig, tmp_path, "--metrics-address", address) as (process, log),
    ):
        async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:

            async def answers(code, words):
                found = await asyncio.to_thread(asked, unused_tcp_port, "/readyz")
                return found[0] == code and words in found[1]

            await eventually(lambda: answers(503, "not served"), SECONDS_MAX)
            assert [each["event"] for each in log() if "pilotage install --print" in each["event"]]
            await install(client)
            await eventually(lambda: answers(200, "ok"), SECONDS_MAX)
            await client.create(
                ENDPOINTS, endpoint("chat", {"model": {"source": "hf://a/b/c.gguf"}}), namespace="default"
            )
            key = ObjectKey("default", "chat")
            assert await until(client, ENDPOINTS, key, lambda obj: obj is not None and obj.get("status", "phase"))
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, SECONDS_MAX) == 0
            lease = await client.get(LEASES, ObjectKey("pilotage-system", LEASE))
            assert lease.get("spec", "holderIdentity") == ""
            assert not [each for each in log() if "exception" in each]


def test_a_taken_address_is_said_in_one_sentence(tmp_path, unused_tcp_port):
    with harbor(tmp_path / "data", "--memory") as (_, url, kubeconfig):
        address = url.removeprefix("https://")
        with operator(kubeconfig, tmp_path, "--metrics-address", address) as (process, _):
            assert process.wait(SECONDS_MAX) == 1
        last = (tmp_path / "log").read_text().splitlines()[-1]
        assert last.startswith("Error: ")
        assert last.endswith("Choose another --metrics-address.")


@virtual
async def test_where_nobody_made_its_namespace_it_does():
    async with SimulatedWorld(latency=(0, 0)) as world:
        with structlog.testing.capture_logs() as logs:
            await prepare(OperatorSettings(namespace="ops"), world.client("operator"))
        assert world.find(NAMESPACES, ObjectKey("", "ops"))
        assert [each["resource"] for each in logs if "is not served" in each["event"]] == [
            "servingendpoints.pilotage.dev",
            "models.pilotage.dev",
            "teardowns.pilotage.dev",
        ]


@virtual
async def test_of_two_operators_one_works_and_the_other_takes_over(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    settings = OperatorSettings(metrics_address="", cache_root=folder, fetch="pods")
    async with SimulatedWorld() as world:
        await install(world.client("admin"))
        clients = [world.client("first"), world.client("second")]
        await prepare(settings, clients[0])
        async with (
            operating(settings, clients[0], blocking=inline) as first,
            operating(settings, clients[1], blocking=inline) as second,
        ):
            running = [asyncio.create_task(first.run())]
            await asyncio.wait_for(first.started.wait(), 60)
            running.append(asyncio.create_task(second.run()))
            await asyncio.sleep(60)
            assert not second.started.is_set()
            first.stop()
            await running[0]
            await asyncio.wait_for(second.started.wait(), 10)  # it was released: no other has to wait until it expires
            second.stop()
            await running[1]


@virtual
@pytest.mark.parametrize("other", ["", "another operator"])
async def test_one_without_election_works_and_is_seen_to_run(tmp_path_factory, other):
    settings = OperatorSettings(
        metrics_address="", cache_root=tmp_path_factory.mktemp("cache"), fetch="pods", leader_election=False
    )
    key = ObjectKey(settings.namespace, LEASE)
    async with SimulatedWorld() as world:
        await install(world.client("admin"))
        user, client = world.client("user"), world.client("operator")
        await prepare(settings, client)
        if other:
            spec = {"holderIdentity": other, "leaseDurationSeconds": 10**6, "renewTime": format_micro_time(utc_now())}
            await user.create(LEASES, {"metadata": {"namespace": key.namespace, "name": key.name}, "spec": spec})
        async with operating(settings, client, blocking=inline) as manager:
            running = asyncio.create_task(manager.run())
            await asyncio.wait_for(manager.started.wait(), 60)
            await asyncio.sleep(120.0)
            assert (await find_operator(user)).alive
            held = world.find(LEASES, key)["spec"]["holderIdentity"]
            assert held == other if other else held
            assert manager.metrics.registry.get_sample_value(
                "leader_election_master_status", {"name": str(key)}
            ) == float(not other)
            manager.stop()
            await running
        assert (await find_operator(user)).alive is bool(other)


@pytest.fixture
def unused_tcp_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
