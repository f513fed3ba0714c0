"""Results of the specs: read from the JUnit report of a run, printed as a table."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.specs import FAMILIES, NEEDS_CONTAINERS, family, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_PREFIX = "[It] "


@dataclass(frozen=True, slots=True)
class Result:
    """One spec on one server."""

    name: str
    """Name of the spec with all its tags."""
    passed: bool
    seconds: float
    failure: str = ""


def read_names(report: Path) -> list[str]:
    """The names of all specs in a report, also of those that were not run."""
    return [name for name, _ in _cases(report)]


def read_results(report: Path) -> dict[str, Result]:
    """The results of those that were run, by name."""
    results = {}
    for name, case in _cases(report):
        if case.find("skipped") is None:
            failure = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
            text = "" if failure is None else failure.get("message") or (failure.text or "").strip()
            results[name] = Result(name, failure is None, float(case.get("time", 0)), text)
    return results


def _cases(report: Path) -> list[tuple[str, ET.Element]]:
    cases = [(case.get("name", ""), case) for case in ET.parse(report).getroot().iter("testcase")]
    return [(name.removeprefix(_PREFIX), case) for name, case in cases if name.startswith(_PREFIX)]


def unexpected(runs: Mapping[str, Mapping[str, Result]]) -> list[str]:
    """The specs that failed on any server and could have passed there."""
    failed = {result.name for results in runs.values() for result in results.values() if not result.passed}
    return sorted(name for name in failed if short(name) not in NEEDS_CONTAINERS)


def table(runs: Mapping[str, Mapping[str, Result]]) -> str:
    """The specs, and how many seconds each took on each server, or that it fails: a table in Markdown."""
    names = {name for results in runs.values() for name in results}
    order = sorted(names, key=lambda name: (FAMILIES.index(family(name)), name))
    head = ["spec", *(f"{server}, s" for server in runs)]
    rows = [[_told(name), *(_cell(results.get(name)) for results in runs.values())] for name in order]
    return _markdown([head, *rows, ["passed", *(_sum(results.values()) for results in runs.values())]])


def _told(name: str) -> str:
    kin = family(name)
    return f"{kin}: {short(name).removeprefix(kin).strip()}"


def _cell(result: Result | None) -> str:
    if result is None:
        return "not run"
    return f"{result.seconds:.1f}" if result.passed else "fails"


def _sum(results: Iterable[Result]) -> str:
    every = list(results)
    passed = [result for result in every if result.passed]
    return f"{len(passed)} of {len(every)} ({sum(result.seconds for result in passed):.0f})"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table, the first of them as its head; all columns but the first are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = []
    for row in (rows[0], rule, *rows[1:]):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
