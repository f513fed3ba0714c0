"""The whole system on this machine: deployed, redeployed and judged under load, deleted, stuck, freed, and gone."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from demo import tiny_gguf
from demo.load import Load
from demo.machine import Machine, UnexpectedEnd
from pilotage.api.names import ENDPOINTS, GATEWAY_ROUTES, LABEL_MANAGED_BY, MANAGED_BY, MODELS, PROCESSES
from pilotage.kube import Client, ObjectKey, json_patch, load_config
from pilotage.serving.resources import SERVICES, SLICES

STARTED = time.monotonic()
FINALIZER = "billing.example.com/invoice"
CLIENTS = 20
PAUSE_SECONDS = 0.1
"""Pause of a client after an answer: without it the demo would only show how busy the machine is."""
CANARY = """\
  strategy:
    type: Canary
    canary:
      steps:
      - setWeight: 25
      - analysis: {atMost: 1m}
      - setWeight: 50
      analysis: {warmupSeconds: 0, metrics: [{name: errors, worseBy: 5pp}]}
"""
REFUSES = "{% if '?' in messages[-1]['content'] %}{{ raise_exception('no questions') }}{% endif %}"
"""A chat template that fits as long as nobody asks anything."""
PARTS = (GATEWAY_ROUTES, PROCESSES, SLICES, SERVICES)
"""Kinds of the parts of an endpoint on this machine."""


def show(line: str) -> None:
    print(line.rstrip(), flush=True)


def tell(text: str) -> None:
    print(f"\n{time.monotonic() - STARTED:5.1f} s  {text}", flush=True)


def story(demo: Machine) -> None:
    """Deploy, use, redeploy and delete an endpoint, as a person would, and leave nothing behind."""
    tell("Two tiny models are made, and the whole system comes up on this machine: no cluster.")
    tiny_gguf.write(demo.folder / "v1.gguf", sentence="I am the first version, at your service.")
    tiny_gguf.write(demo.folder / "v2.gguf", sentence="I am the second one; nobody noticed it.")
    demo.run(f"pilotage up --detach --port {demo.port} --file-roots {demo.folder}")

    tell("Two endpoints, each a real llama-server process behind a real Envoy.")
    for name in ("assistant", "scribe"):
        demo.run(f"pilotage deploy {name} --model file://{demo.folder}/v1.gguf")
    demo.run("pilotage list")

    tell(f"A completion: POST {demo.url}/v1/chat/completions")
    show(f"  assistant says: {demo.ask('assistant')}")

    tell(f"Another version, while {CLIENTS} clients ask again and again, half of them streaming.")
    asyncio.run(redeploy_under_load(demo))
    show(f"  assistant says: {demo.ask('assistant')}")

    tell("A third version, in steps, each compared: its server is healthy, but its chat template refuses questions.")
    tiny_gguf.write(demo.folder / "v3.gguf", sentence="I am the third one.", template=REFUSES + tiny_gguf.TEMPLATE)
    asyncio.run(canary_under_load(demo))
    show(f"  assistant says: {demo.ask('assistant')}")
    demo.run("pilotage rollback assistant")

    tell("One goes: routes first, then requests, the process, the Service; and the proof.")
    demo.run(f"pilotage delete servingendpoint/scribe --yes --receipt {demo.folder}/receipt.json")

    tell("The other one gets stuck: somebody put a finalizer on it whose controller does not run.")
    asyncio.run(add_finalizer(demo))
    demo.run("pilotage delete servingendpoint/assistant --yes --timeout 5", expected=(1, 3))
    demo.run("pilotage why servingendpoint/assistant", expected=(1,))
    tell("Whoever knows that nobody will ever send that invoice lets go of it, by name.")
    demo.run(
        f"pilotage why servingendpoint/assistant --fix=strip-finalizer --finalizer {FINALIZER} --yes", expected=(0, 1)
    )
    demo.run("pilotage wait servingendpoint/assistant --timeout 30")
    tell("What the receipt of the first one says, and whether it still holds.")
    show_receipt(demo.folder / "receipt.json")
    demo.run(f"pilotage receipt verify {demo.folder}/receipt.json")


def show_receipt(path: Path) -> None:
    for each in json.loads(path.read_text(encoding="utf-8"))["objects"]:
        what = f"{each['kind']}/{each['name']}, uid {each['uid']}"
        show(f"  {each['phase']:7} {what}: {each['state']}, by {each['proof']['request']}")


async def add_finalizer(demo: Machine) -> None:
    """Add a finalizer, as another controller does that has to clean up after an object."""
    config = load_config(kubeconfig=demo.env["KUBECONFIG"])
    async with Client.connect(config, name="billing") as client:
        key = ObjectKey("default", "assistant")
        patch = [{"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER}]
        await client.patch(ENDPOINTS, key, json_patch(patch))
    show(f"  metadata.finalizers: + {FINALIZER}")


async def redeploy_under_load(demo: Machine) -> None:
    async with Load(f"{demo.url}/v1/chat/completions", "assistant", clients=CLIENTS, pause=PAUSE_SECONDS) as load:
        await load.more(CLIENTS)
        await asyncio.to_thread(demo.run, f"pilotage redeploy assistant --model file://{demo.folder}/v2.gguf")
        await load.more(CLIENTS)
    show(f"  {load.asked} requests, {load.streamed} of them streams: {len(load.failures)} failed")
    for failure in load.failures[:5]:
        show(f"  {failure}")
    if load.failures:
        raise SystemExit("requests failed during the redeploy")


async def canary_under_load(demo: Machine) -> None:
    """Roll out what is bad: its verdict ends the rollout, and nobody meets it again."""
    spec = f"""\
  model: {{source: "file://{demo.folder}/v3.gguf"}}
  placement: {{kind: Host, host: local}}
  route: {{kind: PilotageGateway}}
{CANARY}"""
    path = demo.folder / "canary.yaml"
    head = "apiVersion: pilotage.dev/v1alpha1\nkind: ServingEndpoint\nmetadata: {name: assistant}\nspec:\n"
    path.write_text(head + spec, encoding="utf-8")
    for line in CANARY.splitlines():
        show(line)
    async with Load(f"{demo.url}/v1/chat/completions", "assistant", clients=CLIENTS, pause=PAUSE_SECONDS) as load:
        await asyncio.to_thread(demo.run, f"pilotage redeploy -f {path}", expected=(1,))
        await asyncio.to_thread(demo.run, "pilotage verdict assistant", expected=(1,))
        failed = len(load.failures)
        await load.more(CLIENTS)
    show(f"  {failed} requests failed before it was out, {len(load.failures) - failed} since.")
    if len(load.failures) > failed:
        raise SystemExit(f"requests failed after the rollout was aborted: {load.failures[failed]}")


async def check_objects(demo: Machine) -> None:
    """Ask the API, while it is still there, whether an endpoint or a part of one was left behind."""
    mark = f"{LABEL_MANAGED_BY}={MANAGED_BY}"
    async with Client.connect(load_config(kubeconfig=demo.env["KUBECONFIG"]), name="demo") as client:
        lists = [(kind, await client.list(kind)) for kind in (ENDPOINTS, MODELS)]
        lists += [(kind, await client.list(kind, labels=mark)) for kind in PARTS]
    left = [f"{kind.kind} {each.key}" for kind, found in lists for each in found.items]
    if left:
        raise SystemExit(f"objects were left behind: {', '.join(left)}")


def end(demo: Machine) -> None:
    """Take everything down, and show that nothing is left."""
    tell("Everything goes down.")
    demo.run("pilotage down --purge")
    left = processes(str(demo.folder))
    with socket.socket() as probe:
        listens = probe.connect_ex(("127.0.0.1", demo.port)) == 0
    tell(f"Left: {len(left)} processes, {int(listens)} ports, {int(demo.data.exists())} folders.")
    if left or listens or demo.data.exists():
        raise SystemExit(f"something was left behind: {left}")


def processes(text: str) -> list[str]:
    """The command lines of the processes of this machine that name a path, or whose environment says they are its."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile, or belongs to another user
            words = " ".join(process.cmdline())
            if text in words or text in process.environ().get("PILOTAGE_UP", ""):
                found.append(f"{process.pid} {words}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave it up, with one endpoint, to play with")
    keep = parser.parse_args().keep
    folder = Path(tempfile.mkdtemp(prefix="pilotage-demo-"))
    demo = Machine(folder, show)
    try:
        story(demo)
        if keep:
            demo.run(f"pilotage deploy assistant --model file://{folder}/v1.gguf --on local --route PilotageGateway")
            tell(f"It stays up. Take it down with: pilotage down --purge --data {demo.data}; rm -r {folder}")
            return
        asyncio.run(check_objects(demo))
    except BaseException as error:
        subprocess.run([sys.executable, "-m", "pilotage", "down", "--now", "--data", str(demo.data)], check=False)
        if isinstance(error, UnexpectedEnd):
            raise SystemExit(str(error)) from error
        raise
    end(demo)
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()
    tell("Nothing is left.")


if __name__ == "__main__":
    main()
