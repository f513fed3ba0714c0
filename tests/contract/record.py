"""Record the answers of the real server: `python -m tests.contract.record [part of an id]…`.

Without arguments everything is recorded again; with some, only the cases whose id contains one of them.
"""

# ruff: noqa: T201 (it speaks to whoever runs it)

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.contract.case import Case
from tests.contract.cases import CASES
from tests.contract.kit import UNLIKE, Step
from tests.contract.running import run
from tests.contract.server import harbor, kubernetes

FOLDER = Path(__file__).with_name("recorded")


def load() -> dict[str, list[Step]]:
    """Recorded transcripts, by case."""
    recorded: dict[str, list[Step]] = {}
    for file in sorted(FOLDER.glob("*.json")):
        recorded.update(json.loads(file.read_text()))
    return recorded


def save(transcripts: dict[str, list[Step]]) -> None:
    """Write one file for each theme, one line for each step."""
    themes: dict[str, list[str]] = {}
    for case_id in CASES:
        if case_id in transcripts:
            lines = ",\n".join(f"  {_line(step)}" for step in transcripts[case_id])
            themes.setdefault(CASES[case_id].theme, []).append(f"{json.dumps(case_id)}: [\n{lines}\n]")
    for file in FOLDER.glob("*.json"):
        if file.stem not in themes:
            file.unlink()
    for theme, cases in themes.items():
        (FOLDER / f"{theme}.json").write_text("{\n" + ",\n".join(cases) + "\n}\n")


def _line(step: Any) -> str:
    return json.dumps(step, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def problem(steps: list[Step]) -> str:
    """Why a transcript is none that could be compared with, or nothing."""
    if not steps:
        return "nothing was noted"
    if "broken" in steps[-1]:
        return str(steps[-1]["broken"])
    unlike = [step for step in steps if UNLIKE in _line(step)]
    return "\n".join(map(_line, unlike))


def selected(words: list[str]) -> list[Case]:
    """The cases whose ids contain one of the words, or all."""
    return [case for case in CASES.values() if not words or any(word in case.id for word in words)]


def main(arguments: list[str]) -> int:
    """Record, or with --print only show what a server says (--harbor: harbor)."""
    words = [word for word in arguments if not word.startswith("--")]
    cases = selected(words)
    with harbor() if "--harbor" in arguments else kubernetes() as place:
        began = time.monotonic()
        transcripts = asyncio.run(run(place, cases))
        took = time.monotonic() - began
    if "--print" in arguments or "--harbor" in arguments:
        print(json.dumps(transcripts, indent=1, ensure_ascii=False, sort_keys=True))
        return 0
    broken = {case_id: why for case_id, steps in transcripts.items() if (why := problem(steps))}
    for case_id, why in broken.items():
        print(f"--- {case_id} broke off\n{why[:3000]}")
    whole = {case_id: steps for case_id, steps in transcripts.items() if case_id not in broken}
    save(load() | whole if words else whole)
    print(f"{len(whole)} cases recorded, {len(broken)} broken, {len(CASES)} in all, in {took:.1f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
