"""A verdict as lines of text, from what its status has: ``pilotage verdict`` prints them."""

from pilotage.analysis.verdict import duration
from pilotage.api.analysis import MetricVerdict, Verdict

EXIT_CODES = {"Better": 0, "NoWorse": 0, "Worse": 1, "Undecided": 4, "Invalid": 5}
"""Exit code of ``pilotage verdict`` for each result. Results of a later version are 3, as is a verdict that is
unreadable."""
_RESULTS = {"Better": "better", "NoWorse": "no worse", "Worse": "worse", "Undecided": "undecided"}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def lines(verdict: Verdict) -> list[str]:
    """The verdict for people: the sides, a line for each metric, the result with its reason, what would decide it."""
    rows = [_cells(each) for each in verdict.metrics]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(6)]
    table = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [_heading(verdict), *(each.rstrip() for each in table), *_conclusion(verdict)]


def _heading(verdict: Verdict) -> str:
    ours, theirs = (verdict.requests.get(each, 0) for each in (verdict.candidate, verdict.against))
    warmup = f", {duration(verdict.warmup_seconds)} of warm-up left out" if verdict.warmup_seconds else ""
    keys = ""
    if verdict.units:
        counts = (verdict.units.get(each, 0) for each in (verdict.candidate, verdict.against))
        keys = f" of {' and '.join(f'{each:,}' for each in counts)} buckets of keys"
    sides = f"{verdict.candidate} against {verdict.against}"
    return f"{sides}: {ours:,} and {theirs:,} requests{keys} in {duration(verdict.seconds)}{warmup}"


def _cells(metric: MetricVerdict) -> tuple[str, ...]:
    unit = "pp" if metric.difference.endswith("pp") else "%"
    bracket = f"[{metric.low.removesuffix(unit)}, {metric.high.removesuffix(unit)}]" if metric.low else ""
    limit = f"limit {_spaced(metric.limit)}" if metric.limit else metric.text
    note = ", ".join(filter(None, (limit, "decides nothing" if metric.dry_run else "")))
    values = [_spaced(each) for each in (metric.candidate, metric.other, metric.difference)]
    result = _RESULTS.get(metric.result, metric.result)
    return metric.name, f"{values[0]:>7}  {values[1]:>7}", values[2], bracket, result, f"({note})" if note else ""


def _spaced(value: str) -> str:
    """A value with a space before its unit."""
    for unit in ("pp", "%", "ms", "s"):
        if value.endswith(unit) and value.removesuffix(unit)[-1:].isdigit():
            return f"{value.removesuffix(unit)} {unit}"
    return value


def _conclusion(verdict: Verdict) -> list[str]:
    result = "No worse" if verdict.result == "NoWorse" else verdict.result
    first, *rest = map(_spaced_limit, verdict.advice) if verdict.advice else [""]
    found = [f"{result}. {first}" if first else f"{result}: {verdict.text}.", *rest]
    together = [each for each in verdict.metrics if each.low and not each.dry_run]
    if together:
        found.append(_promise(len(together), verdict.confidence))
    return found


def _spaced_limit(line: str) -> str:
    return " ".join(_spaced(each) for each in line.split(" "))


def _promise(metrics: int, confidence: float) -> str:
    sure = f"{100 * confidence:.4g} %"
    if metrics == 1:
        return f"The interval holds at every look, with {sure}: looking often does not make it wrong."
    many = _NUMBERS[metrics] if metrics < len(_NUMBERS) else str(metrics)
    return f"The intervals hold at every look, all {many} together with {sure}: looking often does not make them wrong."
