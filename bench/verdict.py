"""`python -m bench.verdict`: how often a verdict is wrong with a look after each request, and how soon it is right.

Needs no cluster. Traffic is made up, by seed; what judges it is the product's code. A look is skipped only where no
interval can exclude zero: where the likelihood ratio, or the distance in standard errors, is less than any test needs.
"""

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.progress import say
from pilotage.analysis import rates
from pilotage.analysis.metrics import RateHarm, readings
from pilotage.analysis.rates import Share
from pilotage.analysis.ratio import MISMATCH, Division, p_value
from pilotage.analysis.strata import Together
from pilotage.api.analysis import AnalysisSpec, MetricSpec
from pilotage.api.measured import LogSums, MeasuredBackend, Tally

ALPHA = 0.05
REQUESTS = 4000
MARKS = ("<!-- figures: python -m bench.verdict --save docs/verdict.md -->", "<!-- end of figures -->")
ERRORS, TTFT = MetricSpec("errors"), MetricSpec("ttft")
BY_2PP = MetricSpec("errors", worse_by="2pp")
RATIO_NEEDED = math.log(3 / ALPHA)
"""The logarithm of the likelihood ratio without which neither test excludes that two rates are equal."""
DISTANCE_NEEDED = -2 * math.log(ALPHA)
"""Squared standard errors without which no interval excludes that two means are equal."""
FIXED = 1.96**2
"""The same for a fixed-sample test with the same α, which is asked after each request all the same."""

Draw = Callable[[random.Random], float]


@dataclass(slots=True)
class Sums:
    """Running sums of one side in one stratum: by request, and by user."""

    weight: float
    n: int = 0
    bad: int = 0
    gave_up: int = 0
    sum: float = 0.0
    squares: float = 0.0
    users: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    user_bad: float = 0.0
    user_sum: float = 0.0
    user_squares: float = 0.0

    def add(self, bad: bool, value: float) -> None:
        """One more request."""
        self.n += 1
        self.bad += bad
        self.sum += value
        self.squares += value * value

    def add_of_user(self, user: int, bad: bool, value: float) -> None:
        """One more request of a user, whose own number changes."""
        self.add(bad, value)
        n, failed, total = self.users.get(user, (0, 0, 0.0))
        if n:
            self.user_bad -= failed / n
            self.user_sum -= total / n
            self.user_squares -= (total / n) ** 2
        n, failed, total = n + 1, failed + bad, total + value
        self.users[user] = n, failed, total
        self.user_bad += failed / n
        self.user_sum += total / n
        self.user_squares += (total / n) ** 2

    def backend(self, *, by_user: bool) -> MeasuredBackend:
        """The sums as the gateway reports them."""
        units = None
        if by_user:
            sums = LogSums(len(self.users), self.user_sum, self.user_squares)
            units = Tally(len(self.users), max(self.user_bad, 0.0), 0, sums)
        requests = Tally(self.n, self.bad, self.gave_up, LogSums(self.n, self.sum, self.squares))
        return MeasuredBackend(service="-", weight=self.weight, requests=requests, units=units)


class Step:
    """Both sides of one stratum."""

    __slots__ = ("ours", "share", "theirs")

    def __init__(self, share: float) -> None:
        self.share = share
        self.ours, self.theirs = Sums(100 * share), Sums(100 - 100 * share)

    def may_differ_in_rate(self) -> bool:
        """Whether the likelihood ratio is large enough for any test."""
        return _may_differ_in_rate(self.ours.bad, self.ours.n, self.theirs.bad, self.theirs.n)

    def rate_distance(self) -> float:
        """The squared distance of the rates in standard errors, from 20 requests of each side on."""
        ours, theirs = self.ours, self.theirs
        rate = (ours.bad + theirs.bad) / (ours.n + theirs.n)
        if min(ours.n, theirs.n) < 20 or not 0 < rate < 1:
            return 0.0
        variance = rate * (1 - rate) * (1 / ours.n + 1 / theirs.n)
        return (ours.bad / ours.n - theirs.bad / theirs.n) ** 2 / variance

    def mean_distance(self) -> float:
        """The squared distance of the means in standard errors, from 20 requests of each side on."""
        ours, theirs = self.ours, self.theirs
        return _distance(ours.n, ours.sum, ours.squares, theirs.n, theirs.sum, theirs.squares)

    def user_distance(self) -> float:
        """The squared distance of the means of users in standard errors, from 20 users of each side on."""
        ours, theirs = self.ours, self.theirs
        return _distance(
            len(ours.users), ours.user_sum, ours.user_squares, len(theirs.users), theirs.user_sum, theirs.user_squares
        )


def _may_differ_in_rate(ours: float, n: float, theirs: float, m: float) -> bool:
    """Whether a likelihood ratio reaches what both tests need: the bound, and what the mixture of one side costs."""
    if not n or not m:
        return False
    our_best, their_best = _likelihood(ours, n), _likelihood(theirs, m)
    apart = our_best + their_best - _likelihood(ours + theirs, n + m)
    if apart < RATIO_NEEDED:
        return False
    return apart >= RATIO_NEEDED + min(our_best - _mixture(ours, n), their_best - _mixture(theirs, m))


def _mixture(bad: float, n: float) -> float:
    return math.lgamma(bad + 0.5) + math.lgamma(n - bad + 0.5) - math.lgamma(n + 1) - math.log(math.pi)


def _likelihood(bad: float, n: float) -> float:
    good = n - bad
    return (bad * math.log(bad / n) if bad else 0.0) + (good * math.log(good / n) if good else 0.0)


def _distance(n: int, total: float, squares: float, m: int, other: float, others: float) -> float:
    if n < 20 or m < 20:
        return 0.0
    variance = (squares - total * total / n) / (n - 1) / n + (others - other * other / m) / (m - 1) / m
    return float((total / n - other / m) ** 2 / variance)


def decided(steps: Iterable[Step], metric: MetricSpec, *, by_user: bool = False) -> bool:
    """Whether the product calls the candidate worse, or better, than the other side."""
    sides = [Together(each.ours.backend(by_user=by_user), each.theirs.backend(by_user=by_user), 1) for each in steps]
    reading = readings(AnalysisSpec(metrics=[metric]), sides, {})[0]
    if reading.machine is None:
        return False
    if isinstance(reading.machine, RateHarm):
        ours, theirs = reading.machine
        return _above(ours, theirs, reading.limit) or _above(theirs, ours, 0.0)
    low, high = reading.machine.interval(ALPHA)
    return low > reading.limit or high < 0


def _above(ours: Share, theirs: Share, limit: float) -> bool:
    """Whether `rates.difference` has its lower end above a limit: its two tests at the limit, without the search."""
    if ours.rate - theirs.rate <= limit:
        return False
    if rates.evidence_against(ours, theirs, limit) >= -math.log(ALPHA / 3):
        return True
    return rates.interval(ours, ALPHA / 3).low - rates.interval(theirs, ALPHA / 3).high > limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    cells: tuple[str, ...]

    def __str__(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def _part(count: int, runs: int) -> str:
    return f"{100 * count / runs:.1f} %"


# --- the same model twice: every verdict but "no worse" is wrong


def errors_twice(rate: float, share: float, runs: int) -> Row:
    """The same rate of errors on both sides."""
    wrong = naive = 0
    for seed in range(runs):
        rng, step = random.Random(f"errors {rate} {share} {seed}"), Step(share)
        ours = theirs = False
        for _ in range(REQUESTS):
            (step.ours if rng.random() < share else step.theirs).add(rng.random() < rate, 0.0)
            naive_now = not theirs and step.rate_distance() > FIXED
            theirs = theirs or naive_now
            if not ours and step.may_differ_in_rate() and decided([step], ERRORS):
                ours = True
        wrong, naive = wrong + ours, naive + theirs
    return Row((f"errors {100 * rate:g} %, {100 * share:g} % share", str(runs), _part(naive, runs), _part(wrong, runs)))


def log_normal(rng: random.Random) -> float:
    """The logarithm of a time to the first token, with a standard deviation of 0.8."""
    return rng.gauss(-0.9, 0.8)


def two_humps(rng: random.Random) -> float:
    """The logarithm of a time to the first token, with a prefix that is cached or is not."""
    return rng.gauss(-2.5, 0.3) if rng.random() < 0.6 else rng.gauss(0.3, 0.5)


def ttft_twice(name: str, draw: Draw, share: float, runs: int) -> Row:
    """The same times to the first token on both sides."""
    wrong = naive = 0
    for seed in range(runs):
        rng, step = random.Random(f"{name} {share} {seed}"), Step(share)
        ours = theirs = False
        for _ in range(REQUESTS):
            (step.ours if rng.random() < share else step.theirs).add(False, draw(rng))
            distance = step.mean_distance()
            theirs = theirs or distance > FIXED
            ours = ours or (distance > DISTANCE_NEEDED and decided([step], TTFT))
        wrong, naive = wrong + ours, naive + theirs
    return Row((f"ttft, {name}, {100 * share:g} % share", str(runs), _part(naive, runs), _part(wrong, runs)))


def _users(rng: random.Random, users: int, per_user: int) -> Iterator[tuple[int, float, float]]:
    """Requests of users in any order: the user, her rate of errors, and the logarithm of a time.

    Half of the variance of times is between users; most users have hardly any error, and few have many.
    """
    habits = [(rng.betavariate(0.2, 3.8), rng.gauss(-0.9, 0.57)) for _ in range(users)]
    order = [user for user in range(users) for _ in range(per_user)]
    rng.shuffle(order)
    for user in order:
        yield user, habits[user][0], rng.gauss(habits[user][1], 0.57)


def users_twice(metric: MetricSpec, share: float, runs: int) -> Row:
    """The same model twice for users who stay on their side: 200 of them with 20 requests each."""
    by_request = by_user = 0
    for seed in range(runs):
        rng, step = random.Random(f"users {metric.name} {share} {seed}"), Step(share)
        sides = [rng.random() < share for _ in range(200)]
        wrong = {False: False, True: False}
        for user, rate, value in _users(rng, 200, 20):
            (step.ours if sides[user] else step.theirs).add_of_user(user, rng.random() < rate, value)
            may = _may_differ(step, metric)
            for counted in wrong:
                wrong[counted] = wrong[counted] or (may[counted] and decided([step], metric, by_user=counted))
        by_request, by_user = by_request + wrong[False], by_user + wrong[True]
    name = f"{metric.name}, users stay on their side, {100 * share:g} % share"
    return Row((name, str(runs), f"{_part(by_request, runs)} (this test, by request)", _part(by_user, runs)))


def _may_differ(step: Step, metric: MetricSpec) -> dict[bool, bool]:
    """Whether a look by request, and one by user, could decide anything."""
    if metric is TTFT:
        return {False: step.mean_distance() > DISTANCE_NEEDED, True: step.user_distance() > DISTANCE_NEEDED}
    ours, theirs = step.ours, step.theirs
    by_user = max(ours.user_bad, 0.0), len(ours.users), max(theirs.user_bad, 0.0), len(theirs.users)
    return {False: step.may_differ_in_rate(), True: _may_differ_in_rate(*by_user)}


RAMP = (0.05, 0.25, 0.5)


def ramp_twice(metric: MetricSpec, runs: int) -> Row:
    """The same model twice, 5, 25 and 50 %, while each step is worse for everybody: 35 % slower, twice the errors."""
    pooled_wrong = wrong = 0
    seen = []
    for seed in range(runs):
        rng, steps = random.Random(f"ramp {metric.name} {seed}"), [Step(share) for share in RAMP]
        whole, found, pooled_found = Step(RAMP[-1]), False, False
        for tide, step in enumerate(steps):
            for _ in range(REQUESTS // 3):
                is_ours, bad, value = rng.random() < step.share, rng.random() < 0.02 * 2**tide, log_normal(rng)
                for each in (step, whole):
                    (each.ours if is_ours else each.theirs).add(bad, value + 0.3 * tide)
                pooled_found = pooled_found or (_may_differ_by_request(whole, metric) and decided([whole], metric))
                found = found or (_may_differ_by_step(steps[: tide + 1], metric) and decided(steps[: tide + 1], metric))
        pooled_wrong, wrong = pooled_wrong + pooled_found, wrong + found
        seen.append(math.expm1(whole.ours.sum / whole.ours.n - whole.theirs.sum / whole.theirs.n))
    note = f" (pooled; ttft {100 * statistics.mean(seen):+.0f} %)" if metric is TTFT else " (pooled)"
    name = f"{metric.name}, ramp 5/25/50 % with a rising tide"
    return Row((name, str(runs), f"{_part(pooled_wrong, runs)}{note}", _part(wrong, runs)))


def _may_differ_by_step(steps: Sequence[Step], metric: MetricSpec) -> bool:
    """Whether the weighted difference is more than 2 standard errors from zero, where 2.4 are needed at least."""
    apart = variance = 0.0
    for ours, theirs in ((step.ours, step.theirs) for step in steps):
        if min(ours.n, theirs.n) < 2:
            continue
        weight = ours.n * theirs.n / (ours.n + theirs.n)
        if metric is TTFT:
            apart += weight * (ours.sum / ours.n - theirs.sum / theirs.n)
            spread = ours.squares + theirs.squares - ours.sum**2 / ours.n - theirs.sum**2 / theirs.n
            variance += weight * spread / (ours.n + theirs.n - 2)
        else:
            rate = (ours.bad + theirs.bad) / (ours.n + theirs.n)
            apart += weight * (ours.bad / ours.n - theirs.bad / theirs.n)
            variance += weight * rate * (1 - rate)
    return apart**2 > 4 * variance


def _may_differ_by_request(step: Step, metric: MetricSpec) -> bool:
    return step.mean_distance() > DISTANCE_NEEDED if metric is TTFT else step.may_differ_in_rate()


def users_ramp_twice(runs: int) -> Row:
    """The same model twice, on a ramp with a rising tide, for users who stay where they were moved to."""
    wrong = 0
    for seed in range(runs):
        rng, steps = random.Random(f"users ramp {seed}"), [Step(share) for share in RAMP]
        places = [rng.random() for _ in range(200)]
        habits = [rng.gauss(-0.9, 0.57) for _ in range(200)]
        found = False
        for tide, step in enumerate(steps):
            for _ in range(REQUESTS // 3):
                user = rng.randrange(200)
                side = step.ours if places[user] < step.share else step.theirs
                side.add_of_user(user, False, rng.gauss(habits[user] + 0.3 * tide, 0.57))
                may = any(each.user_distance() > DISTANCE_NEEDED for each in steps)
                found = found or (may and decided(steps[: tide + 1], TTFT, by_user=True))
        wrong += found
    return Row(("ttft, users on that ramp", str(runs), "", _part(wrong, runs)))


def shares_twice(share: float, runs: int) -> Row:
    """Requests that are divided as asked: Invalid would be wrong."""
    wrong = naive = 0
    for seed in range(runs):
        rng, ours = random.Random(f"shares {share} {seed}"), 0
        found = fixed = False
        for n in range(1, REQUESTS + 1):
            ours += rng.random() < share
            far = (ours - n * share) ** 2 / (n * share * (1 - share))
            fixed = fixed or (n >= 20 and far > 3.29**2)
            found = found or (far > 9 and p_value([Division(ours, n - ours, share)]) < MISMATCH)
        wrong, naive = wrong + found, naive + fixed
    name = f"sample ratio, {100 * share:g} % share (at p < 0.001)"
    return Row((name, str(runs), _part(naive, runs), _part(wrong, runs)))


# --- a candidate that is worse: how many of its requests until it is found


def found_after(
    share: float, metric: MetricSpec, ours: Sequence[float], theirs: Sequence[float], runs: int
) -> list[int]:
    """The candidate's requests until the product calls it worse; each side is its rate of errors and log of a time."""
    counts = []
    for seed in range(runs):
        rng, step = random.Random(f"found {share} {ours} {seed}"), Step(share)
        while step.ours.n < 20_000:
            is_ours = rng.random() < share
            side, (rate, mean) = (step.ours, ours) if is_ours else (step.theirs, theirs)
            side.add(rng.random() < rate, rng.gauss(mean, 0.8))
            if is_ours and _may_differ_by_request(step, metric) and decided([step], metric):
                break
        counts.append(step.ours.n)
    return counts


def power(name: str, share: float, metric: MetricSpec, ours: float, theirs: float, runs: int) -> Row:
    """The median of the candidate's requests until it is found, and the nine of ten."""
    sides = (
        ((ours, 0.0), (theirs, 0.0)) if metric.name == "errors" else ((0.0, math.log(ours)), (0.0, math.log(theirs)))
    )
    counts = sorted(found_after(share, metric, *sides, runs))
    nine = counts[math.ceil(0.9 * len(counts)) - 1]
    return Row((name, str(runs), f"{statistics.median_low(counts):,}", f"{nine:,}"))


def hanging(runs: int) -> Row:
    """A candidate at 5 % that answers 200 and sends no token: each of its clients gives up."""
    counts = []
    for seed in range(runs):
        rng, step = random.Random(f"hanging {seed}"), Step(0.05)
        while True:
            if rng.random() < step.share:
                step.ours.n += 1
                step.ours.gave_up += 1
                if decided([step], BY_2PP):
                    break
            else:
                step.theirs.add(rng.random() < 0.005, 0.0)
        counts.append(step.ours.n)
    counts.sort()
    nine = counts[math.ceil(0.9 * runs) - 1]
    name = "hangs with status 200 at 5 %, limit 2pp (by status codes: never)"
    return Row((name, str(runs), f"{statistics.median_low(counts):,}", f"{nine:,}"))


def mismatch_found(expected: float, share: float, runs: int) -> Row:
    """Shares that are not as asked: requests of both sides until that is found."""
    counts = []
    for seed in range(runs):
        rng, n, ours = random.Random(f"mismatch {expected} {share} {seed}"), 0, 0
        while p_value([Division(ours, n - ours, expected)]) >= MISMATCH:
            n += 1
            ours += rng.random() < share
        counts.append(n)
    counts.sort()
    name = f"{100 * share:g} % where {100 * expected:g} % were asked for (requests of both)"
    return Row((name, str(runs), f"{statistics.median_low(counts):,}", f"{counts[math.ceil(0.9 * runs) - 1]:,}"))


# --- a candidate that is as good: how many of its requests until it may pass


def price(name: str, metric: MetricSpec, share: float, rate: float) -> Row:
    """The candidate's requests until it is no worse by its limit, if both sides are as expected."""
    low, high = 1.0, 1_000_000.0
    while high / low > 1.001:
        n = math.sqrt(low * high)
        step = Step(share)
        for side, count in ((step.ours, n), (step.theirs, n * (1 - share) / share)):
            side.n, side.bad, side.squares = count, rate * count, 0.64 * count  # type: ignore[assignment]
        if _no_worse(step, metric):
            high = n
        else:
            low = n
    return Row((name, f"{math.ceil(high):,}"))


def _no_worse(step: Step, metric: MetricSpec) -> bool:
    sides = [Together(step.ours.backend(by_user=False), step.theirs.backend(by_user=False), 1)]
    reading = readings(AnalysisSpec(metrics=[metric]), sides, {})[0]
    return reading.machine is not None and reading.machine.interval(ALPHA).high < reading.limit


def false_verdicts(runs: int) -> Iterator[Row]:
    """Rows of the first table."""
    for share in (0.1, 0.5):
        for rate in (0.01, 0.05, 0.2):
            yield errors_twice(rate, share, runs)
    for share in (0.1, 0.5):
        yield ttft_twice("log-normal", log_normal, share, runs)
        yield ttft_twice("two humps", two_humps, share, runs)
    yield users_twice(TTFT, 0.5, runs // 2)
    yield users_twice(TTFT, 0.2, runs // 2)
    yield users_twice(ERRORS, 0.5, runs // 2)
    yield ramp_twice(TTFT, runs // 4)
    yield ramp_twice(ERRORS, runs // 4)
    yield users_ramp_twice(runs // 2)
    yield shares_twice(0.1, runs)
    yield shares_twice(0.5, runs)


def findings(runs: int) -> Iterator[Row]:
    """Rows of the second table."""
    yield power("errors 0.5 → 50 % at 5 %, limit 2pp", 0.05, BY_2PP, 0.5, 0.005, runs)
    yield hanging(runs)
    yield power("errors 0.5 → 5 % at 10 %", 0.1, ERRORS, 0.05, 0.005, runs // 2)
    yield power("errors 1 → 3 % at 20 %", 0.2, ERRORS, 0.03, 0.01, runs // 4)
    yield power("ttft × 1.49 at 10 %", 0.1, TTFT, 1.49, 1.0, runs)
    yield power("ttft × 1.22 at 20 %", 0.2, TTFT, 1.22, 1.0, runs)
    yield power("ttft × 1.11 at 50 %", 0.5, TTFT, 1.11, 1.0, runs)
    yield mismatch_found(0.5, 0.45, runs)
    yield mismatch_found(0.1, 0.07, runs)


def prices(_: int) -> Iterator[Row]:
    """Rows of the third table."""
    for limit in ("1pp", "2pp", "5pp"):
        metric = MetricSpec("errors", worse_by=limit)
        yield price(f"errors, none on either side, limit {limit}, 5 % weight", metric, 0.05, 0)
    metric = MetricSpec("errors", worse_by="1pp")
    yield price("errors, 0.5 % on both sides, limit 1pp, 5 % weight", metric, 0.05, 0.005)
    for percent in ("10%", "25%", "50%"):
        metric = MetricSpec("ttft", worse_by=percent)
        yield price(f"ttft, standard deviation of the logarithm 0.8, limit {percent}, 5 % weight", metric, 0.05, 0)


TABLES: tuple[tuple[str, tuple[str, ...], Callable[[int], Iterator[Row]]], ...] = (
    (
        f"The same model twice, {REQUESTS:,} requests, a look after each, one metric, α = 0.05, no limit: wrong runs",
        ("case", "runs", "fixed-sample test at each look", "this"),
        false_verdicts,
    ),
    (
        "A candidate that is worse: its requests until it is found, with a look after each of them",
        ("case", "runs", "median", "nine of ten"),
        findings,
    ),
    ("A candidate that is as good: its requests until it is no worse", ("case", "requests"), prices),
)


def tables(runs: int) -> Iterator[str]:
    """The lines of all tables, as they are computed."""
    for title, heading, rows in TABLES:
        yield from (f"{title}:", "", str(Row(heading)), str(Row(("---",) * len(heading))))
        for row in rows(runs):
            say(str(row))
            yield str(row)
        yield ""


def save(lines: Sequence[str], path: Path) -> None:
    """Put the tables between the marks of a page."""
    text = path.read_text()
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    path.write_text("\n".join((f"{before}{MARKS[0]}", *lines, f"{MARKS[1]}{after}")))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdict", description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="runs of most rows (default: 400); some have fewer")
    parser.add_argument("--save", type=Path, metavar="FILE", help="put the tables between the marks of a page, too")
    args = parser.parse_args()
    began = time.monotonic()
    lines = list(tables(args.runs))
    sys.stdout.write("\n".join(lines))
    say(f"took {time.monotonic() - began:.0f} s, {time.process_time():.0f} s of CPU")
    if args.save is not None:
        save(lines, args.save)


if __name__ == "__main__":
    main()
