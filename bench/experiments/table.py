"""The outcomes as tables of Markdown: a row for each scenario, a column for each product."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bench.experiments.subject import Column, Scenario
from bench.experiments.trial import Outcome, failed

NONE = "-"
"""Cell of a scenario that the product has no way for."""


class Round(NamedTuple):
    """A trial, and the number of those before it whose experiment did not start."""

    outcome: Outcome
    not_started: int


def tables(
    columns: Mapping[str, Column], scenarios: Mapping[str, Scenario], found: Mapping[tuple[str, str], Sequence[Round]]
) -> str:
    """Failures and cut streams; and when the Service and its servers went, and each proxy let go."""
    head = ["", *(column.title for column in columns.values())]
    starts = [[each for key in scenarios for each in found.get((key, name), ())] for name in columns]

    def rows(cell: Callable[[Sequence[Round]], str]) -> list[list[str]]:
        return [
            [scenario.title, *(cell(found[key, name]) if (key, name) in found else NONE for name in columns)]
            for key, scenario in scenarios.items()
        ]

    begins = ["it begins", *map(began, starts)]
    return f"{_table([head, begins, *rows(lost)])}\n\n{_table([head, *rows(moments)])}"


def lost(rounds: Sequence[Round]) -> str:
    """Failed requests and cut streams of each round, and of how many requests."""
    outcomes = [each.outcome for each in rounds]
    requests = " / ".join(f"{each.failed:,}" for each in outcomes)
    streams = " / ".join(f"{each.cut:,}" for each in outcomes)
    return f"{requests} failed, {streams} cut, of {sum(each.requests for each in outcomes):,}"


def began(rounds: Sequence[Round]) -> str:
    """Starts that failed, and failed requests of all others together."""
    outcomes = [each.outcome for each in rounds]
    never = sum(each.not_started for each in rounds)
    shares = [each.share for each in outcomes]
    return (
        f"{never} of {len(rounds) + never} did not start; {sum(failed(each.failures_before) for each in outcomes):,} "
        f"requests failed in the others, which had {min(shares):.0%} to {max(shares):.0%} of the requests"
    )


def moments(rounds: Sequence[Round]) -> str:
    """First and last moment of all rounds, in seconds since the end was asked for."""
    outcomes = [each.outcome for each in rounds]
    seen = {
        "servers": [each.server_killed for each in outcomes],
        "Service": [each.service_deleted for each in outcomes],
        "held proxy": [each.let_go[0] for each in outcomes],
        "other proxy": [moment for each in outcomes for moment in each.let_go[1:]],
    }
    return ", ".join(f"{name} {_range(values)}" for name, values in seen.items() if values)


def _range(moments: Sequence[float | None]) -> str:
    known = [f"{each:.1f}" for each in sorted(each for each in moments if each is not None)]
    words = known[:1] if known[:1] == known[-1:] else [known[0], known[-1]]
    return " to ".join(words) + (", or never" if known else "never") * (None in moments)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"|{' --- |' * len(rows[0])}", *body])
