"""`pilotage agent` as a process: it starts, serves, and ends at a signal; its exit code says how."""

import asyncio
import contextlib
import json
import secrets
import signal
import socket
import subprocess
import sys

import pytest

from pilotage.agent.launch import process
from pilotage.api.names import HOST_LEASES, HOSTS, LABEL_ENDPOINT_UID, PROCESSES
from pilotage.kube import LEASES, Absent, Client, ObjectKey, Propagation, load_config, merge_patch
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.agent_host import ENDPOINT, end_all, process_body, refuse, streaming
from tests.operator.test_run import asked
from tests.support.waiting import eventually, until

SECONDS_MAX = 40


class Place:
    """An agent's process, and its host on harbor."""

    def __init__(self, client, folder, model):
        self.client, self.folder, self.model = client, folder, model
        self.name = f"host-{secrets.token_hex(4)}"
        self.key = ObjectKey("default", f"{self.name}-1-0")

    @property
    def arguments(self):
        return ["--name", self.name, "--data", str(self.folder / "data"), "--file-roots", str(self.model.parent)]

    async def place(self, **spec):
        service = {"metadata": {"name": self.name, "labels": {LABEL_ENDPOINT_UID: ENDPOINT}}}
        await self.client.create(SERVICES, service | {"spec": {"ports": [{"port": 80}]}}, namespace="default")
        body = process_body(self.key.name, self.model, self.name, service=self.name, **spec)
        await self.client.create(PROCESSES, body, namespace="default")
        return await until(self.client, PROCESSES, self.key, lambda obj: obj.get("status", "ready"), SECONDS_MAX)

    def log(self):
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]

    def processes(self):
        return process.owned(self.folder / "data")

    async def has_slice(self):
        with contextlib.suppress(Absent):
            return await self.client.get(SLICES, self.key)
        return None


@contextlib.contextmanager
def agent(kubeconfig, place, *arguments):
    command = [sys.executable, "-m", "pilotage", "agent", "--kubeconfig", str(kubeconfig), "--cache-root"]
    command += [str(place.folder / "cache"), *place.arguments, *arguments]
    with (place.folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()
            end_all(place.folder / "data")


@pytest.fixture
async def place(harbor_server, tmp_path, tiny):
    async with Client.connect(load_config(kubeconfig=str(harbor_server))) as client:
        made = Place(client, tmp_path, tiny)
        yield made
        with contextlib.suppress(Absent):
            found = await client.get(PROCESSES, made.key)
            await client.patch(PROCESSES, made.key, merge_patch({"metadata": {"finalizers": None}}))
            await client.delete(PROCESSES, made.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)


async def test_it_serves_and_ends_at_sigterm(harbor_server, place, unused_tcp_port):
    address = f"127.0.0.1:{unused_tcp_port}"
    with agent(harbor_server, place, "--metrics-address", address) as process:
        await place.place()
        assert (await asyncio.to_thread(asked, unused_tcp_port, "/healthz"))[0] == 200
        assert (await asyncio.to_thread(asked, unused_tcp_port, "/readyz"))[0] == 200
        metrics = (await asyncio.to_thread(asked, unused_tcp_port, "/metrics"))[1]
        assert 'pilotage_agent_processes{phase="Running"} 1' in metrics
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, SECONDS_MAX) == 0
        assert place.processes() == {}
        assert await place.has_slice() is None
        lease = await place.client.get(LEASES, ObjectKey(HOST_LEASES, place.name))
        assert lease.get("spec", "holderIdentity") == ""
        assert (await place.client.get(HOSTS, ObjectKey("", place.name))).get("status", "phase") == "Stopping"
        assert not [each for each in place.log() if "exception" in each]


async def test_a_second_sigterm_waits_for_nobody(harbor_server, place):
    with agent(harbor_server, place, "--metrics-address", "") as process:
        served = await place.place(drainSeconds=600)
        with streaming(served.get("status", "port")):
            process.send_signal(signal.SIGTERM)

            async def withdrawn():
                found = await place.has_slice()
                return found is not None and found.get("endpoints")[0]["conditions"]["ready"] is False

            await eventually(withdrawn, SECONDS_MAX)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, SECONDS_MAX) == 4
        assert place.processes() == {}
        assert await place.has_slice() is None


async def test_what_cannot_be_unregistered_at_the_end_is_said_by_the_exit_code(host):
    await host.start()
    await host.serving()
    answer, _ = refuse(503, "ServiceUnavailable", method="DELETE", resource="endpointslices")
    stop = host.world.intercept(answer)
    assert await host.stop() == 3
    assert host.processes() == []
    assert host.slice() is not None
    stop()
    await host.start()  # continues with it
    await host.until(lambda: host.is_ready())


def test_what_is_wrong_at_the_start_is_one_sentence(harbor_server, place, unused_tcp_port):
    with socket.create_server(("127.0.0.1", unused_tcp_port)):
        with agent(harbor_server, place, "--metrics-address", f"127.0.0.1:{unused_tcp_port}") as process:
            assert process.wait(SECONDS_MAX) == 1
        last = (place.folder / "log").read_text().splitlines()[-1]
        assert last.startswith("Error: ")
        assert last.endswith("Choose another --metrics-address.")


@pytest.fixture
def unused_tcp_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
