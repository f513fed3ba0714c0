"""Plays cases on one system: prepare the state, inflict the fault, wait for recovery, and see that all still works."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

from demo.machine import UnexpectedEnd
from faults.acts import FREEZE_SECONDS, inflict
from faults.cases import Fault, State
from faults.system import NotRecovered, made, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from faults.cases import Case
    from faults.system import System

RECOVERY_SECONDS = 120.0
"""A case that takes longer has failed."""


class Outcome(NamedTuple):
    """Result of one case: the duration of recovery, and the problem if there is one."""

    case: Case
    seconds: float
    problem: str = ""

    def __str__(self) -> str:
        head = "FAILED" if self.problem else "ok"
        return f"{head:6}  {self.seconds:6.1f} s  {self.case}{': ' * bool(self.problem)}{self.problem}"


def play(
    cases: Sequence[Case], show: Callable[[str], None], *, freeze_seconds: float = FREEZE_SECONDS
) -> Iterator[Outcome]:
    """The outcome of each case, on one machine that is taken down, with proof, before the last is reported."""
    with made(show, disk=any(case.fault is Fault.DISK for case in cases)) as system:
        system.up()
        outcomes = [_outcome(system, case, show, freeze_seconds) for case in cases]
        try:
            system.down()
        except UnexpectedEnd as error:
            last = outcomes[-1]
            outcomes[-1] = last._replace(problem=f"{last.problem} {' '.join(str(error).split())}".strip())
        yield from outcomes


def _outcome(system: System, case: Case, show: Callable[[str], None], freeze_seconds: float) -> Outcome:
    show(f"--- {case}")
    began = time.monotonic()
    try:
        return Outcome(case, _play(system, case, freeze_seconds))
    except (NotRecovered, UnexpectedEnd) as error:
        first, *rest = str(error).strip().splitlines()
        return Outcome(case, time.monotonic() - began, " … ".join([first, *rest[-1:]]))
    finally:
        with contextlib.suppress(UnexpectedEnd):  # the next case begins with a machine that serves nothing
            if not system.is_gone(case.state.value):
                system.delete(case.state.value)


def _play(system: System, case: Case, freeze_seconds: float) -> float:
    """Seconds from the end of the fault until the endpoint served, or was gone, and all components ran."""
    name = case.state.value
    if system.process("supervisor") is None:  # only a person starts it again
        system.up()
    if case.state is State.DEPLOYING:
        system.deploy(name, "--no-wait")
        if case.part == "llama-server":
            wait(lambda: system.process(case.part) is not None, "a server starts", RECOVERY_SECONDS)
    else:
        system.deploy(name)
        wait(lambda: system.serves(name), f"{name} serves", RECOVERY_SECONDS)
    if case.state is State.DELETING:
        system.ask_to_delete(name)
    inflict(system, case, freeze_seconds)
    began = time.monotonic()
    if case.state is State.DELETING:
        wait(lambda: system.is_gone(name), f"{name} is gone", RECOVERY_SECONDS)
    else:
        wait(lambda: system.serves(name), f"{name} serves", RECOVERY_SECONDS)
    wait(system.is_whole, "the API server answers and all parts run", RECOVERY_SECONDS)
    seconds = time.monotonic() - began
    system.deploy("fresh")
    wait(lambda: system.serves("fresh"), "what was deployed afterwards serves", RECOVERY_SECONDS)
    system.delete("fresh")
    return seconds
