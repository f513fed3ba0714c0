"""A terminal error over a virtual day on a real API server: said once, then silence; and at once on a change."""

import asyncio

import pytest

from pilotage.kube import Client, load_config, merge_patch
from pilotage.kube.transport import Request, Transport
from pilotage.runtime.conditions import find_condition
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import TerminalError
from tests import virtual_time
from tests.runtime.objects import THINGS
from tests.runtime.things import install_things, make_thing
from tests.runtime.waiting import eventually
from tests.virtual_time import run_warp, warp

DAY = 24 * 3600.0
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


class InFlight:
    """A transport that knows how many answers are still awaited, so that virtual time does not outrun the server."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.count = 0

    async def send(self, request: Request):
        self.count += 1
        try:
            return await self._inner.send(request)
        finally:
            self.count -= 1

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.timeout(300)
def test_a_terminal_error_costs_nothing_for_a_day(own_cluster, namespace, monkeypatch):
    monkeypatch.setattr(virtual_time, "SETTLE_SECONDS", 0.004)  # answers under way are waited for by `busy`
    run_warp(scenario(own_cluster, namespace))


async def scenario(cluster, namespace):
    calls = []

    def things(context):
        async def reconcile(key):
            calls.append(key.name)
            if context.store.get(key).get("spec", "source") == "nowhere":
                raise TerminalError("NoSuchFile", "the file nowhere does not exist")

        return reconcile

    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as direct:
        await install_things(direct, namespace)
        transports = []
        counted = direct.through(lambda inner: transports.append(InFlight(inner)) or transports[-1])
        manager = Manager(counted, name="test", seed=1)
        manager.add("things", manager.informer(THINGS, namespace=namespace), things)
        running = asyncio.create_task(manager.run())
        await eventually(manager.started.is_set)

        mark = cluster.audit_mark()
        key = await make_thing(direct, namespace, source="nowhere")
        events = lambda: cluster.audit(since=mark, verb="create", resource="events", namespace=namespace)  # noqa: E731
        await eventually(lambda: len(events()) == 1)
        stalled = find_condition((await direct.get(THINGS, key)).get("status", "conditions"), "Stalled")
        assert (stalled["status"], stalled["reason"]) == ("True", "NoSuchFile")
        assert calls == ["a"]

        quiet = cluster.audit_mark()
        started = asyncio.get_running_loop().time()
        await warp(DAY, busy=lambda: any(transport.count for transport in transports))
        assert asyncio.get_running_loop().time() - started >= DAY
        asked = cluster.audit(since=quiet, namespace=namespace)
        assert [record for record in asked if record.verb in WRITES] == []
        assert len([record for record in asked if record.verb == "watch"]) >= DAY / 600, (
            "the day did pass for the watch"
        )
        assert calls == ["a"]

        await direct.patch(THINGS, key, merge_patch({"spec": {"source": "here"}}))
        await eventually(lambda: calls == ["a", "a"])
        manager.stop()
        await running
        healed = find_condition((await direct.get(THINGS, key)).get("status", "conditions"), "Stalled")
        assert healed["status"] == "False"
        assert len(events()) == 1
