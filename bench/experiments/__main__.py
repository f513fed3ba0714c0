"""`python -m bench.experiments`: play the scenarios for each product, and print what was found."""

import argparse
import asyncio
import itertools
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.experiments import argo, ours
from bench.experiments.subject import SCENARIOS, Column, NotStarted, Scenario, Subject
from bench.experiments.table import Round, tables
from bench.experiments.trial import Outcome, Trial
from bench.progress import say
from controlplane import Cluster, NoControlPlane, StartError
from field import FieldError
from pilotage.kube import NAMESPACES, Absent, Client, ObjectKey, Propagation, load_config

COLUMNS: Mapping[str, Column] = {**ours.COLUMNS, **argo.COLUMNS}
NUMBERS = itertools.count(1)
"""Numbers of the namespaces."""
ATTEMPTS = 5
"""Attempts at a trial whose experiment does not start."""


def main() -> None:
    """The command."""
    args = _parse()
    columns = {name: COLUMNS[name] for name in args.only or COLUMNS}
    scenarios = {name: SCENARIOS[name] for name in args.scenarios or SCENARIOS}
    say("starting the control plane")
    with Cluster() as cluster:
        version = cluster.request("GET", "/version")["gitVersion"]
        found = asyncio.run(_run(cluster, columns, scenarios, args))
    print(f"{os.cpu_count()} cores, {platform.machine()}; kube-apiserver {version}")
    print(f"rounds: {args.rounds}; the feed of one proxy is held for {args.held:g} s\n")
    print(tables(columns, scenarios, found))


async def _run(
    cluster: Cluster, columns: Mapping[str, Column], scenarios: Mapping[str, Scenario], args: argparse.Namespace
) -> dict[tuple[str, str], list[Round]]:
    found: dict[tuple[str, str], list[Round]] = {}
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="bench") as client:
        for name, column in columns.items():
            async with column.stage(cluster, client) as stage:
                with column.controller(stage):
                    for each, scenario in scenarios.items():
                        if each in column.lacks:
                            continue
                        say(f"{column.title}: {scenario.title}")
                        found[each, name] = [
                            await _round(partial(column.subject, stage), scenario, args) for _ in range(args.rounds)
                        ]
    return found


async def _round(make: Callable[[str], Subject], scenario: Scenario, args: argparse.Namespace) -> Round:
    """One trial that came to its end; those before it whose experiment did not start are counted."""
    for attempt in range(ATTEMPTS):
        try:
            return Round(await _trial(make(f"trial-{next(NUMBERS)}"), scenario, args), attempt)
        except NotStarted as error:
            say(str(error))
    raise FieldError(f"none of {ATTEMPTS} experiments started")


async def _trial(subject: Subject, scenario: Scenario, args: argparse.Namespace) -> Outcome:
    cluster, namespace = subject.stage.cluster, subject.namespace
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    cluster.wait_for_service_account(namespace)
    try:
        outcome = await Trial(subject, scenario, args.held, in_mid_shift=args.mid_shift).play()
    finally:
        await subject.close()
        await _remove(subject.client, namespace)
    say(f"{namespace}: {outcome}")
    return outcome


async def _remove(client: Client, namespace: str) -> None:
    """Delete the namespace, without waiting for it."""
    try:
        found = await client.get(NAMESPACES, ObjectKey("", namespace))
        await client.delete(NAMESPACES, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
    except Absent:
        pass


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.experiments",
        description="End experiments under load, and count failed requests. Progress goes to stderr.",
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"any of {', '.join(SCENARIOS)}; else all")
    parser.add_argument("--only", type=_words, default=[], metavar="COLUMNS", help=f"some of {','.join(COLUMNS)}")
    parser.add_argument("--rounds", type=int, default=3, help="trials of each (default: 3)")
    parser.add_argument("--held", type=float, default=2, help="seconds in which one proxy hears nothing (default: 2)")
    parser.add_argument(
        "--mid-shift", action="store_true", help="end it before the first proxy has heard that it begins (Contour)"
    )
    args = parser.parse_args()
    for given, known in ((args.scenarios, SCENARIOS), (args.only, COLUMNS)):
        if unknown := set(given) - set(known):
            parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return args


def _words(text: str) -> Sequence[str]:
    return text.split(",")


if __name__ == "__main__":
    try:
        main()
    except (FieldError, NoControlPlane, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
