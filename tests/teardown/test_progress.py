"""Waits are shown often enough to be read, and seldom enough to cost little."""

from __future__ import annotations

from pilotage.catalogue.phase import Phase
from pilotage.teardown.engine import progress as telling
from pilotage.teardown.engine.decision import Decision
from pilotage.teardown.engine.progress import DecisionReporter
from tests.teardown.building import NOW, seconds

STOPPING, PROVING = Decision(Phase.STOP, (), ()), Decision(Phase.PROVE, (), ())


def shown_at(monkeypatch, cost: float, *moments: float) -> list[float]:
    """Those of the moments at which it is shown, if that takes `cost` seconds."""
    clock = [0.0]
    seen = []

    def show(decision: Decision) -> None:
        clock[0] += cost
        seen.append(decision)

    monkeypatch.setattr(telling, "monotonic", lambda: clock[0])
    showing, found = DecisionReporter(show), []
    for moment in moments:
        before = len(seen)
        showing.show(lambda: STOPPING, NOW + seconds(moment), finished=False)
        found += [moment] * (len(seen) - before)
    return found


def test_nobody_reads_more_than_ten_in_a_second(monkeypatch):
    assert shown_at(monkeypatch, 0.0, 0.0, 0.05, 0.1, 0.15, 0.3) == [0.0, 0.1, 0.3]


def test_what_takes_long_to_show_is_shown_less_often(monkeypatch):
    assert shown_at(monkeypatch, 0.01, 0.0, 0.1, 0.4, 0.5, 0.9, 1.0) == [0.0, 0.5, 1.0]


async def test_the_end_is_always_shown() -> None:
    seen: list[Decision] = []
    showing = DecisionReporter(seen.append)
    showing.show(lambda: STOPPING, NOW, finished=False)
    showing.show(lambda: PROVING, NOW, finished=True)
    assert seen == [STOPPING, PROVING]
