"""`pilotage tree` and `why` in a namespace of thousands of objects, beside bare lists of it and kube-lineage."""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import field as others
from bench import steadiness
from bench.progress import say
from bench.teardown.bundles import GROWN, MADE, create, names, wait_until_ready
from bench.teardown.contestants import PILOTAGE, Task
from bench.teardown.table import columns, cpu_seconds, number, ratio
from controlplane import Cluster
from pilotage.kube import Client, load_config

ROUNDS = 5
NAMESPACE = "bench-look"
USER = "bench-look"
LISTS = "bare lists"


@dataclass(frozen=True, slots=True)
class Question:
    """One question, in the middle of some rounds."""

    who: str
    seconds: float
    cpu_seconds: float
    requests: float


@dataclass(slots=True)
class Outcome:
    """Result, as text or as data."""

    objects: int
    questions: list[Question]
    notes: list[str]

    def as_data(self) -> dict[str, Any]:
        """Result for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        title = f"Questions about one Deployment in a namespace of {self.objects:,} objects"
        base = next((each.seconds for each in self.questions if each.who == LISTS), None)
        rows = [["", "", "seconds", f"× {LISTS}", "CPU s", "requests"]]
        rows += [
            [
                "",
                each.who,
                number(each.seconds),
                ratio(each.seconds, base),
                number(each.cpu_seconds),
                f"{each.requests:.0f}",
            ]
            for each in self.questions
        ]
        about = f"medians of {ROUNDS} rounds; everybody is a process, measured from its start to its end"
        return "\n".join([title, "=" * len(title), *columns(rows), about, *self.notes])


def run(cluster: Cluster, objects: int) -> Outcome:
    """All of them in turn, round by round."""
    endpoints = objects // (len(MADE) + len(GROWN))
    say(f"look: making {endpoints:,} endpoints")
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    cluster.wait_for_service_account(NAMESPACE)
    asyncio.run(_make(cluster, endpoints))
    folder = cluster.folder / NAMESPACE
    folder.mkdir()
    task = Task(cluster.user(USER, ("system:masters",)), NAMESPACE, endpoints, folder)
    target = f"deployment/{names(endpoints)[endpoints // 2]}"
    outcome = Outcome(objects, [], [])
    for who, ask in _askers(task, target, outcome.notes).items():
        outcome.questions.append(_measure(cluster, who, ask))
        if who == LISTS:
            size, seconds = json.loads(ask())
            outcome.notes.append(f"{LISTS}: {size / 1e6:.1f} MB in {seconds:.2f} s, without the start of Python")
    return outcome


def _askers(task: Task, target: str, notes: list[str]) -> dict[str, Callable[[], str]]:
    askers: dict[str, Callable[[], str]] = {
        LISTS: lambda: task.run(sys.executable, "-m", "bench.teardown.lists", task.namespace)
    }
    for command in ("tree", "why"):
        if subprocess.run([*PILOTAGE, command, "--help"], capture_output=True, check=False).returncode:
            notes.append(f"pilotage has no command {command} here")
        else:
            askers[f"pilotage {command}"] = lambda command=command: task.run(  # type: ignore[misc]
                *PILOTAGE, command, target, "-n", task.namespace
            )
    try:
        lineage: Path = others.tool("kube-lineage", say)
        askers["kube-lineage"] = lambda: task.run(lineage, *target.split("/"), "-n", task.namespace)
    except others.FieldError as error:
        notes.append(f"kube-lineage was left out: {error}")
    return askers


def _measure(cluster: Cluster, who: str, ask: Callable[[], str]) -> Question:
    seconds: list[float] = []
    ask()  # the first one reads discovery, which most of them keep
    mark = cluster.audit_mark()
    cpu: list[float] = []
    for _ in range(ROUNDS):
        steadiness.sample()
        used, started = cpu_seconds(), time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - started)
        cpu.append(cpu_seconds() - used)
    requests = len(cluster.audit(since=mark, user=USER)) / ROUNDS
    say(f"look: {who}: {', '.join(f'{each:.2f}' for each in seconds)} s, {requests:.0f} requests")
    return Question(who, statistics.median(seconds), statistics.median(cpu), requests)


async def _make(cluster: Cluster, endpoints: int) -> None:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench") as client:
        await create(client, NAMESPACE, endpoints, NAMESPACE)
        await wait_until_ready(client, NAMESPACE, endpoints)
