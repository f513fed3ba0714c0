"""Memory pressure on the host: nothing new starts, the lowest priority is stopped, and all come back afterwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.agent import pressure as module
from pilotage.agent.pressure import (
    EvictionCandidate,
    KernelPressure,
    MemoryPressure,
    MemoryStrain,
    PressureLevel,
    judge,
    victim,
)
from pilotage.api.names import HOSTS
from pilotage.kube import EVENTS, ObjectKey
from tests.agent.agent_host import python_server
from tests.agent.servers import PLAIN

CALM, WARNING, CRITICAL = MemoryStrain(0.5), MemoryStrain(0.05), MemoryStrain(0.01)


async def test_the_lowest_priority_goes_first_and_comes_back(host):
    await host.start()
    await host.serving("low", priority=1, service="low")
    await host.serving("high", priority=5, service="high")
    host.strains.strain = CRITICAL
    await host.until(lambda: host.status("low")["phase"] == "Evicted")
    host.strains.strain = CALM  # before the next one would go
    assert host.slice("low") is None
    assert "short of memory" in host.status("low")["message"]
    assert host.is_ready("high")
    assert "Evicted" in [each["reason"] for each in host.world.objects(EVENTS)]
    await host.until(lambda: host.is_ready("low"))
    assert host.metric('pilotage_agent_stops_total{reason="Evicted"}') == 1
    (blocked,) = noted(host, "RespawnBlocked")
    assert (blocked["type"], blocked["regarding"]["name"]) == ("Warning", "low")
    assert host.status("low")["restarts"] == 0


async def test_a_protected_one_never_goes(host):
    await host.start()
    await host.serving("chat-1-0", protected=True, priority=-5)
    await host.serving("chat-1-1", priority=100)
    pid = host.pid("chat-1-0")
    host.strains.strain = CRITICAL
    await host.until(lambda: host.status("chat-1-1")["phase"] == "Evicted")
    checks = host.metric('pilotage_agent_health_checks_total{result="healthy"}')
    await host.until(lambda: host.metric('pilotage_agent_health_checks_total{result="healthy"}') >= checks + 4)
    assert host.is_ready("chat-1-0")
    assert host.processes() == [pid]
    await host.until(lambda: noted(host, "EvictionSkipped"))
    (skipped,) = noted(host, "EvictionSkipped")
    assert (skipped["type"], skipped["regarding"]["kind"], skipped["regarding"]["name"]) == (
        "Warning",
        "Host",
        host.name,
    )
    assert "all servers here are protected" in skipped["note"]


async def test_what_a_spec_says_about_itself_counts_as_far_as_the_owner_lets_it(host):
    """Otherwise the process with the greatest number, or the protected one, would have all others stopped first."""
    host.strict(allow_commands=True, run_as="root")
    await host.start()
    await host.serving("modest", runtime=python_server(PLAIN), drainSeconds=0)
    await host.serving("greedy", runtime=python_server(PLAIN), drainSeconds=0, priority=10**9, protected=True)
    host.strains.strain = CRITICAL
    await host.until(lambda: host.status("greedy")["phase"] == "Evicted")  # the younger of two that are equal
    host.strains.strain = CALM


async def test_a_spec_that_asks_for_less_than_the_weights_take_is_not_believed(host):
    host.strict()
    host.memory.reading = host.memory.reading._replace(available=10 << 20)
    await host.start()
    await host.place(memoryBytes=1)
    await host.until(lambda: host.reason() == "NoMemory")
    assert host.processes() == []


async def test_with_a_warning_nothing_new_starts_and_what_runs_goes_on(host):
    await host.start()
    await host.serving("first")
    host.strains.strain = WARNING
    await host.until(lambda: host_status(host)["phase"] == "Pressed")
    await host.place("second")
    await host.until(lambda: host.reason("second") == "Held")
    assert host.status("second")["phase"] == "Pending"
    assert host.is_ready("first")
    assert len(host.processes()) == 1
    pressed = {each["type"]: each["status"] for each in host_status(host)["conditions"]}
    assert pressed == {"Ready": "True", "MemoryPressure": "True"}
    host.strains.strain = CALM
    await host.until(lambda: host.is_ready("second") and host_status(host)["phase"] == "Ready")
    await host.until(lambda: len(noted(host, "MemoryPressureLevelChanged")) == 2)
    changes = sorted((each["note"], each["type"]) for each in noted(host, "MemoryPressureLevelChanged"))
    assert changes == [
        ("Memory pressure is normal, and was warning. Servers are started again.", "Normal"),
        ("Memory pressure is warning, and was normal. No server is started.", "Warning"),
    ]
    assert noted(host, "RespawnBlocked") == [], "it never ran"


async def test_without_any_server_it_is_said_that_nothing_can_go(host):
    await host.start()
    await host.until(lambda: host.world.find(HOSTS, ObjectKey("", host.name)))
    host.strains.strain = CRITICAL
    await host.until(lambda: noted(host, "EvictionSkipped"))
    (skipped,) = noted(host, "EvictionSkipped")
    assert "no server here is left to evict" in skipped["note"]


async def test_one_that_was_evicted_can_be_deleted(host):
    await host.start()
    await host.serving()
    host.strains.strain = CRITICAL
    await host.until(lambda: host.status()["phase"] == "Evicted")
    await host.delete()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


def noted(host, reason):
    return [each for each in host.world.objects(EVENTS) if each["reason"] == reason]


def host_status(host):
    return host.world.find(HOSTS, ObjectKey("", host.name))["status"]


@pytest.mark.parametrize(
    ("strain", "level"),
    [
        (MemoryStrain(0.5), PressureLevel.NORMAL),
        (MemoryStrain(0.5, some=15.0), PressureLevel.WARNING),
        (MemoryStrain(0.5, some=90.0, full=50.0), PressureLevel.CRITICAL),
        (MemoryStrain(0.07), PressureLevel.WARNING),
        (MemoryStrain(0.02), PressureLevel.CRITICAL),
    ],
)
def test_how_bad_it_is(strain, level):
    assert judge(strain) is level


CANDIDATES = st.lists(
    st.builds(EvictionCandidate, st.uuids().map(str), st.integers(-3, 3), st.booleans(), st.floats(0, 9)), max_size=6
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
    pressure = MemoryPressure(source, calm_seconds=30, next_seconds=15)
    assert pressure.update(0) is PressureLevel.NORMAL
    source.strain = CRITICAL
    assert pressure.update(1) is PressureLevel.CRITICAL
    both = [EvictionCandidate("a", 0, False, 0), EvictionCandidate("b", 1, False, 0)]
    assert pressure.choose(1, both) == "a"
    assert pressure.choose(2, both[1:]) is None, "the first has to be felt"
    assert pressure.choose(16, both[1:]) == "b"
    source.strain = CALM
    assert pressure.update(40) is PressureLevel.CRITICAL
    assert pressure.choose(40, both) is None, "it is better already"
    assert pressure.update(69) is PressureLevel.CRITICAL
    source.strain = CRITICAL
    assert pressure.update(69.5) is PressureLevel.CRITICAL
    source.strain = CALM
    assert pressure.update(70) is PressureLevel.CRITICAL, "counted anew"
    assert pressure.update(100) is PressureLevel.NORMAL


def test_the_system_can_be_asked():
    strain = KernelPressure().read()
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
    """An unreadable value counts as no pressure; the values that are available still count."""
    path = tmp_path / "memory"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(module, "_PSI", path)
    strain = KernelPressure().read()
    assert (strain.some, strain.full) == stalled
    assert 0 < strain.available <= 1
