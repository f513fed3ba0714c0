"""Starts the measured processes. Each ends when its stdin is closed, and so with this process too, whatever ends it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.peers import Job

ROOT = Path(__file__).parent.parent
STOP_SECONDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a client cost it."""

    cpu_seconds: float
    rss_bytes: int
    peak_bytes: int


def measure(client: str, task: str, job: Job) -> Cost:
    """Run one task of one client in a process of its own. A run that fails is an error here."""
    with _python("bench.peers", client, task, json.dumps(asdict(job)), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        if process.wait():
            raise RuntimeError(f"the measurement of {task} with {client} failed")
    return Cost(**json.loads(output))


def operator(name: str, *args: str) -> contextlib.AbstractContextManager["subprocess.Popen[bytes]"]:
    """An operator, running until the end of the context."""
    return _python(f"bench.operators.{name}_operator", *args, stdout=None)


@contextlib.contextmanager
def _python(module: str, *args: str, stdout: int | None) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-m", module, *args], cwd=ROOT, stdin=subprocess.PIPE, stdout=stdout)
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
