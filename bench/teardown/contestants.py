"""Contestants: one command each that takes the endpoints down, measured from its start to its end; and the floor."""

import asyncio
import compileall
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import field as others
import pilotage
from bench.peers.parallel import in_parallel
from bench.progress import say
from bench.teardown.bundles import (
    AUTOSCALERS,
    CONCURRENCY,
    CONFIG_MAPS,
    DEPLOYMENTS,
    GROWN,
    INGRESSES,
    LABEL,
    MADE,
    PODS,
    REPLICA_SETS,
    SERVICES,
    Made,
    create,
    left,
    write_manifests,
)
from controlplane import assets
from pilotage.kube import Absent, Client, Propagation, Resource, load_config

RUN_SECONDS_MAX = 3600
NAME = "bench"
POLL_SECONDS = 0.01
Kinds = tuple[Resource, ...]


class CommandFailed(Exception):
    """A contestant gave up; the message ends with what it said last."""


@dataclass(slots=True)
class Task:
    """Some endpoints in a namespace, to be made and taken down by one contestant."""

    kubeconfig: Path
    namespace: str
    endpoints: int
    folder: Path
    """Empty folder for whatever the contestant writes."""
    made: list[Made] = field(default_factory=list)

    @property
    def manifests(self) -> Path:
        """The folder with the manifests of all endpoints."""
        folder = self.folder / "manifests"
        return folder if folder.exists() else write_manifests(folder, self.endpoints, self.namespace)

    @property
    def receipt(self) -> Path:
        """Path of the receipt."""
        return self.folder / "receipt.json"

    def run(self, *command: str | Path, expected: tuple[int, ...] = (0,)) -> str:
        """Run a program with this task's kubeconfig, in a home of its own, and return what it printed.

        Raises with its last words where the exit code is not among those expected.
        """
        # One home for all tasks of a contestant: from the second one on, discovery is cached, as for every user.
        home = self.kubeconfig.parent / f"home-{self.kubeconfig.stem}"
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(home), "NO_COLOR": "1"}
        env["KUBECACHEDIR"] = str(home / "cache")
        done = subprocess.run(
            [str(word) for word in command],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        if done.returncode not in expected:
            last = "\n".join(done.stdout.splitlines()[-15:])
            raise CommandFailed(f"{Path(command[0]).name} {' '.join(map(str, command[1:]))} failed:\n{last}")
        return done.stdout


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to do it."""

    name: str
    delete: Callable[[Task], None]
    make: Callable[[Task], None]
    get: Callable[[], object] = lambda: None
    """Build it, if it must be built: raises `FieldError` where that is not possible."""
    slow: bool = False
    """It takes about a second for an endpoint: only small numbers, unless more are asked for."""


def _create(task: Task) -> None:
    async def main() -> None:
        async with Client.connect(load_config(kubeconfig=str(task.kubeconfig)), name=NAME) as client:
            task.made = await create(client, task.namespace, task.endpoints, task.namespace)

    asyncio.run(main())


def _floor(task: Task) -> None:
    _bare(task, [(MADE, (*MADE, *GROWN))])


def _phase_by_phase(task: Task) -> None:
    """The floor with the order of a teardown: each phase for all endpoints at once, by who knows them all in advance.

    It is no lower bound: who orders each endpoint by itself does not wait for the slowest of a phase.
    """
    _bare(
        task,
        [
            ((INGRESSES,), (INGRESSES,)),
            ((AUTOSCALERS,), (AUTOSCALERS,)),
            ((DEPLOYMENTS,), (DEPLOYMENTS, REPLICA_SETS, PODS)),
            ((SERVICES, CONFIG_MAPS), (*MADE, *GROWN)),
        ],
    )


def _bare(task: Task, steps: Sequence[tuple[Kinds, Kinds]]) -> None:
    """Send the DELETEs of some kinds for each step, then list the metadata of some until none is left."""

    async def step(client: Client, kinds: Kinds, there: Kinds) -> None:
        doomed = [each for each in task.made if each.resource in kinds]

        async def delete(number: int) -> None:
            each = doomed[number]
            with contextlib.suppress(Absent):
                await client.delete(each.resource, each.key, uid=each.uid, propagation=Propagation.BACKGROUND)

        await in_parallel(delete, range(len(doomed)), min(CONCURRENCY, len(doomed)))
        while there:
            started = time.monotonic()
            there = tuple(await left(client, task.namespace, there))
            await asyncio.sleep(max(POLL_SECONDS, time.monotonic() - started) if there else 0)

    async def main() -> None:
        async with Client.connect(load_config(kubeconfig=str(task.kubeconfig)), name=NAME) as client:
            for kinds, there in steps:
                await step(client, kinds, there)

    asyncio.run(main())


def _pilotage_by_label(task: Task) -> None:
    task.run(
        *PILOTAGE, "delete", "-n", task.namespace, "-l", f"{LABEL}={task.namespace}", "--yes", "--receipt", task.receipt
    )


def _pilotage_by_files(task: Task) -> None:
    task.run(*PILOTAGE, "delete", "-n", task.namespace, "-f", task.manifests, "--yes", "--receipt", task.receipt)


def _kubectl(task: Task) -> None:
    kubectl = assets.require(os.environ, {"kubectl"})["kubectl"]
    task.run(kubectl, "delete", "-n", task.namespace, "--cascade=foreground", "--wait", "-f", task.manifests)


def _kapp_deploy(task: Task) -> None:
    task.run(_tool("kapp"), "deploy", "-n", task.namespace, "-a", NAME, "-f", task.manifests, "-y")


def _kapp_delete(task: Task) -> None:
    task.run(_tool("kapp"), "delete", "-n", task.namespace, "-a", NAME, "-y")


def _helm_install(task: Task) -> None:
    chart = task.folder / "chart"
    write_manifests(chart / "templates", task.endpoints, task.namespace)
    (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {NAME}\nversion: 1.0.0\n")
    task.run(_tool("helm"), "install", NAME, chart, "-n", task.namespace)


def _helm_uninstall(task: Task) -> None:
    task.run(_tool("helm"), "uninstall", NAME, "-n", task.namespace, "--wait", "--timeout", f"{RUN_SECONDS_MAX}s")


def _tool(name: str) -> Path:
    return others.tool(name, say)


def _pilotage_can_delete() -> None:
    # As it is installed anywhere: without this, changed modules would be compiled again on each start.
    compileall.compile_dir(Path(pilotage.__file__).parent, quiet=1)
    if subprocess.run([*PILOTAGE, "delete", "--help"], capture_output=True, check=False).returncode:
        raise others.FieldError("pilotage has no command delete here")


PILOTAGE = (str(Path(sys.executable).with_name("pilotage")),)
"""The command as it is installed and as people call it: `python -m` would take 10 ms more to find it."""

FLOOR = "floor"
KUBECTL = "kubectl"
CONTESTANTS = (
    Contestant(FLOOR, _floor, _create),
    Contestant("phase by phase", _phase_by_phase, _create),
    Contestant("pilotage", _pilotage_by_label, _create, _pilotage_can_delete),
    Contestant("pilotage -f", _pilotage_by_files, _create, _pilotage_can_delete),
    Contestant("kapp", _kapp_delete, _kapp_deploy, lambda: _tool("kapp")),
    Contestant(KUBECTL, _kubectl, _create, slow=True),
    Contestant("helm", _helm_uninstall, _helm_install, lambda: _tool("helm"), slow=True),
)
