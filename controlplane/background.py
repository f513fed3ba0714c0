"""The build beside a test run, so that tests which need no cluster run meanwhile."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from controlplane.access import POLL_SECONDS
from controlplane.assets import NoControlPlane
from controlplane.processes import Supervisor, tail

REPOSITORY = Path(__file__).parent.parent


class BackgroundBuild:
    """`python -m controlplane build`, or another module, as a process that ends with this one. Close it in any case."""

    def __init__(self, what: str = "control plane", command: Sequence[str] = ("controlplane", "build")) -> None:
        self._what = what
        self._start = time.monotonic()
        self._supervisor = Supervisor()
        self._supervisor.start("build", [sys.executable, "-m", *command], env=os.environ, cwd=REPOSITORY)

    def wait(self, say: Callable[[str], None]) -> None:
        """Pass on what the build says until it is done. Raises `NoControlPlane`, with the end of its log."""
        if self._supervisor.is_running("build"):
            say(f"{self._what}: its build began {time.monotonic() - self._start:.0f} s ago; the rest waits for it")
        with self._supervisor.log("build").open() as lines:
            running = True
            while running:
                running = self._supervisor.is_running("build")  # asked first, so that the last lines are not missed
                for line in lines:
                    say(line.rstrip())
                time.sleep(POLL_SECONDS)
        if self._supervisor.exit_code("build"):
            raise NoControlPlane(f"the build of the {self._what} failed:\n{tail(self._supervisor.log('build'))}")

    def close(self) -> None:
        """End the build, if it still runs; what it has built so far stays."""
        self._supervisor.close()
