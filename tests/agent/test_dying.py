"""SIGKILL of the agent at every point between two of its acts, one after the other; then another agent starts.

No process without an owner, no slice without a server, and whatever ran and was wanted runs on.
"""

import asyncio
import contextlib
import secrets
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from pilotage.agent.launch import census
from pilotage.agent.settings import Settings
from pilotage.kinds.names import LABEL_ENDPOINT_UID, PROCESSES
from pilotage.kube import Absent, Client, ObjectKey, Propagation, load_config
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.dying import Agent, Nursery, nursery
from tests.agent.servers import DEAF
from tests.agent.town import ENDPOINT, end_all, process_body, python_server

AT_ONCE = 5
SECONDS_MAX = 30.0


@pytest.fixture(scope="module")
def server(harbor_server):
    with nursery(harbor_server) as made:
        yield harbor_server, made


class Story:
    """The life of one HostProcess, with one death of its agent somewhere in it."""

    def __init__(self, client: Client, made: Nursery, folder: Path, model: Path, die_at: str, **spec) -> None:
        self.client, self.made, self.model, self.die_at, self.spec = client, made, model, die_at, spec
        name = f"host-{secrets.token_hex(4)}"
        self.settings = Settings(
            name=name,
            address="127.0.0.1",
            data=folder / name,
            cache_root=folder / name / "cache",
            file_roots=(model.parent,),
            metrics_address="",
        )
        self.key = ObjectKey("default", f"{name}-1-0")
        self.agent: Agent
        self.steps: list[str] = []
        """The points that the first agent has passed."""
        self.leaving = False
        self.adopted = False

    async def run(self, goodbye: signal.Signals | None = None) -> None:
        """It comes, is deleted, and goes. `goodbye`: before that its agent gets this signal, and another one comes."""
        self.agent = self.made.agent(self.settings, die_at=self.die_at)
        try:
            await self._come()
            await self._until(self._is_ready)
            if goodbye is not None:
                self.leaving = True
                self.agent.send(goodbye)
                await self._until_dead()
                await self._next()
                await self._until(self._is_ready)
            self.leaving = True
            await self._delete()
            await self._until(self._is_gone)
            self.steps = self.steps or self.agent.steps
        finally:
            self.agent.send(signal.SIGKILL)
            await self._until_dead()
            left = self._runs()
            end_all(self.settings.data)
        assert left == [], f"orphans after {self.died}"
        slices = await self.client.list(SLICES, labels=f"pilotage.dev/host={self.settings.name}")
        assert slices.items == [], f"stale slices after {self.died}"
        assert [*(self.settings.data / "logs").glob("*")] == [], f"logs after {self.died}"

    @property
    def died(self) -> str:
        """Where."""
        return self.steps[-1] if self.steps else ""

    async def _come(self) -> None:
        service = {"metadata": {"name": self.settings.name, "labels": {LABEL_ENDPOINT_UID: ENDPOINT}}}
        ports = {"spec": {"ports": [{"name": "http", "port": 80}]}}
        await self.client.create(SERVICES, service | ports, namespace="default")
        body = process_body(self.key.name, self.model, self.settings.name, service=self.settings.name, **self.spec)
        await self.client.create(PROCESSES, body, namespace="default")

    async def _delete(self) -> None:
        found = await self.client.get(PROCESSES, self.key)
        await self.client.delete(PROCESSES, self.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    async def _is_ready(self) -> bool:
        found = await self.client.get(PROCESSES, self.key)
        if found.get("status", "ready") is not True:
            return False
        slice_ = await self.client.get(SLICES, self.key)
        port, pid = found.get("status", "port"), found.get("status", "pid")
        same = slice_.get("ports")[0]["port"] == port and slice_.get("endpoints")[0]["conditions"]["ready"]
        return same and self._runs() == [pid]

    async def _is_gone(self) -> bool:
        try:
            await self.client.get(PROCESSES, self.key)
        except Absent:
            return self.agent.lives and self._noted() == 0
        return False

    def _noted(self) -> int:
        with contextlib.closing(
            sqlite3.connect(f"file:{self.settings.data}/agent.sqlite?mode=ro", uri=True)
        ) as journal:
            return int(journal.execute("SELECT count(*) FROM processes").fetchone()[0])

    def _runs(self) -> list[int]:
        return [seen.pid for found in census.owned(str(self.settings.data)).values() for seen in found]

    async def _until(self, condition) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not await self._try(condition):
            if not self.agent.lives:
                await self._next()
            assert time.monotonic() < deadline, f"died {self.died}\n{await self._state()}\n{self.agent.log[-3000:]}"
            await asyncio.sleep(0.04)

    async def _state(self) -> object:
        with contextlib.suppress(Absent):
            return (await self.client.get(PROCESSES, self.key)).get("status")
        return None

    async def _try(self, condition) -> bool:
        try:
            return bool(await condition())
        except Absent:
            return False

    async def _until_dead(self) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while self.agent.lives:
            assert time.monotonic() < deadline, self.agent.log[-3000:]
            await asyncio.sleep(0.01)

    async def _next(self) -> None:
        """Another agent. What ran and was wanted goes on."""
        self.steps = self.steps or self.agent.steps
        before = self._runs()
        self.agent = self.made.agent(self.settings)
        if before and not self.leaving:
            self.adopted = True
            await self._until(self._is_ready)
            assert self._runs() == before, f"restarted after {self.died}"


async def explore(
    server, folder: Path, model: Path, goodbye: signal.Signals | None = None, *, since="", before="", **spec
) -> list[Story]:
    """Play the story with a death at each point, or at those from `since` on and `before` another."""
    kubeconfig, made = server
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        first = Story(client, made, folder, model, "", **spec)
        await first.run(goodbye)
        points = [*dict.fromkeys(first.steps)]
        points = points[points.index(since) if since else 0 : points.index(before) if before else None]
        stories = [Story(client, made, folder, model, point, **spec) for point in points]
        busy = asyncio.Semaphore(AT_ONCE)

        async def play(story: Story) -> None:
            async with busy:
                await story.run(goodbye)

        await asyncio.gather(*map(play, stories))
        assert [story.died for story in stories] == [story.die_at for story in stories]
        return stories


async def test_death_at_every_point_of_a_life(server, tmp_path, tiny):
    stories = await explore(server, tmp_path, tiny)
    died = [story.died for story in stories]
    for point in (
        "after noting that it starts",
        "before noting its process",
        "after noting that a slice is made",
        "before noting the slice",
        "after the slice is leaving",
        "after SIGTERM",
        "after the slice is deleted",
        "before the finalizer goes",
        "before forgetting",
    ):
        assert point in died
    assert sum(story.adopted for story in stories) >= 7  # from the start of the process on, until it is deleted


async def test_death_at_every_point_of_a_shutdown(server, tmp_path, tiny):
    stories = await explore(server, tmp_path, tiny, signal.SIGTERM, since="before noting that it leaves")
    assert {"after noting that it leaves", "after SIGTERM", "after forgetting"} <= {story.died for story in stories}


async def test_death_before_and_after_a_kill(server, tmp_path, tiny):
    """Of a server that does not listen to SIGTERM."""
    points = {"since": "before SIGTERM", "before": "before the slice is deleted"}
    stories = await explore(server, tmp_path, tiny, **points, runtime=python_server(DEAF), drainSeconds=0)
    assert "before SIGKILL" in {story.died for story in stories}
