"""Every fault of one machine, in every state of an endpoint: ``python -m faults [WORD…]`` plays those with all words.

A line for each case with the seconds from the end of the fault to recovery, the longest last.
"""

from __future__ import annotations

import argparse
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from faults.cases import journeys
from faults.player import Outcome, play

if TYPE_CHECKING:
    from faults.cases import Case

LANES = 4
"""Systems side by side: most of the time one of them waits."""


def main() -> int:
    """Play, tell, and end with 1 if something did not recover."""
    options = argparse.ArgumentParser(prog="faults", description=__doc__)
    options.add_argument("words", nargs="*", help="only the cases whose names have all of these words")
    options.add_argument("--lanes", type=int, default=LANES, help="how many systems side by side [%(default)s]")
    options.add_argument("--log", type=Path, help="where all that is typed and said goes")
    given = options.parse_args()
    chosen = [[case for case in journey if all(word in str(case) for word in given.words)] for journey in journeys()]
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(given.lanes) as lanes, Log(given.log) as log:

        def run(number: int, cases: list[Case]) -> None:
            for outcome in _played(cases, log, number):
                outcomes.append(outcome)
                sys.stderr.write(f"{outcome}\n")

        for each in [lanes.submit(run, number, cases) for number, cases in enumerate(chosen) if cases]:
            each.result()
    outcomes.sort(key=lambda outcome: (bool(outcome.problem), outcome.seconds))
    for outcome in outcomes:
        sys.stdout.write(f"{outcome}\n")
    failed = sum(bool(outcome.problem) for outcome in outcomes)
    sys.stdout.write(f"{len(outcomes) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _played(cases: list[Case], log: Log, number: int) -> list[Outcome]:
    """The outcomes; those of a system that does not even come up are failures, too."""
    try:
        return list(play(cases, lambda line: log.write(f"{number:2} {line}")))
    except Exception as error:  # noqa: BLE001 - the others are played on
        return [Outcome(case, 0.0, f"not played: {error!r}") for case in cases]


class Log:
    """A file that several threads write to, line by line; nothing without a path."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("w", encoding="utf-8") if path is not None else None
        self._lock = threading.Lock()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, line: str) -> None:
        """One line."""
        if self._file is not None:
            with self._lock:
                self._file.write(f"{line}\n")
                self._file.flush()


if __name__ == "__main__":
    sys.exit(main())
