"""Rollouts in steps and experiments on one machine, with real servers under load: nothing fails that is not bad itself.

`PILOTAGE_CLIENTS` (default 8) is the number of clients, of which half are streaming.
"""

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path

import pytest

from demo.load import Load
from demo.tiny_gguf import write
from pilotage.api.names import ENDPOINTS, EXPERIMENTS, GATEWAY_ROUTES
from pilotage.kube import Client, ObjectKey, load_config
from tests.support.waiting import until
from tests.up.conftest import made
from tests.up.test_under_load import CLIENTS, PAUSE_SECONDS
from tests.up.test_up import deploy, servers

FIRST, SECOND, THIRD = "I am the first", "I am the second", "I am the third"
STEPS = [
    {"setWeight": 10},
    {"pause": {"duration": "1s"}},
    {"setWeight": 50},
    {"pause": {}},
    {"setWeight": 80},
]
HALFWAY = 4
PASSED = ("NoWorse", "Better")


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    """A machine whose llama-server fails or hangs with some models."""
    with made(tmp_path_factory.mktemp("up")) as machine:
        program = machine.folder / "llama-server"
        program.write_text(f"#!{sys.executable}\n{(Path(__file__).parent / 'bad_server.py').read_text()}")
        program.chmod(0o755)
        write(machine.folder / "v3.gguf", sentence="I am the third way.", endless=True)
        write(machine.folder / "half.gguf", sentence="half of it fails")
        write(machine.folder / "hangs.gguf", sentence="it hangs")
        roots = f"--file-roots {machine.folder} --llama-server {program}"
        machine.run(f"pilotage up --detach --port {machine.port} {roots}")
        yield machine


class Busy:
    """An endpoint, and clients that ask it again and again."""

    def __init__(self, machine, name, load, client):
        self.machine = machine
        self.key = ObjectKey("default", name)
        self.load = load
        self._client = client

    async def typed(self, command, **expected):
        """Type a command, and wait until each client was answered afterwards."""
        said = await asyncio.to_thread(self.machine.run, command, **expected)
        await self.load.more(2 * CLIENTS)
        return said

    async def changed(self, model, **canary):
        """Ask for another model, as a rollout in steps."""
        spec = {
            "model": self.source(model),
            "runtime": {"name": "llama.cpp", "args": ["--threads", "1"]},
            "placement": {"kind": "Host", "host": "local"},
            "route": {"kind": "PilotageGateway"},
            "strategy": {"type": "Canary", "canary": canary},
        }
        path = self.machine.folder / "asked.json"
        asked = {"kind": "ServingEndpoint", "metadata": {"name": self.key.name}, "spec": spec}
        path.write_text(json.dumps({"apiVersion": "pilotage.dev/v1alpha1", **asked}))
        await self.typed(f"pilotage redeploy -f {path} --no-wait")

    def source(self, model):
        return {"source": f"file://{self.machine.folder}/{model}.gguf"}

    async def seen(self, kind, condition):
        return await until(self._client, kind, self.key, condition, seconds=60)

    async def rollout(self, phase, step=None):
        """Wait for a phase of the rollout, and until each client was answered in it."""

        def reached(obj):
            found = obj.get("status", "rollout", default={})
            return found.get("phase") == phase and step in (None, found.get("step"))

        found = await self.seen(ENDPOINTS, reached)
        await self.load.more(4 * CLIENTS)
        return found.get("status", "rollout")

    async def experiment(self, **spec):
        """Create an Experiment that is called like the endpoint."""
        meta = {"namespace": self.key.namespace, "name": self.key.name}
        await self._client.create(EXPERIMENTS, {"metadata": meta, "spec": {"endpoint": {"name": meta["name"]}, **spec}})

    def only(self, said, since):
        """Assert that all requests that were sent since then got this answer."""
        other = {text: round(sent - since, 3) for text, sent in self.load.last.items() if text != said and sent > since}
        assert not other, f"answered otherwise, so many seconds after: {other}"
        assert self.load.last[said] > since

    def report(self, what):
        load = self.load
        sys.stdout.write(
            f"{what}: {load.asked} requests, {load.streamed} of them streams: {len(load.failures)} failed\n"
        )


@contextlib.asynccontextmanager
async def busy(machine, name, **load):
    deploy(machine, name)
    async with (
        Client.connect(load_config(kubeconfig=machine.env["KUBECONFIG"])) as client,
        Load(f"{machine.url}/v1/chat/completions", name, clients=CLIENTS, pause=PAUSE_SECONDS, **load) as asking,
    ):
        await asking.more(CLIENTS)
        yield Busy(machine, name, asking, client)


def running(machine):
    return {each.pid for each in servers(machine)}


async def test_nothing_fails_through_steps_an_abort_a_promotion_and_a_rollback_in_the_window(up):
    async with busy(up, "assistant") as here:
        load = here.load
        await here.changed("v2", steps=STEPS)
        await here.rollout("Pausing", HALFWAY)
        assert load.said == {FIRST, SECOND}
        await here.typed("pilotage abort assistant --wait")
        aborted = time.monotonic()
        await load.more(4 * CLIENTS)
        here.only(FIRST, aborted)

        await here.typed("pilotage retry assistant")
        await here.rollout("Pausing", HALFWAY)
        assert load.last[SECOND] > aborted
        await here.typed("pilotage promote assistant --wait")
        promoted, both = time.monotonic(), running(up)
        await load.more(4 * CLIENTS)
        here.only(SECOND, promoted)

        typing, typed = asyncio.create_task(here.typed("pilotage rollback assistant")), time.monotonic()
        await here.seen(ENDPOINTS, lambda obj: obj.get("spec", "model") == here.source("v1"))
        asked = time.monotonic()
        await typing
        whole, alone = (load.last[SECOND] - each for each in (typed, asked))
        back = time.monotonic()
        await load.more(4 * CLIENTS)
        here.only(FIRST, back)
        assert running(up) == both, "nothing was started or stopped"
    here.report(
        f"all requests back {whole:.2f} s after `pilotage rollback` was typed, {alone:.2f} s after it was asked"
    )
    assert load.failures == [], load.failures[:5]


async def test_a_candidate_that_is_bad_is_aborted_by_its_verdict_and_nobody_meets_it_again(up):
    metrics = [{"name": "errors", "worseBy": "5pp"}, {"name": "slow", "over": "2s", "worseBy": "5pp"}]
    steps = [{"setWeight": 25}, {"analysis": {"atMost": "1m"}}, {"setWeight": 50}]
    async with busy(up, "scribe", patience=10) as here:
        load = here.load
        for fault in ("half", "hangs"):
            before = len(load.failures)
            await here.changed(fault, steps=steps, analysis={"warmupSeconds": 0, "metrics": metrics})
            aborted = await here.rollout("Aborted")
            back, failed = time.monotonic(), len(load.failures)
            assert aborted["message"].startswith("The candidate is worse: "), aborted
            assert failed > before
            assert "Worse: " in await here.typed("pilotage verdict scribe", expected=(1,))
            await load.more(8 * CLIENTS)
            here.only(FIRST, back)
            assert load.failures[failed:] == []
            sys.stdout.write(f"{fault}: {failed - before} requests failed before it was out. {aborted['message']}\n")


async def test_nothing_fails_through_an_experiment_with_two_variants_and_a_mirror(up):
    async with busy(up, "clerk") as here:
        load, before = here.load, running(up)
        await here.experiment(
            onHosts=True,
            variants=[
                {"name": "third", "weight": 30, "overrides": {"model": here.source("v3")}},
                {"name": "control", "weight": 30, "same": True},
                {"name": "shadow", "mirror": {"percent": 100}, "overrides": {"model": here.source("v2")}},
            ],
            analysis={"against": "control", "warmupSeconds": 0, "metrics": [{"name": "errors", "worseBy": "20pp"}]},
        )
        await here.seen(EXPERIMENTS, lambda obj: obj.get("status", "verdict", "result") in PASSED)
        await here.seen(GATEWAY_ROUTES, lambda obj: obj.get("status", "copies", default=[{}])[0].get("sent"))
        assert "third against control: " in await here.typed("pilotage verdict experiment/clerk")
        assert load.said == {FIRST, THIRD}
        await here.typed("pilotage terminate clerk")
        await here.seen(EXPERIMENTS, lambda obj: obj.get("status", "phase") == "Ended")
        ended = time.monotonic()
        await load.more(4 * CLIENTS)
        here.only(FIRST, ended)
        assert running(up) == before
    here.report("an experiment")
    assert load.failures == [], load.failures[:5]
