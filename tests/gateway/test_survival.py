"""What is left of traffic, and of what is known, when a part of the gateway dies. Most break a gateway of their own."""

import asyncio
import os
import signal
import socket
import stat

import pytest

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.gateway.admin import Silent
from pilotage.gateway.snapshot import CDS, EDS, LDS, RDS
from pilotage.kube import ObjectKey
from tests.gateway.town import code, gateway_town, holds
from tests.support.waiting import eventually, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_control_plane_dies_and_comes_back(tmp_path):
    async with gateway_town(tmp_path / "gw", grace_seconds=60) as town:
        ns = await town.namespace()
        old, new = await town.server(ns, "a-1"), await town.server(ns, "a-2")
        await town.route(ns, "aye", {"a-1": 100}, models=["aye"])
        held = asyncio.create_task(town.ask("aye", hold=True))
        await holds(lambda: bool(old.requests))
        await town.route(ns, "aye", {"a-1": 100, "a-2": 0}, models=["aye"])
        await town.route(ns, "aye", {"a-1": 0, "a-2": 100}, models=["aye"])
        left = await town.route(ns, "aye", {"a-2": 100}, models=["aye"])
        assert left.get("status", "counts") == [{"service": "a-1", "inFlight": 1}]

        await town.stop_control()
        assert await town.ask("aye") == (200, {"server": "a-2"})  # traffic goes on
        await town.start_control()
        # Nothing had changed: nothing was sent, and what is still under way to the old one is known.
        assert town.control.ads.sent == dict.fromkeys((CDS, EDS, LDS, RDS), 0)
        assert [*town.control.program.idle()] == [f"{ns}_a-1_80"]
        assert not held.done()
        old.release.set()
        assert await held == (200, {"server": "a-1"})
        key = ObjectKey(ns, "aye")
        await until(town.user, GATEWAY_ROUTES, key, lambda obj: obj.get("status", "counts")[0]["inFlight"] == 0)

        await town.stop_control()
        await town.write_route(ns, "aye", {"a-2": 0}, models=["aye"])  # while nobody looks
        assert await town.ask("aye") == (200, {"server": "a-2"})
        await town.start_control()
        await town.settled(ns, "aye")
        assert code(await town.ask("aye")) == (503, "endpoint_detached")
        assert town.control.ads.sent == {CDS: 0, EDS: 0, LDS: 0, RDS: 1}
        assert (await town.stat("^listener_manager.listener_added$"))["listener_manager.listener_added"] == "1"
        assert new.requests


async def test_envoy_is_killed_and_comes_back_with_everything(tmp_path):
    async with gateway_town(tmp_path / "gw", grace_seconds=60) as town:
        ns = await town.namespace()
        await town.server(ns, "b-1")
        before = await town.route(ns, "bee", {"b-1": 100}, models=["bee"])
        os.kill(town.envoy.pid, signal.SIGKILL)

        async def served():
            try:
                return await town.ask("bee") == (200, {"server": "b-1"})
            except OSError:
                return False

        await eventually(served)
        assert town.envoy.starts == 2
        after = await town.settled(ns, "bee")
        assert after.meta.resource_version == before.meta.resource_version  # that was no news for the route


async def test_while_there_is_no_envoy_routes_are_pending_and_say_why(tmp_path):
    async with gateway_town(tmp_path / "gw", grace_seconds=60) as town:
        ns = await town.namespace()
        await town.server(ns, "c-1")
        await town.route(ns, "cee", {"c-1": 100})
        os.kill(town.envoy.pid, signal.SIGSTOP)
        await town.write_route(ns, "cee", {"c-1": 0})
        pending = await town.settled(ns, "cee", "Pending")
        assert pending.get("status", "message") == "Envoy has not acknowledged it yet"
        os.kill(town.envoy.pid, signal.SIGCONT)
        done = await town.settled(ns, "cee")
        assert done.get("status", "counts") == [{"service": "c-1", "inFlight": 0}]
        assert "message" not in done.get("status")


async def test_a_port_that_is_taken_is_said_and_tried_again(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with gateway_town(tmp_path / "gw", port=taken.getsockname()[1], wait=False) as town:
            ns = await town.namespace()
            await town.server(ns, "e-1")
            await town.write_route(ns, "eee", {"e-1": 100})
            pending = await town.settled(ns, "eee", "Pending")
            assert "Address already in use" in pending.get("status", "message")
            async with town.http.get(f"http://127.0.0.1:{town.control.metrics_port}/readyz") as answer:
                assert (answer.status, "Address already in use" in await answer.text()) == (503, True)
            taken.close()
            await town.settled(ns, "eee")
            await eventually(lambda: served(town, f"/endpoints/{ns}/eee/"))


async def served(town, path):
    try:
        return (await town.get(path))[0] == 200
    except OSError:
        return False


async def test_a_cluster_outlives_its_route_and_then_goes(tmp_path):
    async with gateway_town(tmp_path / "gw", grace_seconds=0.3) as town:
        ns = await town.namespace()
        old = await town.server(ns, "d-1")
        await town.server(ns, "d-2")
        await town.route(ns, "dee", {"d-1": 100})
        held = asyncio.create_task(town.post(f"/endpoints/{ns}/dee/", {"hold": True}))
        await holds(lambda: bool(old.requests))
        await town.route(ns, "dee", {"d-1": 100, "d-2": 0})
        route = await town.route(ns, "dee", {"d-2": 100})
        assert route.get("status", "counts") == [{"service": "d-1", "inFlight": 1}]
        name = f"cluster.{ns}_d-1_80.membership_total"

        async def there():
            return name in await town.stat(f"^{name}$")

        await asyncio.sleep(1.5)  # longer than its grace: what it has keeps it
        assert await there()
        assert town.control.program.idle() == {f"{ns}_d-1_80"}
        labels = f'{{endpoint="dee",namespace="{ns}",service="d-1"}}'
        assert f"pilotage_gateway_in_flight{labels} 1.0" in await metrics(town)  # it is still that endpoint's request
        old.release.set()
        assert await held == (200, {"server": "d-1"})

        async def gone():
            return not await there()

        await eventually(gone)
        assert 'service="d-1"' not in await metrics(town)
        await holds(lambda: [*town.control.program.endpoints] == [f"{ns}_d-2_80"])  # as soon as Envoy has said so
        key = ObjectKey(ns, "dee")
        await until(town.user, GATEWAY_ROUTES, key, lambda obj: "counts" not in obj.get("status"))
        assert await town.get(f"/endpoints/{ns}/dee/") == (200, {"server": "d-2"})


async def metrics(town):
    async with town.http.get(f"http://127.0.0.1:{town.control.metrics_port}/metrics") as answer:
        return await answer.text()


async def test_the_admin_socket_is_ours_alone_and_says_little(town):
    mode = (town.folder.admin).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE((town.folder.ads).stat().st_mode) & 0o077 == 0
    for path in ("/config_dump", "/quitquitquit", "/logging", "/runtime"):
        with pytest.raises(Silent, match="403"):
            await town.control.admin.post(path)
    assert (await town.control.admin.get("/ready")).strip() == b"LIVE"
