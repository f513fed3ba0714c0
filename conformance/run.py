"""Runs the binary of Kubernetes's specs, and tells how far it is."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.results import Result, read_names, read_results
from conformance.specs import focus, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from controlplane.build import Say

REPORT = "junit_01.xml"
_DONE = re.compile(r"^• (\[FAILED\] )?\[(\d+\.\d+) seconds\]")

FLAGS = (
    "--provider=skeleton",
    "--disable-log-dump",
    "--allowed-not-ready-nodes=1",
    "--num-nodes=1",
    "--ginkgo.no-color",
    "--ginkgo.v",
)


class NoReport(Exception):
    """The run ended before it could say what came of the specs."""


def list_specs(binary: Path) -> list[str]:
    """The full names of all specs that there are; none of them is run."""
    with tempfile.TemporaryDirectory(prefix="pilotage-conformance-") as folder:
        subprocess.run(
            [binary, "--ginkgo.dry-run", f"--report-dir={folder}", *FLAGS[:1]],
            cwd=folder,
            env=_env(Path(folder)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        report = Path(folder) / REPORT
        if not report.is_file():
            raise NoReport(f"{binary} cannot list its specs")
        return read_names(report)


def run(
    binary: Path, kubeconfig: Path, specs: Sequence[str], log: Path, say: Say, *, seconds_max: int
) -> dict[str, Result]:
    """Run the specs one after the other; everything that they print goes to `log`. Raises `NoReport`."""
    with tempfile.TemporaryDirectory(prefix="pilotage-conformance-") as folder, log.open("w") as output:
        command = [
            str(binary),
            *FLAGS,
            f"--kubeconfig={kubeconfig}",
            f"--report-dir={folder}",
            f"--ginkgo.timeout={seconds_max}s",
            f"--ginkgo.focus={focus(specs)}",
        ]
        with subprocess.Popen(
            command,
            cwd=folder,
            env=_env(Path(folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            try:
                follow(process.stdout, specs, output.write, say)
            except BaseException:
                process.kill()
                raise
        report = Path(folder) / REPORT
        if not report.is_file():
            raise NoReport(f"the specs ended with exit code {process.returncode} and without a report; see {log}")
        results = read_results(report)
        return {
            name: results.get(name) or Result(name, passed=False, seconds=0, failure="It was not run.")
            for name in specs
        }


def follow(lines: Iterable[str], specs: Sequence[str], write: Callable[[str], object], say: Say) -> None:
    """Pass the output on, line by line, and say of each spec that it has ended."""
    current, done = "", 0
    for line in lines:
        write(line)
        # A spec begins with its name, and its labels after that.
        if begun := next((name for name in specs if line.startswith(name)), ""):
            current = short(begun)
        elif ended := _DONE.match(line):
            done += 1
            verdict = "fails after" if ended[1] else "passes in"
            say(f"{done} of {len(specs)}  {current}: {verdict} {float(ended[2]):.1f} s")


def _env(home: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(home)}
