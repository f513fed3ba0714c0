"""Play a scenario under every fault there is, and under pairs of them; report the shortest plan that breaks it.

The plans come from a run without faults: it says how many calls, reads, writes and events each process has, and every
one of them is a place where something can go wrong. Each plan is played in a world of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from pilotage_sim.loop import DeadlockError, LivelockError, VirtualTimeLoop
from pilotage_sim.oracles import same_state
from pilotage_sim.plan import format_plan, pairs, single_faults
from pilotage_sim.process import ENDS_MAX, Process
from pilotage_sim.world import SimulatedWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pilotage.kube import Json
    from pilotage_sim.plan import CallCounts, Plan
    from pilotage_sim.scenario import Scenario

COLLECT_EVERY = 8


class RunResult(NamedTuple):
    """Result of one run."""

    scenario: type[Scenario]
    seed: int
    plan: Plan
    problems: list[str]
    counts: Mapping[str, CallCounts]
    state: Mapping[str, Json]
    trace: str

    def __str__(self) -> str:
        """The problems with the seed, the plan, and the commands to replay it, also as a test."""
        name = f"{self.scenario.__module__}:{self.scenario.__qualname__}"
        plan = format_plan(self.plan)
        replay = f"python -m pilotage_sim replay {name} --seed {self.seed} --plan '{plan}'"
        test = (
            f"    def test_{self.scenario.__name__.lower()}_seed_{self.seed}():\n"
            f"        outcome = run_plan({self.scenario.__name__}, parse_plan({plan!r}), seed={self.seed})\n"
            f"        assert outcome.problems == []"
        )
        problems = "\n".join(f"  - {problem}" for problem in self.problems) or "  nothing is wrong"
        return f"{name}, seed {self.seed}, plan {plan or '(no fault)'}:\n{problems}\nreplay: {replay}\ntest:\n{test}"


class Report(NamedTuple):
    """Result of an exploration. Of `possible` plans, `played` were played; `seconds` is CPU time."""

    baseline: RunResult
    possible: int
    played: int
    failures: list[RunResult]
    seconds: float

    def __str__(self) -> str:
        counts = "; ".join(f"{name}: {count}" for name, count in self.baseline.counts.items())
        sampled = f"{self.played} of {self.possible} plans" if self.played < self.possible else f"{self.played} plans"
        rate = self.played / self.seconds if self.seconds else 0.0
        head = (
            f"{self.baseline.scenario.__name__}: {sampled}, {rate:.0f} per second of CPU, {len(self.failures)} failed"
        )
        return "\n".join([head, f"without faults: {counts}", *map(str, self.failures)])


def run_plan(
    scenario: type[Scenario], plan: Plan = (), *, seed: int = 0, baseline: RunResult | None = None
) -> RunResult:
    """Play a scenario once. `baseline`: a run without faults, for scenarios that must end like it."""
    try:
        with _quiet_logs(), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            # Not `runner.run`: the handler that it sets for SIGINT costs a repr of the whole outcome.
            return runner.get_loop().run_until_complete(_play(scenario, plan, seed, baseline))
    except (DeadlockError, LivelockError) as error:
        return RunResult(scenario, seed, plan, [f"{type(error).__name__}: {error}"], {}, {}, "")


def explore(
    scenario: type[Scenario],
    *,
    seed: int = 0,
    with_pairs: bool = False,
    plans_max: int | None = None,
    failures_max: int = 1,
) -> Report:
    """Play every plan of one fault, or (`with_pairs`) of two; stop after so many failures, each shrunk.

    With more plans than `plans_max`, so many are drawn with the seed: always the same ones.
    """
    began = process_time()
    with _tidy_memory() as tidy:
        baseline = run_plan(scenario, seed=seed)
        if baseline.problems:
            return Report(baseline, 1, 1, [baseline], process_time() - began)
        faults = list(single_faults(baseline.counts, lies=scenario.lies))
        plans: list[Plan] = list(pairs(faults)) if with_pairs else [(fault,) for fault in faults]
        possible = len(plans)
        if plans_max is not None and possible > plans_max:
            plans = random.Random(seed).sample(plans, plans_max)  # noqa: S311 - which to play, no secrets
        failures: list[RunResult] = []
        played = 0
        for plan in plans:
            played += 1
            outcome = run_plan(scenario, plan, seed=seed, baseline=baseline)
            if outcome.problems:
                failures.append(shrink(outcome, baseline))
                if len(failures) == failures_max:
                    break
            tidy()
    return Report(baseline, possible, played, failures, process_time() - began)


def shrink(outcome: RunResult, baseline: RunResult | None = None) -> RunResult:
    """The same failure with as few faults as possible, each as small as possible."""
    smaller = True
    while smaller:
        smaller = False
        for plan in _smaller_plans(outcome.plan):
            again = run_plan(outcome.scenario, plan, seed=outcome.seed, baseline=baseline)
            if again.problems:
                outcome, smaller = again, True
                break
    return outcome


def _smaller_plans(plan: Plan) -> Iterator[Plan]:
    for index, fault in enumerate(plan):
        rest = plan[:index] + plan[index + 1 :]
        yield rest
        if fault.detail.isdigit() and int(fault.detail) > 1:
            yield (*plan[:index], fault._replace(detail=str(int(fault.detail) - 1)), *plan[index + 1 :])


async def _play(scenario: type[Scenario], plan: Plan, seed: int, baseline: RunResult | None) -> RunResult:
    async with SimulatedWorld(seed) as world:
        story = scenario(world)
        await story.prepare()
        story.running = {
            name: Process(world, main, name=name, plan=plan, lies=scenario.lies)
            for name, main in story.processes().items()
        }
        problems: list[str] = []
        for process in story.running.values():
            process.start()
        try:
            await story.play()
            world.check()
            problems += story.problems()
        except Exception as error:  # noqa: BLE001 - whatever went wrong, it is what this plan has brought about
            problems.append(f"{type(error).__name__}: {error}")
        state = world.snapshot()
        for process in story.running.values():
            problems += _bad_ends(process, scenario.ends)
            await process.stop()
        if scenario.same_end and baseline is not None:
            problems += same_state(baseline.state, state)
        counts = {name: process.injection.counts.of_story for name, process in story.running.items()}
        return RunResult(scenario, seed, plan, problems, counts, state, world.trace.text)


def _bad_ends(process: Process, allowed: tuple[type[BaseException], ...]) -> Iterable[str]:
    for end in process.ends:
        if not isinstance(end, allowed):
            yield f"the process {process.name} ended by itself: {end!r}"
    if len(process.ends) == ENDS_MAX:
        yield f"the process {process.name} ended {ENDS_MAX} times"


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Silence the logs of the programs under faults: a plan is played thousands of times."""
    before = structlog.get_config()
    disabled = logging.root.manager.disable
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        structlog.configure(**before)
        logging.disable(disabled)


@contextlib.contextmanager
def _tidy_memory() -> Iterator[Callable[[], None]]:
    """Look for garbage between runs only, and only among what the last runs have left: most of it is their worlds."""
    was_enabled, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    runs = 0

    def tidy() -> None:
        nonlocal runs
        runs += 1
        if runs % COLLECT_EVERY == 0:
            gc.collect()

    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield tidy
    finally:
        if not was_frozen:
            gc.unfreeze()
        if was_enabled:
            gc.enable()
