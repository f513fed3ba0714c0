"""Every alert speaks of metrics that exist, and has a runbook with the six sections; and the census behind them."""

import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from pilotage.kube import Object
from pilotage.models.blocking import inline
from pilotage.operator.metrics import OperatorMetrics
from pilotage.operator.run import operating
from pilotage.operator.settings import OperatorSettings
from pilotage.runtime.store import Store
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld

ROOT = Path(__file__).parents[2]
SECTIONS = ["Trigger", "Diagnose", "Mitigate", "Resolve", "Verify", "Related"]
OURS = re.compile(r"\b(?:workqueue|controller_runtime|rest_client|leader_election|pilotage)_\w+")


def alerts():
    groups = yaml.safe_load((ROOT / "deploy" / "alerts.yaml").read_text())["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


@virtual
async def known_metrics(folder):
    """The names that a scrape of the operator knows."""
    async with SimulatedWorld(latency=(0, 0)) as world:
        settings = OperatorSettings(metrics_address="", cache_root=folder)
        async with operating(settings, world.client("operator"), blocking=inline) as manager:
            text = manager.metrics.render().decode()
    families = re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE)
    return {
        f"{name}{suffix}"
        for name, kind in families
        for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
    }


def test_every_alert_and_runbook_speaks_of_metrics_that_exist(tmp_path):
    known = known_metrics(tmp_path)
    named = {name for alert in alerts() for name in OURS.findall(alert["expr"])}
    assert named <= known, named - known
    for page in (ROOT / "docs" / "runbooks").glob("*.md"):
        mentioned = set(
            re.findall(r"\b(?:workqueue|controller_runtime|rest_client|pilotage)_[a-z_]+", page.read_text())
        )
        assert mentioned <= known, (page.name, mentioned - known)


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_every_alert_has_a_runbook_that_names_it(alert):
    page = (ROOT / alert["annotations"]["runbook"]).read_text()
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == SECTIONS
    assert alert["annotations"]["summary"]
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    if not alert["alert"].startswith("PilotageModel"):
        assert alert["alert"] in page


def test_every_runbook_has_its_sections_and_a_row_in_the_index():
    folder = ROOT / "docs" / "runbooks"
    index = (folder / "README.md").read_text()
    for page in folder.glob("*.md"):
        if page.name != "README.md":
            assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == SECTIONS, page.name
            assert f"({page.name})" in index, page.name


EVENTS = {
    "host-lost": ["HostLost"],
    "host-memory-pressure": ["MemoryPressureLevelChanged", "EvictionSkipped"],
    "host-process-evicted": ["Evicted", "RespawnBlocked"],
}


@pytest.mark.parametrize("page", EVENTS)
def test_the_events_of_a_host_lead_to_a_runbook(page):
    """tests/agent and tests/controllers see each of them written."""
    folder = ROOT / "docs" / "runbooks"
    for reason in EVENTS[page]:
        assert f"`{reason}`" in (folder / f"{page}.md").read_text()
        assert [line for line in (folder / "README.md").read_text().splitlines() if f"`{reason}`" in line]


def test_every_runbook_leads_somewhere():
    folder = ROOT / "docs" / "runbooks"
    missing = [
        f"{page.name}: {link}"
        for page in folder.glob("*.md")
        for link in re.findall(r"\]\(([^)#]+\.md)\)", page.read_text())
        if not (folder / link).exists()
    ]
    assert missing == []


STRATEGY = {"canary": {"steps": [{"pause": {"duration": "10m"}}, {"setWeight": 25}, {"pause": {}}]}}


def store(*objects):
    made = Store()
    for name, status in objects:
        body = {
            "apiVersion": "v1",
            "kind": "K",
            "metadata": {"namespace": "chat", "name": name, "resourceVersion": "1"},
        }
        spec = {"target": {"name": "assistant"}, "host": "gpu-1", "strategy": STRATEGY}
        made.put(Object.from_dict({**body, "spec": spec, "status": status}))
    return made


def conditions(**statuses):
    return {"conditions": [{"type": type_, "status": status, "reason": "R"} for type_, status in statuses.items()]}


def test_the_census_names_what_is_in_trouble_and_nothing_else():
    registry = CollectorRegistry()
    endpoints = store(
        ("good", {"phase": "Serving", **conditions(Degraded="False", RouteProgrammed="True")}),
        ("bad", {"phase": "Degraded", **conditions(Degraded="True", RouteProgrammed="False")}),
        ("new", {}),
        ("rolls", {"rollout": {"phase": "Pausing", "revision": "rolls-2", "step": 3, "weight": {"wanted": 25}}}),
        ("ticks", {"rollout": {"phase": "Pausing", "revision": "ticks-2", "step": 1}}),
        ("held", {"rollout": {"phase": "Held", "revision": "held-2", "step": 1}}),
        ("back", {"rollout": {"phase": "Aborted", "revision": "back-2", "step": 3, "weight": {"wanted": 0}}}),
        ("on", {"rollout": {"phase": "Promoted", "revision": "on-2", "step": 3, "weight": {"wanted": 100}}}),
        ("leaving", {"phase": "Deleting", **conditions(Degraded="False", RouteProgrammed="False")}),
    )
    teardowns = store(
        ("done", {"phase": "done", "started": "2026-11-16T00:00:00Z", **conditions(Blocked="True")}),
        ("stuck", {"phase": "stop", "started": "2026-11-16T00:00:10Z", **conditions(Blocked="True")}),
        ("going", {"phase": "stop", "started": "2026-11-16T00:00:20Z", **conditions(Blocked="False")}),
    )
    hosts = store(("here", {"phase": "Ready"}), ("away", {"phase": "Lost"}), ("tight", {"phase": "Pressed"}))
    processes = store(
        ("runs", {"phase": "Running", **conditions(Ready="True")}),
        ("out", {"phase": "Evicted", **conditions(Ready="False")}),
        ("broken", {"phase": "Failed", **conditions(Ready="False")}),
    )
    registry.register(OperatorMetrics(endpoints, teardowns, hosts, processes))
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    who = 'name="{}",namespace="chat",target="assistant"'
    assert lines == [
        'pilotage_endpoints{phase="Degraded"} 1.0',
        'pilotage_endpoints{phase="Deleting"} 1.0',
        'pilotage_endpoints{phase="Pending"} 6.0',
        'pilotage_endpoints{phase="Serving"} 1.0',
        'pilotage_endpoint_degraded{name="bad",namespace="chat",reason="R"} 1.0',
        'pilotage_endpoint_route_not_programmed{name="bad",namespace="chat"} 1.0',
        'pilotage_rollout_step{name="rolls",namespace="chat",revision="rolls-2"} 3.0',
        'pilotage_rollout_step{name="ticks",namespace="chat",revision="ticks-2"} 1.0',
        'pilotage_rollout_step{name="held",namespace="chat",revision="held-2"} 1.0',
        'pilotage_rollout_weight{kind="wanted",name="rolls",namespace="chat",revision="rolls-2"} 25.0',
        'pilotage_rollout_aborted{name="back",namespace="chat"} 1.0',
        'pilotage_rollout_waiting{name="rolls",namespace="chat",phase="Pausing",revision="rolls-2"} 1.0',
        'pilotage_rollout_waiting{name="held",namespace="chat",phase="Held",revision="held-2"} 1.0',
        f"pilotage_teardown_blocked{{{who.format('stuck')}}} 1.0",
        f"pilotage_teardown_started_timestamp_seconds{{{who.format('stuck')}}} 1.79478721e+09",
        f"pilotage_teardown_started_timestamp_seconds{{{who.format('going')}}} 1.79478722e+09",
        'pilotage_host_lost{name="away"} 1.0',
        'pilotage_host_memory_pressure{name="tight"} 1.0',
        'pilotage_host_process_evicted{host="gpu-1",name="out",namespace="chat"} 1.0',
        'pilotage_host_process_failed{host="gpu-1",name="broken",namespace="chat",reason="R"} 1.0',
    ]
