"""The manager as others see it: its endpoints, its logs, its demo."""

import asyncio
import gc
import io
import json
import subprocess
import sys

import aiohttp
import pytest
import structlog

from pilotage.kube import Client, load_config
from pilotage.runtime.logs import configure_logging
from pilotage.runtime.manager import Address, Manager
from pilotage.runtime.process import tune_gc
from tests.runtime.objects import THINGS
from tests.runtime.things import install_things, make_thing
from tests.runtime.waiting import eventually
from tests.support.tcp_proxy import TcpProxy


@pytest.fixture
async def client(cluster, namespace, no_leaks):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install_things(client, namespace)
        yield client


async def ask(port, path):
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_its_endpoints_tell_how_it_is(cluster, client, namespace):
    calls = []

    def things(_context):
        async def reconcile(key):
            calls.append(key)

        return reconcile

    config = load_config(kubeconfig=str(cluster.kubeconfig))
    async with TcpProxy(config.server) as proxy:
        proxy.refuse()
        async with Client.connect(proxy.config(config)) as through_proxy:
            manager = Manager(through_proxy, address=Address())
            informer = manager.informer(THINGS, namespace=namespace)
            manager.add("things", informer, things)
            running = asyncio.create_task(manager.run())
            await eventually(lambda: manager.port != 0)
            assert await ask(manager.port, "/healthz") == (200, "ok\n")
            status, text = await ask(manager.port, "/readyz")
            assert status == 503
            assert text.startswith("things.test.pilotage.dev: ")
            proxy.accept()
            await eventually(manager.started.is_set)
            assert await ask(manager.port, "/readyz") == (200, "ok\n")
            await make_thing(client, namespace)
            await eventually(lambda: len(calls) == 1)
            _, text = await ask(manager.port, "/metrics")
            for line in (
                'controller_runtime_reconcile_total{controller="things",result="success"} 1.0',
                'workqueue_depth{name="things"} 0.0',
                'workqueue_adds_total{name="things"} 1.0',
                'pilotage_cached_objects{resource="things.test.pilotage.dev"} 1.0',
                'rest_client_requests_total{code="200",method="GET"}',
            ):
                assert line in text
            proxy.refuse()
            await eventually(lambda: informer.problem is not None)
            before = informer.problem
            status, text = await ask(manager.port, "/readyz")
            assert status == 503
            # First the watch breaks off, then no list succeeds: the one may have become the other while we asked.
            assert str(before) in text or str(informer.problem) in text
            manager.stop()
            await running


async def test_a_taken_port_is_said_at_once(client):
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OSError, match="address already in use"):
            await Manager(client, address=Address(port=port)).run()


async def test_a_stop_before_it_is_ready_ends_it(cluster, namespace, no_leaks):
    config = load_config(kubeconfig=str(cluster.kubeconfig))
    async with TcpProxy(config.server) as proxy:
        proxy.refuse()
        async with Client.connect(proxy.config(config)) as client:
            manager = Manager(client)
            manager.informer(THINGS, namespace=namespace)
            running = asyncio.create_task(manager.run())
            await eventually(lambda: proxy.connections > 0)
            manager.stop()
            await running
            assert not manager.started.is_set()


async def test_logs_name_controller_key_and_reconcile(client, namespace, monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logging(json=True)

    def things(_context):
        async def reconcile(_key):
            raise RuntimeError("a bug")

        return reconcile

    try:
        manager = Manager(client)
        controller = manager.add("things", manager.informer(THINGS, namespace=namespace), things)
        running = asyncio.create_task(manager.run())
        key = await make_thing(client, namespace)
        await eventually(lambda: controller.queue.num_requeues(key) >= 2)
        manager.stop()
        await running
    finally:
        structlog.reset_defaults()
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    failures = [line for line in lines if line["event"] == "reconcile failed"]
    assert failures[0]["controller"] == "things"
    assert failures[0]["key"] == f"{namespace}/a"
    assert failures[0]["error"] == "RuntimeError('a bug')"
    assert failures[0]["exception"][0]["exc_type"] == "RuntimeError"
    assert failures[0]["reconcile_id"] != failures[1]["reconcile_id"]


async def test_the_collector_is_tuned_when_the_caches_are_loaded(client, namespace):
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        gc.unfreeze()
        manager = Manager(client)
        manager.informer(THINGS, namespace=namespace)
        running = asyncio.create_task(manager.run())
        await eventually(manager.started.is_set)
        assert gc.get_threshold()[0] > 700
        assert gc.get_freeze_count() > 10_000, "what was imported is out of the collector's sight"
        manager.stop()
        await running
    finally:
        gc.set_threshold(*before)
        gc.freeze()  # as it was: see tests/conftest.py


def test_a_collector_that_was_turned_off_is_left_alone():
    frozen, threshold = gc.get_freeze_count(), gc.get_threshold()
    gc.disable()
    try:
        tune_gc()
        assert (gc.get_freeze_count(), gc.get_threshold()) == (frozen, threshold)
    finally:
        gc.enable()


def test_the_demo_tells_its_story():
    told_by_the_demo()


def test_the_demo_tells_its_story_on_a_real_api_server(cluster):
    """The demo brings its own control plane; the fixture only makes sure that there are binaries for it."""
    told_by_the_demo("--on", "kubernetes")


def told_by_the_demo(*arguments):
    command = [sys.executable, "-m", "demo.buoys_story", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    told = answer.stdout
    for words in (
        "it is lit: configmap/north-light",
        "it is Stalled (UnknownColour)",
        "went before it",
        "nothing is left",
    ):
        assert words in told
    assert "Traceback" not in answer.stderr
