"""`python -m bench.endpoints [N]`: measure, and print what was found."""

import argparse
import json
import os
import sys
from collections.abc import Callable

from bench import steadiness
from bench.endpoints.life import Life, live
from bench.figures import PILOTAGE, Section
from bench.lives import Phase
from bench.progress import say
from controlplane import Cluster, NoControlPlane, StartError
from pilotage.operator.crds import crds

ENDPOINTS = 1_000
OPERATORS = (PILOTAGE, "kopf")
FLAGS = {
    "etcd": ["--quota-backend-bytes=8589934592"],
    # With their defaults of 20 and 50 requests a second, they would be all that the clock shows.
    "kube-controller-manager": ["--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-gc-syncs=50"],
    "kube-scheduler": ["--kube-api-qps=1000", "--kube-api-burst=2000"],
}


def main() -> None:
    """The command."""
    args = _parse()
    say("starting the control plane")
    with Cluster(flags=FLAGS) as cluster:
        print(f"load at the start: {_load()}", flush=True)
        _install(cluster)
        lives = {name: live(cluster, name, args.endpoints) for name in args.only or OPERATORS}
    print(f"\n{_section(lives, args.endpoints)}\n\nsteadiness: {steadiness.verdict()}\nload at the end: {_load()}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.endpoints",
        description="Measure an operator's work on endpoints, on one real control plane with kwok, beside kopf.",
    )
    parser.add_argument(
        "endpoints", nargs="?", type=int, default=ENDPOINTS, metavar="N", help=f"how many (default: {ENDPOINTS:,})"
    )
    parser.add_argument("--only", action="append", choices=OPERATORS, help="one of them (default: both)")
    return parser.parse_args()


def _install(cluster: Cluster) -> None:
    """Our kinds, and the namespace that the operator would else make itself."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pilotage-system"}}
    everything = {"apiVersion": "v1", "kind": "List", "items": [*crds(), space]}
    cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(everything))
    cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{crd['metadata']['name']}" for crd in crds()))


def _section(lives: dict[str, Life], endpoints: int) -> Section:
    section = Section("endpoints", f"{endpoints:,} endpoints made ready and deleted; figures are for each of them")

    def add(measure: str, unit: str, value: Callable[[Life], float]) -> None:
        section.add(measure, unit, {name: value(life) for name, life in lives.items()})

    def each(measure: str, unit: str, value: Callable[[Phase], float]) -> None:
        add(f"{measure}: create until ready", unit, lambda life: value(life.create) / endpoints)
        add(f"{measure}: delete", unit, lambda life: value(life.delete) / endpoints)
        add(f"{measure}: both", unit, lambda life: value(life.total) / endpoints)

    each("CPU", "ms", lambda phase: phase.cpu_seconds * 1e3)
    each("API reads", "", lambda phase: phase.reads)
    each("API writes", "", lambda phase: phase.writes)
    add("of these, Events", "", lambda life: life.events / endpoints)
    add("time until all were ready", "s", lambda life: life.create.wall_seconds)
    add("time until all were gone", "s", lambda life: life.delete.wall_seconds)
    add("RSS with all endpoints", "MiB", lambda life: life.rss_bytes / 2**20)
    return section


def _load() -> str:
    return ", ".join(f"{each:.1f}" for each in os.getloadavg()) + " (1, 5 and 15 minutes)"


if __name__ == "__main__":
    try:
        main()
    except (NoControlPlane, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
