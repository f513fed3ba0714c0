"""Starts the measured processes. Each ends when its stdin is closed, and so with this process too, whatever ends it."""

import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import steadiness
from bench.peers import Job
from bench.progress import say

ROOT = Path(__file__).parent.parent
RUN_SECONDS_MAX = 600
STOP_SECONDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a task to a client: the median of all rounds."""

    cpu_seconds: float
    rss_bytes: float
    peak_bytes: float


def measure(clients: Sequence[str], task: str, job: Job, *, rounds: int) -> dict[str, Cost]:
    """Measure the cost of a task for each client: the median of some rounds, in which the clients take turns."""
    runs: dict[str, list[Mapping[str, float]]] = {client: [] for client in clients}
    for number in range(1, rounds + 1):
        for client in clients:
            say(f"{task}, {job.describe()}: {client}, round {number} of {rounds}")
            steadiness.sample()
            runs[client].append(_run(client, task, job))
    return {client: _cost(each) for client, each in runs.items()}


def _cost(runs: Sequence[Mapping[str, float]]) -> Cost:
    median = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return Cost(**median)


def _run(client: str, task: str, job: Job) -> Mapping[str, float]:
    """One run in a process of its own. One that fails is an error here."""
    with _python("bench.peers", client, task, json.dumps(asdict(job)), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.wait(RUN_SECONDS_MAX):
            raise RuntimeError(f"the measurement of {task} with {client} failed")
        figures: dict[str, float] = json.load(process.stdout)
    return figures


def operator(
    module: str, *args: str, checkout: Path | None = None
) -> contextlib.AbstractContextManager["subprocess.Popen[bytes]"]:
    """An operator of `bench.operators`, running until the end of the context; of another checkout if one is named."""
    return _python(f"bench.operators.{module}", *args, stdout=None, checkout=checkout)


@contextlib.contextmanager
def _python(
    module: str, *args: str, stdout: int | None, checkout: Path | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    python = sys.executable if checkout is None else str(checkout / ".venv" / "bin" / "python")
    process = subprocess.Popen(
        [python, "-m", module, *args], cwd=checkout or ROOT, stdin=subprocess.PIPE, stdout=stdout
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
