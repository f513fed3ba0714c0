"""When the host is short of memory: nothing new, then the lowest priority goes, and all come back when it is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.agent import pressure as module
from pilotage.agent.pressure import Candidate, Kernel, Level, Pressure, Strain, judge, victim
from pilotage.api.names import HOSTS
from pilotage.kube import EVENTS, ObjectKey
from tests.agent.servers import PLAIN
from tests.agent.town import python_server

CALM, WARNING, CRITICAL = Strain(0.5), Strain(0.05), Strain(0.01)


async def test_the_lowest_priority_goes_first_and_comes_back(town):
    await town.start()
    await town.serving("low", priority=1, service="low")
    await town.serving("high", priority=5, service="high")
    town.strains.strain = CRITICAL
    await town.until(lambda: town.status("low")["phase"] == "Evicted")
    town.strains.strain = CALM  # before the next one would go
    assert town.slice("low") is None
    assert "short of memory" in town.status("low")["message"]
    assert town.is_ready("high")
    assert "Evicted" in [each["reason"] for each in town.world.objects(EVENTS)]
    await town.until(lambda: town.is_ready("low"))
    assert town.metric('pilotage_agent_takedowns_total{reason="Evicted"}') == 1
    assert town.status("low")["restarts"] == 0


async def test_a_protected_one_never_goes(town):
    await town.start()
    await town.serving("chat-1-0", protected=True, priority=-5)
    await town.serving("chat-1-1", priority=100)
    pid = town.pid("chat-1-0")
    town.strains.strain = CRITICAL
    await town.until(lambda: town.status("chat-1-1")["phase"] == "Evicted")
    checks = town.metric('pilotage_agent_health_checks_total{result="healthy"}')
    await town.until(lambda: town.metric('pilotage_agent_health_checks_total{result="healthy"}') >= checks + 4)
    assert town.is_ready("chat-1-0")
    assert town.processes() == [pid]


async def test_what_a_spec_says_about_itself_counts_as_far_as_the_owner_lets_it(town):
    """Else whoever says the greatest number, or that it is protected, has all others stopped first."""
    town.strict(allow_commands=True, run_as="root")
    await town.start()
    await town.serving("modest", runtime=python_server(PLAIN), drainSeconds=0)
    await town.serving("greedy", runtime=python_server(PLAIN), drainSeconds=0, priority=10**9, protected=True)
    town.strains.strain = CRITICAL
    await town.until(lambda: town.status("greedy")["phase"] == "Evicted")  # the younger of two that are equal
    town.strains.strain = CALM


async def test_a_spec_that_asks_for_less_than_the_weights_take_is_not_believed(town):
    town.strict()
    town.memory.reading = town.memory.reading._replace(available=10 << 20)
    await town.start()
    await town.place(memoryBytes=1)
    await town.until(lambda: town.reason() == "NoMemory")
    assert town.processes() == []


async def test_with_a_warning_nothing_new_starts_and_what_runs_goes_on(town):
    await town.start()
    await town.serving("first")
    town.strains.strain = WARNING
    await town.until(lambda: host(town)["phase"] == "Pressed")
    await town.place("second")
    await town.until(lambda: town.reason("second") == "Held")
    assert town.status("second")["phase"] == "Pending"
    assert town.is_ready("first")
    assert len(town.processes()) == 1
    pressed = {each["type"]: each["status"] for each in host(town)["conditions"]}
    assert pressed == {"Ready": "True", "MemoryPressure": "True"}
    town.strains.strain = CALM
    await town.until(lambda: town.is_ready("second") and host(town)["phase"] == "Ready")


async def test_one_that_was_evicted_can_be_deleted(town):
    await town.start()
    await town.serving()
    town.strains.strain = CRITICAL
    await town.until(lambda: town.status()["phase"] == "Evicted")
    await town.delete()
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()


def host(town):
    return town.world.find(HOSTS, ObjectKey("", town.host))["status"]


@pytest.mark.parametrize(
    ("strain", "level"),
    [
        (Strain(0.5), Level.NORMAL),
        (Strain(0.5, some=15.0), Level.WARNING),
        (Strain(0.5, some=90.0, full=50.0), Level.CRITICAL),
        (Strain(0.07), Level.WARNING),
        (Strain(0.02), Level.CRITICAL),
    ],
)
def test_how_bad_it_is(strain, level):
    assert judge(strain) is level


CANDIDATES = st.lists(
    st.builds(Candidate, st.uuids().map(str), st.integers(-3, 3), st.booleans(), st.floats(0, 9)), max_size=6
)


@given(CANDIDATES)
def test_the_one_that_goes(candidates):
    chosen = {each.uid: each for each in candidates}.get(victim(candidates) or "")
    may_go = [each for each in candidates if not each.protected]
    assert (chosen is None) == (not may_go)
    if chosen is not None:
        assert not chosen.protected
        assert chosen.priority == min(each.priority for each in may_go)


def test_it_rises_at_once_and_falls_after_a_while():
    class Source:
        strain = CALM

        def read(self):
            return self.strain

    source = Source()
    pressure = Pressure(source, calm_seconds=30, next_seconds=15)
    assert pressure.look(0) is Level.NORMAL
    source.strain = CRITICAL
    assert pressure.look(1) is Level.CRITICAL
    both = [Candidate("a", 0, False, 0), Candidate("b", 1, False, 0)]
    assert pressure.choose(1, both) == "a"
    assert pressure.choose(2, both[1:]) is None, "the first has to be felt"
    assert pressure.choose(16, both[1:]) == "b"
    source.strain = CALM
    assert pressure.look(40) is Level.CRITICAL
    assert pressure.choose(40, both) is None, "it is better already"
    assert pressure.look(69) is Level.CRITICAL
    source.strain = CRITICAL
    assert pressure.look(69.5) is Level.CRITICAL
    source.strain = CALM
    assert pressure.look(70) is Level.CRITICAL, "counted anew"
    assert pressure.look(100) is Level.NORMAL


def test_the_system_can_be_asked():
    strain = Kernel().read()
    assert 0 < strain.available <= 1
    assert 0 <= strain.full <= 100


PSI = """some avg10=12.50 avg60=3.10 avg300=0.64 total=1024
full avg10=7.25 avg60=1.00 avg300=0.20 total=512
"""


@pytest.mark.parametrize(
    ("text", "stalled"),
    [(PSI, (12.5, 7.25)), (None, (0.0, 0.0)), ("", (0.0, 0.0)), ("some avg10=much\nfull avg10=1.00\n", (0.0, 0.0))],
    ids=["as Linux writes it", "no such file", "empty", "no number"],
)
def test_what_linux_says_of_stalls(tmp_path, monkeypatch, text, stalled):
    """What cannot be read is no pressure: what is available still counts."""
    path = tmp_path / "memory"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(module, "_PSI", path)
    strain = Kernel().read()
    assert (strain.some, strain.full) == stalled
    assert 0 < strain.available <= 1
