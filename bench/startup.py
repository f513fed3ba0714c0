"""How long it takes to start: the command, and the import of the client, beside a bare interpreter and the others."""

import os
import subprocess
import sys
import time

from bench.figures import PILOTAGE, Goal, Section
from bench.progress import say
from bench.run import Run

BARE = "python -c pass"
PROGRAMS = {
    BARE: ("-c", "pass"),
    "pilotage --help": ("-c", "from pilotage.cli import main; main()", "--help"),
    "pilotage.kube": ("-c", "import pilotage.kube"),
    "kubernetes": ("-c", "import kubernetes.client, kubernetes.config"),
    "kubernetes_asyncio": ("-c", "import kubernetes_asyncio.client, kubernetes_asyncio.config"),
    "lightkube": ("-c", "import lightkube"),
    "kopf": ("-c", "import kopf"),
}
TRIES = 5
HELP_MILLISECONDS_MAX = 150.0
IMPORT_MILLISECONDS_MAX = 120.0


def run(run: Run) -> Section:
    """The best of several starts in turn, so that a busy moment of the machine counts for none."""
    best = dict.fromkeys(PROGRAMS, float("inf"))
    for turn in range(TRIES * run.size.repeat):
        if turn % TRIES == 0:
            say(f"startup: round {turn // TRIES + 1} of {run.size.repeat}")
        for name, args in PROGRAMS.items():
            best[name] = min(best[name], _milliseconds(args))
    bare = best.pop(BARE)
    help_ = {PILOTAGE: best.pop("pilotage --help")}
    imports = {PILOTAGE: best.pop("pilotage.kube"), **best}
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
    subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    return (time.perf_counter() - started) * 1e3
