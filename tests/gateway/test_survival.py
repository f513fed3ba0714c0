"""Traffic and state after a part of the gateway dies. Most tests break a gateway of their own."""

import asyncio
import os
import signal
import socket
import stat

import pytest

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.gateway.admin import AdminUnavailable
from pilotage.gateway.snapshot import CDS, EDS, LDS, SRDS
from pilotage.kube import ObjectKey
from tests.gateway.gateway_host import code, holds, running_gateway
from tests.support.waiting import eventually, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_control_plane_dies_and_comes_back(tmp_path):
    async with running_gateway(tmp_path / "gw", grace_seconds=60) as gateway:
        ns = await gateway.namespace()
        old, new = await gateway.server(ns, "a-1"), await gateway.server(ns, "a-2")
        await gateway.route(ns, "aye", {"a-1": 100}, models=["aye"])
        held = asyncio.create_task(gateway.ask("aye", hold=True))
        await holds(lambda: bool(old.requests))
        await gateway.route(ns, "aye", {"a-1": 100, "a-2": 0}, models=["aye"])
        await gateway.route(ns, "aye", {"a-1": 0, "a-2": 100}, models=["aye"])
        left = await gateway.route(ns, "aye", {"a-2": 100}, models=["aye"])
        assert left.get("status", "counts") == [{"service": "a-1", "inFlight": 1}]

        await gateway.stop_control()
        assert await gateway.ask("aye") == (200, {"server": "a-2"})  # traffic continues
        await gateway.start_control()
        # Nothing had changed: nothing was sent, and the requests still under way to the old one are known.
        assert gateway.control.ads.sent == dict.fromkeys((CDS, EDS, LDS, SRDS), 0)
        assert [*gateway.control.program.idle()] == [f"{ns}_a-1_80"]
        assert not held.done()
        old.release.set()
        assert await held == (200, {"server": "a-1"})
        key = ObjectKey(ns, "aye")
        await until(gateway.user, GATEWAY_ROUTES, key, lambda obj: obj.get("status", "counts")[0]["inFlight"] == 0)

        await gateway.stop_control()
        await gateway.write_route(ns, "aye", {"a-2": 0}, models=["aye"])  # while the control plane is down
        assert await gateway.ask("aye") == (200, {"server": "a-2"})
        await gateway.start_control()
        await gateway.settled(ns, "aye")
        assert code(await gateway.ask("aye")) == (503, "endpoint_detached")
        assert gateway.control.ads.sent == {CDS: 0, EDS: 0, LDS: 0, SRDS: 1}
        assert (await gateway.stat("^listener_manager.listener_added$"))["listener_manager.listener_added"] == "1"
        assert new.requests


async def test_envoy_is_killed_and_comes_back_with_everything(tmp_path):
    async with running_gateway(tmp_path / "gw", grace_seconds=60) as gateway:
        ns = await gateway.namespace()
        await gateway.server(ns, "b-1")
        before = await gateway.route(ns, "bee", {"b-1": 100}, models=["bee"])
        os.kill(gateway.envoy.pid, signal.SIGKILL)

        async def served():
            try:
                return await gateway.ask("bee") == (200, {"server": "b-1"})
            except OSError:
                return False

        await eventually(served)
        assert gateway.envoy.starts == 2
        after = await gateway.settled(ns, "bee")
        assert after.meta.resource_version == before.meta.resource_version  # that changed nothing for the route


async def test_while_there_is_no_envoy_routes_are_pending_and_say_why(tmp_path):
    async with running_gateway(tmp_path / "gw", grace_seconds=60) as gateway:
        ns = await gateway.namespace()
        await gateway.server(ns, "c-1")
        await gateway.route(ns, "cee", {"c-1": 100})
        os.kill(gateway.envoy.pid, signal.SIGSTOP)
        await gateway.write_route(ns, "cee", {"c-1": 0})
        pending = await gateway.settled(ns, "cee", "Pending")
        assert pending.get("status", "message") == "Envoy has not acknowledged it yet"
        os.kill(gateway.envoy.pid, signal.SIGCONT)
        done = await gateway.settled(ns, "cee")
        assert done.get("status", "counts") == [{"service": "c-1", "inFlight": 0}]
        assert "message" not in done.get("status")


async def test_a_port_that_is_taken_is_said_and_tried_again(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with running_gateway(tmp_path / "gw", port=taken.getsockname()[1], wait=False) as gateway:
            ns = await gateway.namespace()
            await gateway.server(ns, "e-1")
            await gateway.write_route(ns, "eee", {"e-1": 100})
            pending = await gateway.settled(ns, "eee", "Pending")
            assert "Address already in use" in pending.get("status", "message")
            async with gateway.http.get(f"http://127.0.0.1:{gateway.control.metrics_port}/readyz") as answer:
                assert (answer.status, "Address already in use" in await answer.text()) == (503, True)
            taken.close()
            await gateway.settled(ns, "eee")
            await eventually(lambda: served(gateway, f"/endpoints/{ns}/eee/"))


async def served(gateway, path):
    try:
        return (await gateway.get(path))[0] == 200
    except OSError:
        return False


async def test_a_cluster_outlives_its_route_and_then_goes(tmp_path):
    async with running_gateway(tmp_path / "gw", grace_seconds=0.3) as gateway:
        ns = await gateway.namespace()
        old = await gateway.server(ns, "d-1")
        await gateway.server(ns, "d-2")
        await gateway.route(ns, "dee", {"d-1": 100})
        held = asyncio.create_task(gateway.post(f"/endpoints/{ns}/dee/", {"hold": True}))
        await holds(lambda: bool(old.requests))
        await gateway.route(ns, "dee", {"d-1": 100, "d-2": 0})
        route = await gateway.route(ns, "dee", {"d-2": 100})
        assert route.get("status", "counts") == [{"service": "d-1", "inFlight": 1}]
        name = f"cluster.{ns}_d-1_80.membership_total"

        async def there():
            return name in await gateway.stat(f"^{name}$")

        await asyncio.sleep(1.5)  # longer than its grace: its requests keep it
        assert await there()
        assert gateway.control.program.idle() == {f"{ns}_d-1_80"}
        labels = f'{{copies="no",endpoint="dee",namespace="{ns}",service="d-1"}}'
        assert f"pilotage_gateway_in_flight{labels} 1.0" in await metrics(
            gateway
        )  # it is still that endpoint's request
        old.release.set()
        assert await held == (200, {"server": "d-1"})

        async def gone():
            return not await there()

        await eventually(gone)
        assert 'service="d-1"' not in await metrics(gateway)
        await holds(lambda: [*gateway.control.program.endpoints] == [f"{ns}_d-2_80"])  # as soon as Envoy has said so
        key = ObjectKey(ns, "dee")
        await until(gateway.user, GATEWAY_ROUTES, key, lambda obj: "counts" not in obj.get("status"))
        assert await gateway.get(f"/endpoints/{ns}/dee/") == (200, {"server": "d-2"})


async def metrics(gateway):
    async with gateway.http.get(f"http://127.0.0.1:{gateway.control.metrics_port}/metrics") as answer:
        return await answer.text()


async def test_the_admin_socket_is_ours_alone_and_says_little(gateway):
    mode = (gateway.folder.admin).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE((gateway.folder.ads).stat().st_mode) & 0o077 == 0
    for path in ("/config_dump", "/quitquitquit", "/logging", "/runtime"):
        with pytest.raises(AdminUnavailable, match="403"):
            await gateway.control.admin.post(path)
    assert (await gateway.control.admin.get("/ready")).strip() == b"LIVE"
