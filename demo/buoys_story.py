"""Start an API server, run the controller of `demo.buoys` on it, and tell what happens."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane import Cluster, NoControlPlane, assets, build
from demo.buoys import BUOYS, CONFIGMAPS, CRD, CRDS, FINALIZER, buoys, light_of
from pilotage.kube import Absent, Client, KindNotServed, Object, ObjectKey, Propagation, load_config, merge_patch
from pilotage.runtime.conditions import find_condition
from pilotage.runtime.logs import configure_logging
from pilotage.runtime.manager import Manager

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

NORTH, SOUTH = ObjectKey("default", "north"), ObjectKey("default", "south")
STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - STARTED:6.2f} s  {text}", flush=True)


async def until(read: Callable[[], Awaitable[Object | None]], done: Callable[[Object | None], bool]) -> Object | None:
    """Read until the state is there, for at most 30 s."""
    async with asyncio.timeout(30):
        while not done(seen := await read()):
            await asyncio.sleep(0.02)
    return seen


async def story(client: Client) -> None:
    """Play the actions of a user, and print what the controller does about each."""

    async def buoy(key: ObjectKey) -> Object | None:
        try:
            return await client.get(BUOYS, key)
        except Absent:
            return None

    def is_lit(colour: str) -> Callable[[Object | None], bool]:
        return lambda obj: obj is not None and obj.get("status", "colour") == colour

    await client.create(BUOYS, {"metadata": {"namespace": "default", "name": "north"}, "spec": {"colour": "red"}})
    say("you create buoy/north, red")
    lit = await until(lambda: buoy(NORTH), is_lit("red"))
    assert lit is not None
    light = await client.get(CONFIGMAPS, light_of(NORTH))
    say(f"  it is lit: configmap/{light.meta.name} (uid {light.meta.uid[:8]}…), held by finalizer {FINALIZER}")

    await client.patch(BUOYS, NORTH, merge_patch({"spec": {"colour": "green"}}))
    say("you change it to green")
    await until(lambda: buoy(NORTH), is_lit("green"))
    say("  it is green")

    await client.create(BUOYS, {"metadata": {"namespace": "default", "name": "south"}, "spec": {"colour": "blue"}})
    say("you create buoy/south, blue: a colour that no buoy has")
    stalled = await until(lambda: buoy(SOUTH), lambda obj: obj is not None and bool(obj.get("status", "conditions")))
    assert stalled is not None
    condition = find_condition(stalled.get("status", "conditions"), "Stalled") or {}
    say(
        f"  it is Stalled ({condition.get('reason')}): {condition.get('message')}. It is not retried, and costs nothing"
    )
    await client.patch(BUOYS, SOUTH, merge_patch({"spec": {"colour": "white"}}))
    say("you change it to white")
    await until(lambda: buoy(SOUTH), is_lit("white"))
    say("  it is lit at once")

    for key in (NORTH, SOUTH):
        found = await client.get(BUOYS, key)
        await client.delete(BUOYS, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
    say("you delete both")
    for key in (NORTH, SOUTH):
        await until(functools.partial(buoy, key), lambda obj: obj is None)
        try:
            await client.get(CONFIGMAPS, light_of(key))
        except Absent:
            say(f"  buoy/{key.name} is gone, and its light went before it")
        else:
            raise SystemExit(f"configmap/{light_of(key).name} was left behind")


async def install(client: Client) -> None:
    await client.create(CRDS, CRD)
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(BUOYS)
            except KindNotServed:
                await asyncio.sleep(0.05)
            else:
                return


async def run(kubeconfig: Path) -> None:
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        await install(client)
        manager = Manager(client, name="demo")
        manager.add("buoys", manager.informer(BUOYS), buoys, workers=2)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(manager.run())
            await manager.started.wait()
            say("the controller runs")
            await story(client)
            manager.stop()
    requests = {
        sample.labels["method"]: sample.value
        for metric in manager.metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "rest_client_request_duration_seconds_count"
    }
    say("the controller sent " + ", ".join(f"{count:.0f} {method}" for method, count in sorted(requests.items())))


@contextlib.contextmanager
def harbor() -> Iterator[Path]:
    """The embedded API server, in a process and a folder of its own; gives its kubeconfig."""
    with tempfile.TemporaryDirectory(prefix="pilotage-demo-") as folder:
        command = [sys.executable, "-m", "pilotage", "harbor", "--data", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit("harbor did not start")
            say("harbor is ready: the embedded API server, no cluster")
            yield Path(folder, "kubeconfig")
        finally:
            process.terminate()
            process.communicate()


@contextlib.contextmanager
def kubernetes() -> Iterator[Path]:
    """A real API server, built first if need be; gives its kubeconfig."""
    try:
        if assets.missing(os.environ):
            say("the control plane is built first: that is done once, and takes about ten minutes")
            build.build(os.environ, say)
    except NoControlPlane as error:
        sys.exit(f"error: {error}")
    say("a real etcd and kube-apiserver start")
    with Cluster(components=()) as cluster:
        say("they are ready")
        yield cluster.kubeconfig


def main() -> None:
    configure_logging(level="error", json=False)
    parser = argparse.ArgumentParser(prog="python -m demo.buoys_story", description=__doc__)
    servers = {"harbor": harbor, "kubernetes": kubernetes}
    parser.add_argument("--on", choices=servers, default="harbor", help="the API server to use (default: harbor)")
    with servers[parser.parse_args().on]() as kubeconfig:
        asyncio.run(run(kubeconfig))
    say("everything is stopped, nothing is left")


if __name__ == "__main__":
    main()
