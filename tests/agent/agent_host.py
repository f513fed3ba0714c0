"""A host with a real agent and the real servers that it runs; its API server is harbor, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from demo import tiny_gguf
from pilotage.agent.health import Prober
from pilotage.agent.intervals import Intervals
from pilotage.agent.launch import process
from pilotage.agent.memory import MemoryGauge, MemoryReading
from pilotage.agent.pressure import MemoryPressure, MemoryStrain
from pilotage.agent.run import AgentExit, AgentProcess
from pilotage.agent.settings import AgentSettings
from pilotage.api.names import (
    LABEL_ENDPOINT_UID,
    LABEL_HOST,
    LABEL_MANAGED_BY,
    LABEL_REVISION,
    PROCESS_FINALIZER,
    PROCESSES,
)
from pilotage.kube import Client, Json, ObjectKey, Propagation
from pilotage.operator.crds import crds
from pilotage.serving.resources import SERVICES, SLICES
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import install

SHORT_INTERVALS = Intervals(
    start_probe=0.02,
    start_probe_max=0.05,
    probe=0.2,
    probe_again=0.05,
    unhealthy=0.3,
    steady=30.0,
    restart_backoff=(0.05, 0.2),
    permanent_failure=0.1,
    memory=0.1,
    service=0.1,
    drain_poll=0.03,
    idle=0.06,
    grace=0.4,
    stop_backoff=(0.05, 0.1),
    pressure=0.05,
    host=0.2,
    shutdown=0.3,
)
NAMESPACE = "default"
KINDS = [crd for crd in crds() if crd["spec"]["names"]["kind"] in ("Host", "HostProcess")]
ENDPOINT = "e0e0"
SECONDS_MAX = 20.0


class Memory(MemoryGauge):
    """The host's memory, as a test wants it."""

    def __init__(self) -> None:
        self.reading = MemoryReading(64 << 30, 64 << 30)

    def read(self) -> MemoryReading:
        return self.reading


class Strains:
    """Readings of memory pressure that a test sets."""

    def __init__(self) -> None:
        self.strain = MemoryStrain(1.0)

    def read(self) -> MemoryStrain:
        return self.strain


def process_body(name: str, weights: Path, host: str, **spec: Any) -> Json:
    """A HostProcess as the operator makes and places it."""
    served = {"name": "tiny", "source": f"file://{weights}"} | spec.pop("model", {})
    runtime = {"args": ["--threads", "1", "--context-shift"]} | spec.pop("runtime", {})
    labels = {LABEL_HOST: host, LABEL_ENDPOINT_UID: ENDPOINT, LABEL_REVISION: "1", LABEL_MANAGED_BY: "pilotage"}
    return {
        "metadata": {"name": name, "labels": labels, "finalizers": [PROCESS_FINALIZER]},
        "spec": {"host": host, "endpoint": "chat", "service": "chat-1", "model": served, "runtime": runtime} | spec,
    }


def service_body(name: str = "chat-1", **labels: str) -> Json:
    return {
        "metadata": {"name": name, "labels": labels or {LABEL_ENDPOINT_UID: ENDPOINT}},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    }


def python_server(script: str) -> Json:
    """A runtime that is a small program of ours; it finds its port in PORT."""
    return {"name": "custom", "command": [sys.executable, "-c", script], "args": [], "healthPath": "/"}


class AgentHost:
    """Host with a real agent; use it with `async with`."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        self.model = model
        self.memory, self.strains = Memory(), Strains()
        self.settings = AgentSettings(
            name=f"host-{secrets.token_hex(4)}",
            address="127.0.0.1",
            data=folder / "data",
            cache_root=folder / "cache",
            file_roots=(folder, model.parent),
            metrics_address="",
            allow_commands=True,  # options of an owner of the machine; `strict` is for other tenants
            run_as="root",
            allow_protected=True,
            priority_max=1000,
        )
        self.name = self.settings.name
        self.running: AgentProcess | None = None
        self.intervals = SHORT_INTERVALS
        self.prober: Prober | None = None
        self.pressure = MemoryPressure(self.strains, calm_seconds=0.1, next_seconds=0.2)
        self._task: asyncio.Task[AgentExit] | None = None

    def strict(self, **settings: Any) -> None:
        """Its owner has allowed nothing: these settings are as they are without any."""
        fields = ("allow_commands", "run_as", "allow_protected", "priority_max")
        without = AgentSettings()
        self.settings = replace(self.settings, **{name: getattr(without, name) for name in fields} | settings)

    async def __aenter__(self) -> AgentHost:
        self.world = SimulatedWorld(secrets.randbits(32), latency=(0, 0))  # uids of one's own
        await self.world.__aenter__()
        self.client = self.world.client("admin")
        await install(self.client, KINDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crash()
        end_all(self.settings.data)
        await self.world.__aexit__()

    # The agent

    async def start(self, client: Client | None = None, at: Callable[[str], None] = lambda _: None) -> AgentProcess:
        """An agent begins, and is ready when this returns."""
        self.running = AgentProcess(
            self.settings,
            client or self.world.client("agent"),
            intervals=self.intervals,
            prober=self.prober,
            pressure=self.pressure,
            gauge=self.memory,
            at=at,
        )
        self._task = asyncio.create_task(self.running.run())
        started = asyncio.create_task(self.running.manager.started.wait())
        await asyncio.wait({started, self._task}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._task.done():
            self._task.result()
        return self.running

    async def stop(self) -> AgentExit:
        """Stop the agent, as by SIGTERM."""
        assert self.running is not None
        self.running.stop()
        return await self.ended()

    async def ended(self) -> AgentExit:
        assert self._task is not None
        ending = await asyncio.wait_for(self._task, SECONDS_MAX)
        self._task = self.running = None
        return ending

    async def crash(self) -> None:
        """The agent is no more; it does nothing about it."""
        if self._task is not None and self.running is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self.running.journal.close()
            self._task = self.running = None

    # Observations

    async def place(self, name: str = "chat-1-0", **spec: Any) -> str:
        """A HostProcess, placed here; its Service, unless it is there. Says its uid."""
        service = spec.get("service", "chat-1")
        if self.world.find(SERVICES, ObjectKey(NAMESPACE, service)) is None:
            await self.client.create(SERVICES, service_body(service), namespace=NAMESPACE)
        made = await self.client.create(
            PROCESSES, process_body(name, self.model, self.name, **spec), namespace=NAMESPACE
        )
        return made.meta.uid

    async def serving(self, name: str = "chat-1-0", **spec: Any) -> str:
        """The same, once it is ready."""
        uid = await self.place(name, **spec)
        await self.until(lambda: self.is_ready(name))
        return uid

    async def delete(self, name: str = "chat-1-0") -> None:
        key = ObjectKey(NAMESPACE, name)
        found = self.find(name)
        assert found is not None
        await self.client.delete(PROCESSES, key, uid=found["metadata"]["uid"], propagation=Propagation.BACKGROUND)

    def find(self, name: str = "chat-1-0") -> Json | None:
        return self.world.find(PROCESSES, ObjectKey(NAMESPACE, name))

    def status(self, name: str = "chat-1-0") -> Json:
        found: Json = (self.find(name) or {}).get("status", {})
        return found

    def reason(self, name: str = "chat-1-0") -> str:
        conditions = self.status(name).get("conditions") or [{}]
        return str(conditions[0].get("reason", ""))

    def slice(self, name: str = "chat-1-0") -> Json | None:
        return self.world.find(SLICES, ObjectKey(NAMESPACE, name))

    def conditions(self, name: str = "chat-1-0") -> Json:
        found = self.slice(name)
        return found["endpoints"][0]["conditions"] if found is not None else {}

    def is_ready(self, name: str = "chat-1-0") -> bool:
        """Everybody says so."""
        status = self.status(name)
        return status.get("phase") == "Running" and status["ready"] and self.conditions(name).get("ready") is True

    def pid(self, name: str = "chat-1-0") -> int:
        return int(self.status(name)["pid"])

    def processes(self) -> list[int]:
        """All that the agents of this host have ever started, and that runs."""
        return [seen.pid for found in process.owned(self.settings.data).values() for seen in found]

    def nothing_is_left(self) -> None:
        """No process, no slice, no entry, no log."""
        self.nothing_but_logs_is_left()
        assert [*(self.settings.data / "logs").glob("*")] == []

    def nothing_but_logs_is_left(self) -> None:
        assert self.processes() == []
        assert self.world.objects(SLICES) == []
        assert self.running is None or self.running.journal.entries() == []

    async def until(self, condition: Callable[[], object], seconds: float = SECONDS_MAX) -> None:
        """Wait for something, and say how things are if it does not come."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self._task is not None and self._task.done():
                self._task.result()
            if time.monotonic() > deadline:
                states = {each["metadata"]["name"]: each.get("status") for each in self.world.objects(PROCESSES)}
                raise AssertionError(f"still not so: {json.dumps(states)}\n{self.world.objects(SLICES)}\n{self.logs()}")
            await asyncio.sleep(0.01)

    def logs(self) -> str:
        """The ends of the logs of servers."""
        return "\n".join(each.read_text()[-600:] for each in (self.settings.data / "logs").glob("*") if each.is_file())

    def metric(self, line: str) -> float:
        """The value of a metric, by its name and labels."""
        assert self.running is not None
        lines = self.running.manager.metrics.render().decode().splitlines()
        return float(next((each.rpartition(" ")[2] for each in lines if each.startswith(f"{line} ")), "nan"))


def end_all(data: Path) -> None:
    """End whatever a test has left running."""
    for found in process.owned(data).values():
        for seen in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(seen.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(seen.pid, 0)


def ask(port: int, max_tokens: int = 4, stream: bool = False, timeout: float = 10.0) -> Any:
    """A completion; the open answer of a stream."""
    body = {"model": "tiny", "prompt": "hello", "max_tokens": max_tokens, "stream": stream}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    answer = urllib.request.urlopen(request, timeout=timeout)
    if stream:
        return answer
    with answer:
        return json.load(answer)


def refuse(
    code: int, reason: str, *, method: str, resource: str, times: int = 10**9
) -> tuple[Callable[[Call], ServerResponse | None], list[int]]:
    """Answers in the API server's place. `left[0]` says how often it still will."""
    left = [times]

    def answer(call: Call) -> ServerResponse | None:
        if left[0] <= 0 or call.method != method or f"/{resource}" not in call.path:
            return None
        left[0] -= 1
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
        return ServerResponse(code, json.dumps(status | {"message": f"no {method} of {resource} today"}).encode())

    return answer, left


@contextlib.contextmanager
def streaming(port: int, max_tokens: int = 1_000_000) -> Iterator[Any]:
    """A stream that has begun, and continues while it is read."""
    with ask(port, max_tokens, stream=True) as answer:
        assert answer.readline().startswith(b"data:")
        yield answer


def write_model(path: Path, *, endless: bool = True) -> Path:
    tiny_gguf.write(path, endless=endless)
    return path
