"""Start-up time: the command, and the import of the client, beside a bare interpreter and the others."""

import statistics
import subprocess
import sys
import time

from bench import steadiness
from bench.figures import PILOTAGE, Goal, Section
from bench.progress import say
from bench.run import Run

BARE = "python -c pass"
PROGRAMS = {
    BARE: ("-c", "pass"),
    "pilotage --help": ("-c", "from pilotage.cli import main; main()", "--help"),
    "import pilotage.kube": ("-c", "import pilotage.kube"),
    "kubernetes": ("-c", "import kubernetes.client, kubernetes.config"),
    "kubernetes_asyncio": ("-c", "import kubernetes_asyncio.client, kubernetes_asyncio.config"),
    "lightkube": ("-c", "import lightkube"),
    "kopf": ("-c", "import kopf"),
}
TRIES = 5
HELP_MILLISECONDS_MAX = 150.0
IMPORT_MILLISECONDS_MAX = 120.0


def run(run: Run) -> Section:
    """The median of several starts, in turn."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for number in range(1, run.size.rounds + 1):
        say(f"startup: round {number} of {run.size.rounds}")
        for _ in range(TRIES):
            steadiness.sample()
            for name, args in PROGRAMS.items():
                times[name].append(_milliseconds(args))
    median = {name: statistics.median(each) for name, each in times.items()}
    bare = median.pop(BARE)
    help_ = {PILOTAGE: median.pop("pilotage --help")}
    imports = {PILOTAGE: median.pop("import pilotage.kube"), **median}
    section = Section("startup", "Start: from nothing to the end of the process")
    section.notes.append(f"{BARE} takes {bare:.1f} ms")
    for what, values in (("pilotage --help", help_), ("import of the client", imports)):
        section.add(what, "ms", values)
        section.add(f"{what}, in times {BARE}", "", {name: value / bare for name, value in values.items()})
    section.goals.append(Goal("pilotage --help", help_[PILOTAGE], HELP_MILLISECONDS_MAX, "ms"))
    section.goals.append(Goal("import pilotage.kube", imports[PILOTAGE], IMPORT_MILLISECONDS_MAX, "ms"))
    return section


def _milliseconds(args: tuple[str, ...]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1e3
