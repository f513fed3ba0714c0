"""A sample of ``make faults``: a crash, a clock that is set and a death in the middle of a delete, on one machine."""

from faults.cases import PARTS, Case, Fault, State, journeys
from faults.player import play

SAMPLE = [
    Case(Fault.KILL, "harbor", State.SERVING),
    Case(Fault.FORWARD, "", State.DEPLOYING),
    Case(Fault.KILL, "agent", State.DELETING),
]


def test_everything_recovers_without_help():
    said = []
    problems = [str(outcome) for outcome in play(SAMPLE, said.append) if outcome.problem]
    assert problems == [], "\n".join(said[-50:])


def test_every_part_suffers_every_fault_in_every_state():
    cases = [case for journey in journeys() for case in journey]
    assert len({*cases}) == len(cases) == (len(PARTS) * 3 + 3) * len(State)
    assert {*SAMPLE} <= {*cases}
