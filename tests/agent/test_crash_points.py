"""SIGKILL of the agent at every point between two of its acts, one after the other; then another agent starts.

No process without an owner, no slice without a server, and every wanted process continues.
"""

import ast
import asyncio
import contextlib
import itertools
import secrets
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from pilotage import agent as package
from pilotage.agent.journal import JournalEntry
from pilotage.agent.launch import process
from pilotage.agent.registration import SliceState
from pilotage.agent.settings import AgentSettings
from pilotage.api.names import LABEL_ENDPOINT_UID, PROCESSES
from pilotage.kube import Absent, Client, ObjectKey, Propagation, load_config, merge_patch
from pilotage.processes import terminate
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.agent_host import ENDPOINT, end_all, process_body, python_server
from tests.agent.forked_agents import Agent, Nursery, nursery
from tests.agent.servers import DEAF, PLAIN, SICKLY

AT_ONCE = 6
SECONDS_MAX = 30.0


def around(*acts: str) -> list[str]:
    """The points before and after each of them."""
    return [f"{when} {act}" for act in acts for when in ("before", "after")]


WAY_UP = around(
    "noting that it starts",
    "noting its process",
    "noting that a slice is made",
    "noting the slice",
    "noting that it is healthy",
)
WAY_DOWN = around("noting that it leaves", "the slice is leaving", "SIGTERM", "the slice is deleted")
FORGOTTEN = around("forgetting")
LIFE = [*WAY_UP, *WAY_DOWN, "before the finalizer goes", "after the finalizer went", *FORGOTTEN]
KILL = around("SIGTERM", "SIGKILL")
SICKNESS = around("the slice is unhealthy", "the slice is ready")
TURNS = ["after noting that it leaves", "after SIGTERM", "after the slice is deleted"]
"""Crash points at which process, slice and journal disagree."""


def points_of_source() -> set[str]:
    """All that the agent can pass, by what its source calls them."""
    paths = [*Path(package.__file__).parent.rglob("*.py"), Path(terminate.__file__)]
    trees = [ast.parse(path.read_text()) for path in paths]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]

    def given(function: str, number: int) -> list[ast.expr]:
        named = [call for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) == function]
        return [call.args[number] for call in named if len(call.args) > number]

    words = {
        "what": {ast.literal_eval(each) for each in given("put", 1) + given("note", 1)},
        "shown.value": {each.value for each in SliceState},
    }
    found: set[str] = set()
    for each in given("at", 0):
        parts = each.values if isinstance(each, ast.JoinedStr) else [each]
        names = [""]
        for part in parts:
            ends = words[ast.unparse(part.value)] if isinstance(part, ast.FormattedValue) else {ast.literal_eval(part)}
            names = [name + end for name in names for end in ends]
        found.update(names)
    return found


def test_no_point_is_left_out():
    assert points_of_source() == {*LIFE, *KILL, *SICKNESS}


@pytest.fixture(scope="module")
def server(harbor_server):
    with nursery(harbor_server) as made:
        yield harbor_server, made


class Story:
    """The life of one HostProcess, with one death of its agent somewhere in it."""

    def __init__(
        self,
        client: Client,
        made: Nursery,
        folder: Path,
        model: Path,
        die_at: str,
        *,
        namespace: str = "default",
        address: str = "127.0.0.1",
        intervals: Mapping[str, float] = {},
        trouble: "Trouble | None" = None,
        **spec,
    ) -> None:
        self.client, self.made, self.model, self.die_at, self.spec = client, made, model, die_at, spec
        name = f"host-{secrets.token_hex(4)}"
        self.settings = AgentSettings(
            name=name,
            address=address,
            data=folder / name,
            cache_root=folder / name / "cache",
            file_roots=(model.parent,),
            metrics_address="",
            allow_commands=True,
            run_as="root",
        )
        self.key = ObjectKey(namespace, f"{name}-1-0")
        self.intervals, self.trouble = intervals, trouble
        self.flag = folder / name / "sick"
        """File that makes a server of the command `SICKLY` unhealthy while it exists. Other small servers ignore it."""
        if "runtime" in spec:
            spec["runtime"] = spec["runtime"] | {"args": [str(self.flag)]}
        self.agent: Agent
        self.steps: list[str] = []
        """The points that the first agent has passed."""
        self.leaving = False
        """Whether what runs may go, or need not be ready."""
        self.adopted = False
        self.noted: list[JournalEntry] = []
        """Journal of the first agent at its death."""

    async def run(self) -> None:
        """Create a process, delete it, and wait for its end; before that it may have some trouble."""
        self.agent = self.made.agent(self.settings, die_at=self.die_at, intervals=self.intervals)
        try:
            await self._come()
            await self._until(self._is_ready)
            if self.trouble is not None:
                await self.trouble(self)
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

    # Troubles

    async def agent_stops(self) -> None:
        """Stop the agent by SIGTERM, and start another one."""
        self.leaving = True
        self.agent.send(signal.SIGTERM)
        await self._until_dead()
        await self._next()
        await self._until(self._is_ready)

    async def server_is_sick(self) -> None:
        """Make the server unhealthy for a while; it is withdrawn, and comes back as it was."""
        before, self.leaving = self._runs(), True
        self.flag.touch()
        await self._until(self._is_withdrawn)
        self.flag.unlink()
        await self._until(self._is_ready)
        assert self._runs() == before, f"restarted after {self.died}"

    async def server_fails(self) -> None:
        """Make the server unhealthy for too long: another one takes its place."""
        await self._dies_because_of(self.flag)

    async def memory_is_short(self) -> None:
        """It has to go, and comes back."""
        await self._dies_because_of(self.settings.data / "pressed")

    async def _dies_because_of(self, flag) -> None:
        """Something begins, and its agent dies of that; by the time of the next one it is over."""
        before, self.leaving = self._runs(), True
        flag.touch()
        await self._until_dead()
        flag.unlink()
        await self._next()
        await self._until(lambda: self._is_ready_without(before))  # a process that was leaving does not stay

    async def it_vanishes(self) -> None:
        """Delete it together with its finalizer, while its agent cannot see that."""
        self.leaving = True
        self.agent.send(signal.SIGSTOP)
        await self.client.patch(PROCESSES, self.key, merge_patch({"metadata": {"finalizers": None}}))
        await self._delete()
        self.agent.send(signal.SIGCONT)

    # Observations

    @property
    def died(self) -> str:
        """Where."""
        return self.steps[-1] if self.steps else ""

    async def _come(self) -> None:
        service = {"metadata": {"name": self.settings.name, "labels": {LABEL_ENDPOINT_UID: ENDPOINT}}}
        ports = {"spec": {"ports": [{"name": "http", "port": 80}]}}
        await self.client.create(SERVICES, service | ports, namespace=self.key.namespace)
        body = process_body(self.key.name, self.model, self.settings.name, service=self.settings.name, **self.spec)
        await self.client.create(PROCESSES, body, namespace=self.key.namespace)

    async def _delete(self) -> None:
        with contextlib.suppress(Absent):
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

    async def _is_ready_without(self, pids: list[int]) -> bool:
        return await self._is_ready() and self._runs() != pids

    async def _is_withdrawn(self) -> bool:
        slice_ = await self.client.get(SLICES, self.key)
        return not slice_.get("endpoints")[0]["conditions"]["ready"]

    async def _is_gone(self) -> bool:
        try:
            await self.client.get(PROCESSES, self.key)
        except Absent:
            return self.agent.lives and self._entries() == []
        return False

    def _entries(self) -> list[JournalEntry]:
        """By a copy: an agent that runs lets nobody else read its journal."""
        with tempfile.TemporaryDirectory() as folder:
            for each in self.settings.data.glob("agent.sqlite*"):
                shutil.copy(each, folder)
            with contextlib.closing(sqlite3.connect(f"{folder}/agent.sqlite")) as journal:
                rows = journal.execute("SELECT entry FROM processes").fetchall()
        return [msgspec.json.decode(text, type=JournalEntry) for (text,) in rows]

    def _runs(self) -> list[int]:
        return [seen.pid for found in process.owned(self.settings.data).values() for seen in found]

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
        """Start another agent. Servers that ran and were wanted continue."""
        if not self.steps:
            self.steps, self.noted = self.agent.steps, self._entries()
        before = self._runs()
        self.agent = self.made.agent(self.settings, intervals=self.intervals)
        if before and not self.leaving:
            self.adopted = True
            await self._until(self._is_ready)
            assert self._runs() == before, f"restarted after {self.died}"


Trouble = Callable[[Story], Awaitable[None]]


SICKLY_FOR_LONG = {"runtime": python_server(SICKLY), "intervals": {"unhealthy": 60.0, "probe": 0.2}}
SICKLY_AND_REPLACED = {"runtime": python_server(SICKLY), "intervals": {"unhealthy": 0.0, "probe": 0.2}}
LIGHT = {"runtime": python_server(PLAIN), "drainSeconds": 0}


@contextlib.asynccontextmanager
async def writer(server, folder: Path, model: Path):
    """Makes stories: with a death at a point, and more of what `Story` takes."""
    kubeconfig, made = server
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        yield lambda die_at, **more: Story(client, made, folder, model, die_at, **more)


async def play(stories: list[Story]) -> None:
    """Play the journeys, some at a time; each agent has died where it should have."""
    busy = asyncio.Semaphore(AT_ONCE)

    async def run(story: Story) -> None:
        async with busy:
            await story.run()

    await asyncio.gather(*map(run, stories))
    assert [story.died for story in stories if story.die_at] == [story.die_at for story in stories if story.die_at]


async def explore(server, folder: Path, model: Path, points: list[str], **more) -> list[Story]:
    """Play the story with a death at each of these points; and once without, to see that there is no other among them.

    They are in the order in which they come first.
    """
    async with writer(server, folder, model) as write:
        unhurt, *stories = [write(point, **more) for point in ("", *points)]
        await play([unhurt, *stories])
    passed = [*dict.fromkeys(unhurt.steps)]
    assert passed[passed.index(points[0]) : passed.index(points[-1]) + 1] == points
    return stories


async def test_death_at_every_point_of_a_life(server, tmp_path, tiny):
    stories = await explore(server, tmp_path, tiny, LIFE)
    assert sum(story.adopted for story in stories) >= 7  # from the start of the process on, until it is deleted


async def test_death_at_every_point_of_a_shutdown(server, tmp_path, tiny):
    await explore(server, tmp_path, tiny, [*WAY_DOWN, *FORGOTTEN], trouble=Story.agent_stops, **LIGHT)


async def test_death_before_and_after_a_kill(server, tmp_path, tiny):
    """The server ignores SIGTERM."""
    await explore(server, tmp_path, tiny, KILL, runtime=python_server(DEAF), drainSeconds=0)


async def test_death_while_a_server_is_sick(server, tmp_path, tiny):
    await explore(server, tmp_path, tiny, SICKNESS, trouble=Story.server_is_sick, **SICKLY_FOR_LONG)


async def test_death_while_it_is_taken_down_for_another_reason(server, tmp_path, tiny):
    troubles = {
        "Failed": {"trouble": Story.server_fails} | SICKLY_AND_REPLACED,
        "Evicted": {"trouble": Story.memory_is_short} | LIGHT,
        "Vanished": {"trouble": Story.it_vanishes} | LIGHT,
    }
    async with writer(server, tmp_path, tiny) as write:
        stories = {why: [write(point, **more) for point in TURNS] for why, more in troubles.items()}
        await play([*itertools.chain(*stories.values())])
    for why, played in stories.items():
        assert [entry.why for story in played for entry in story.noted] == [why] * len(TURNS)
