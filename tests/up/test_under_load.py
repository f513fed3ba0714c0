"""No request fails, no stream is cut, through the whole life of an endpoint on one machine.

`PILOTAGE_REDEPLOYS` (default 2) and `PILOTAGE_CLIENTS` (default 8) set its length.
"""

import asyncio
import itertools
import os
import sys

import aiohttp

from demo.load import Load
from pilotage.kube import NAMESPACES, Client, load_config
from pilotage.up import components
from pilotage.up.layout import Layout
from pilotage.up.settings import UpOptions
from pilotage.up.supervisor import Supervisor
from tests.up.test_up import bring_up, deploy, kill, servers

REDEPLOYS = int(os.environ.get("PILOTAGE_REDEPLOYS", "2"))
CLIENTS = int(os.environ.get("PILOTAGE_CLIENTS", "8"))
PAUSE_SECONDS = 0.05
"""Pause after each answer: without it, the clients would get no more answers, but take the cores from the servers."""


async def test_nothing_fails_through_redeploys_scaling_a_delete_and_a_restart_of_the_agent(machine):
    bring_up(machine)
    deploy(machine)
    deploy(machine, "scribe")

    async def typed(command):
        await asyncio.to_thread(machine.run, command)
        await load.more(CLIENTS)

    async with Load(f"{machine.url}/v1/chat/completions", "assistant", clients=CLIENTS, pause=PAUSE_SECONDS) as load:
        await load.more(CLIENTS)
        for number in range(REDEPLOYS):
            model = machine.folder / f"v{2 - number % 2}.gguf"
            await typed(f"pilotage redeploy assistant --model file://{model}")
        await typed("pilotage scale assistant --replicas 2")
        await typed("pilotage scale assistant --replicas 1")
        await typed(f"pilotage delete servingendpoint/scribe --yes --receipt {machine.folder}/receipt.json")
        before = {each.pid for each in servers(machine)}
        await asyncio.to_thread(kill, Layout(machine.data), "agent")
        await load.more(10 * CLIENTS)
        assert {each.pid for each in servers(machine)} == before, "a server that was wanted was started anew"

    sys.stdout.write(f"{load.asked} requests, {load.streamed} of them streams: {len(load.failures)} failed\n")
    assert load.failures == [], load.failures[:5]
    assert load.said == {"I am the first", "I am the second"}


async def test_with_a_namespace_an_endpoint_goes_from_its_answers_to_404(machine):
    """As with `kubectl delete namespace`, and nothing between: no 503, and nothing that is back for a while."""
    bring_up(machine)
    async with Client.connect(load_config(kubeconfig=machine.env["KUBECONFIG"])) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "going"}})
    model = f"file://{machine.folder}/v1.gguf"
    await asyncio.to_thread(machine.run, f"pilotage deploy scribe -n going --model {model} --arg --threads --arg 1")
    statuses: list[int] = []
    asked = {"model": "scribe", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}

    async def ask(http: aiohttp.ClientSession) -> int:
        async with http.post(f"{machine.url}/v1/chat/completions", json=asked) as answer:
            statuses.append(answer.status)
            return answer.status

    async with aiohttp.ClientSession() as http:
        assert await ask(http) == 200
        going = asyncio.create_task(
            asyncio.to_thread(
                machine.run, f"pilotage delete namespace/going --yes --receipt {machine.folder}/receipt.json"
            )
        )
        while not going.done():
            await ask(http)
        await going
        assert await ask(http) == 404
    assert [status for status, _ in itertools.groupby(statuses)] == [200, 404]


async def test_the_same_in_the_wrong_order_fails(machine, monkeypatch):
    def careless(part, *rest):
        return [sys.executable, "-m", "tests.up.careless", *components.command(part, *rest)[3:]]

    monkeypatch.setattr("pilotage.up.supervisor.command", careless)
    ready, told = asyncio.Event(), asyncio.Event()
    options = UpOptions(machine.data, machine.port, file_roots=[str(machine.folder)])
    running = asyncio.create_task(Supervisor(options, machine.show).run(told, lambda _: ready.set()))
    await ready.wait()
    try:
        # Answers that take longer than the second that is given to requests which just came: some are always under way.
        await asyncio.to_thread(deploy, machine, args=("--ctx-size", "16384"))
        async with Load(f"{machine.url}/v1/chat/completions", "assistant", clients=4, tokens=4000) as load:
            for model in ("v2", "v1") * 5:
                if not load.failures:
                    redeploy = f"pilotage redeploy assistant --model file://{machine.folder}/{model}.gguf"
                    await asyncio.to_thread(machine.run, redeploy)
        assert load.failures != []
    finally:
        told.set()
        await running
