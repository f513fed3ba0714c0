"""The two servers that are compared, each with controllers beside it that create and run pods."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from controlplane import Cluster
from controlplane.access import wait_for
from controlplane.processes import Supervisor, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

START_SECONDS_MAX = 30


class Running(NamedTuple):
    """A server that answers."""

    kubeconfig: Path
    """The administrator's way in."""
    keep_logs: Callable[[], Path]
    """Let the logs of its processes stay when it ends; gives their folder."""


class Failed(Exception):
    """A server did not start, or ended before it was told to."""


@contextlib.contextmanager
def kubernetes() -> Iterator[Running]:
    """A real control plane whose nodes and pods kwok plays."""
    with Cluster() as cluster:
        yield Running(cluster.kubeconfig, cluster.keep_logs)


@contextlib.contextmanager
def harbor() -> Iterator[Running]:
    """harbor, and beside it the simulator's controllers in real time."""
    with Supervisor() as supervisor:
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(supervisor.folder)}
        kubeconfig = supervisor.folder / "data" / "kubeconfig"

        def start(name: str, *args: str) -> None:
            supervisor.start(name, [sys.executable, "-m", *args], env=env)

        def keep_logs() -> Path:
            supervisor.keep_logs()
            return supervisor.logs

        def check() -> None:
            for name in started:
                if not supervisor.is_running(name):
                    keep_logs()
                    raise Failed(f"{name} has ended; {supervisor.log(name)} ends:\n{tail(supervisor.log(name))}")

        def announced() -> bool:
            check()
            return "kubeconfig: " in tail(supervisor.log("harbor"))

        started = ["harbor"]
        start("harbor", "pilotage", "harbor", "--data", str(kubeconfig.parent))
        wait_for("answer of harbor", announced, START_SECONDS_MAX)
        started.append("models")
        start("models", "pilotage_sim.models", "--kubeconfig", str(kubeconfig))
        yield Running(kubeconfig, keep_logs)
        check()


SERVERS: Mapping[str, Callable[[], AbstractContextManager[Running]]] = {"kubernetes": kubernetes, "harbor": harbor}
