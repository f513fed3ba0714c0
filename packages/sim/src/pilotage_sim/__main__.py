"""``python -m pilotage_sim``: explore a scenario, replay one plan, or say how fast that is."""

from __future__ import annotations

import importlib
import sys

import click

from pilotage_sim.bench import PLANS, rates
from pilotage_sim.explore import explore, run_plan
from pilotage_sim.plan import parse_plan
from pilotage_sim.scenario import Scenario
from pilotage_sim.scenarios import SCENARIOS


def find_scenario(name: str) -> type[Scenario]:
    """One of ours by its short name, or any other as ``module:Class``."""
    if name in SCENARIOS:
        return SCENARIOS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise click.BadParameter(f"{name} is none of {', '.join(SCENARIOS)}, and not of the form module:Class")
    sys.path.insert(0, "")  # scenarios of tests are found from where one stands
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise click.BadParameter(f"{name} cannot be imported: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Scenario)):
        raise click.BadParameter(f"{name} is no scenario")
    return found


@click.group()
def main() -> None:
    """Controllers under faults, in virtual time."""


@main.command("replay")
@click.argument("scenario")
@click.option("--seed", default=0, show_default=True)
@click.option("--plan", default="", help="Faults, such as 'crash-before-write:3,fail-call:7:conflict'.")
def replay(scenario: str, seed: int, plan: str) -> None:
    """Play one plan, and print its trace and what is wrong at the end."""
    try:
        faults = parse_plan(plan)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--plan") from None
    found = find_scenario(scenario)
    baseline = run_plan(found, seed=seed) if found.same_end else None
    outcome = run_plan(found, faults, seed=seed, baseline=baseline)
    click.echo(outcome.trace)
    click.echo(str(outcome))
    sys.exit(1 if outcome.problems else 0)


@main.command("explore")
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--pairs", is_flag=True, help="Two faults at a time, not one.")
@click.option("--plans", type=int, help="Play at most so many, drawn with the seed.")
def explore_command(scenarios: tuple[str, ...], seed: int, pairs: bool, plans: int | None) -> None:
    """Play all plans of each scenario, say how many they were, and print the shortest one that fails."""
    failed = False
    for scenario in [find_scenario(each) for each in scenarios]:  # all names are looked at before the first is played
        report = explore(scenario, seed=seed, with_pairs=pairs, plans_max=plans)
        click.echo(str(report))
        failed = failed or bool(report.failures)
    sys.exit(1 if failed else 0)


@main.command("bench")
@click.option("--plans", default=PLANS, show_default=True)
def bench(plans: int) -> None:
    """Print how many plans are played per second."""
    for rate in rates(plans):
        click.echo(f"{rate.scenario:<12} {rate.per_second:6.1f} plans/s  ({rate.plans} pairs of faults)")


if __name__ == "__main__":
    main()
