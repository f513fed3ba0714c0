"""Keys of the parts, in virtual time: a crash of the API server, a clock that is set and a suspended laptop."""

import asyncio

import pytest

from pilotage.kube import Client
from pilotage.private_files import write_private
from pilotage.up import access, tokens
from pilotage.up.components import WORKERS
from pilotage.up.layout import Layout
from pilotage.up.tokens import ComponentTokens, due
from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.users import MASTERS, UserInfo
from pilotage_harbor.core import Core
from pilotage_sim.loop import virtual
from pilotage_sim.transport import DirectTransport

DAY = 86400.0
ADMIN = "clusters: [{name: harbor, cluster: {server: 'https://127.0.0.1:1'}}]"


@pytest.mark.parametrize(
    ("passed", "wanted"),
    [(0, False), (DAY / 4 - 1, False), (DAY / 4, True), (2 * DAY, True), (-59, False), (-61, True), (-2 * DAY, True)],
)
def test_a_key_is_due_after_a_quarter_of_its_life_or_when_the_clock_was_set_back(passed, wanted):
    assert due(1000.0, 1000.0 + passed) is wanted


class Machine:
    """An API server in this process whose clock can be set, and the keys of its parts."""

    def __init__(self, folder):
        self.loop = asyncio.get_running_loop()
        self.offset, self.said, self.moved = 0.0, [], []
        wall_time = self.loop.wall_time
        self.loop.wall_time = lambda: wall_time() + self.offset
        self.layout = Layout(folder / "data")
        self.layout.make()
        self.layout.harbor.mkdir()
        write_private(self.layout.kubeconfig, ADMIN.encode())
        self.core = Core(None, now=lambda: self.loop.wall_time())
        self.harbor = Harbor(self.core)
        self.issued = ComponentTokens(self.layout, self.connect, self.said.append, "local")
        self.reachable = True

    def connect(self):
        if not self.reachable:
            raise ConnectionRefusedError("nobody listens")
        return Client(DirectTransport(self.harbor, UserInfo("admin", groups=(MASTERS,))))

    async def __aenter__(self):
        await self.harbor.start()
        async with self.connect() as client:
            await access.install(client, "local")
        await self.issued.issue()
        self.keeping = asyncio.create_task(self.issued.keep(self.moved.append))
        return self

    async def __aexit__(self, *_):
        self.keeping.cancel()
        await self.harbor.stop()

    def tokens(self):
        return [self.layout.token(part).read_text() for part in WORKERS]

    def accepted(self):
        return [self.core.tokens.user(token) is not None for token in self.tokens()]


@virtual
@pytest.mark.parametrize("days", [2, -2, 0.3, 3650])
async def test_a_clock_that_is_set_costs_a_second(tmp_path, days):
    """A laptop that was suspended has the same effect: the wall clock advances then, and no other."""
    async with Machine(tmp_path) as machine:
        old = machine.tokens()
        machine.offset = days * DAY
        await asyncio.sleep(2 * tokens.CHECK_SECONDS)
        assert machine.accepted() == [True] * len(WORKERS)
        assert set(machine.tokens()).isdisjoint(old)
        machine.offset = 0.0
        await asyncio.sleep(2 * tokens.CHECK_SECONDS)
        assert machine.accepted() == [True] * len(WORKERS)


@virtual
async def test_they_are_replaced_in_time_and_not_before(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "CHECK_SECONDS", 600.0)  # it is played for four days
    monkeypatch.setattr(tokens, "REVIEW_SECONDS", 3600.0)
    async with Machine(tmp_path) as machine:
        first = machine.tokens()
        await asyncio.sleep(DAY / 5)
        assert machine.tokens() == first
        await asyncio.sleep(DAY / 5)
        second = machine.tokens()
        assert set(second).isdisjoint(first)
        await asyncio.sleep(3 * DAY)
        assert machine.accepted() == [True] * len(WORKERS)
        assert (machine.said, machine.moved) == ([], [])


@virtual
async def test_parts_that_are_refused_get_new_ones(tmp_path):
    async with Machine(tmp_path) as machine:
        machine.core.tokens.key = b"y" * 32
        machine.core.tokens._verified.clear()
        assert machine.accepted() == [False] * len(WORKERS)
        await asyncio.sleep(tokens.REVIEW_SECONDS + 2 * tokens.CHECK_SECONDS)
        assert machine.accepted() == [True] * len(WORKERS)
        machine.layout.token("agent").unlink()
        await asyncio.sleep(tokens.REVIEW_SECONDS + 2 * tokens.CHECK_SECONDS)
        assert machine.accepted() == [True] * len(WORKERS), "there is one again"


@virtual
async def test_after_a_restart_of_the_api_server_they_are_given_as_soon_as_it_answers(tmp_path):
    async with Machine(tmp_path) as machine:
        old = machine.tokens()
        machine.reachable = False
        machine.issued.renew()
        await asyncio.sleep(60)
        assert len(machine.said) == 1, "it is said, and once"
        assert "nobody listens" in machine.said[0]
        machine.reachable = True
        write_private(machine.layout.kubeconfig, ADMIN.replace(":1'", ":2'").encode())
        await asyncio.sleep(2 * tokens.CHECK_SECONDS)
        assert set(machine.tokens()).isdisjoint(old)
        assert machine.moved == [*WORKERS], "it listens elsewhere, which a part learns at its start"
        assert "127.0.0.1:2" in machine.layout.access("agent").read_text()
