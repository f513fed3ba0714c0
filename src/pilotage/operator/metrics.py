"""Metrics of endpoints, teardowns and Hosts that need attention, counted from the caches at each scrape.

Only an object that is in trouble has a series of its own: a large and healthy cluster has none. Hosts and their
processes are counted here and not by their agents: an agent that is gone says nothing, and not every machine can be
scraped from the cluster.
"""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pilotage.api.names import TEARDOWN_DONE
from pilotage.kube import Json, Object
from pilotage.kube.wire import parse_time
from pilotage.runtime.store import Store
from pilotage.teardown.snapshot.fields import entries, number, text

WHO = ("namespace", "name")
TEARDOWN = (*WHO, "target")
ROLLOUT = (*WHO, "revision")
PROCESS = (*WHO, "host")


class OperatorMetrics(Collector):
    """Collector for a Prometheus registry."""

    def __init__(self, endpoints: Store, teardowns: Store, hosts: Store, processes: Store) -> None:
        self._endpoints = endpoints
        self._teardowns = teardowns
        self._hosts = hosts
        self._processes = processes

    def collect(self) -> Iterable[Metric]:
        """All metrics, for one scrape."""
        phases: Counter[str] = Counter()
        by_phase = GaugeMetricFamily("pilotage_endpoints", "Endpoints by phase", labels=("phase",))
        degraded = GaugeMetricFamily(
            "pilotage_endpoint_degraded", "1 for one that is degraded", labels=(*WHO, "reason")
        )
        unrouted = GaugeMetricFamily(
            "pilotage_endpoint_route_not_programmed", "1 for one whose route is not in place", labels=WHO
        )
        for endpoint in self._endpoints.list():
            phase = endpoint.get("status", "phase", default="") or "Pending"
            phases[phase] += 1
            for condition in _conditions(endpoint):
                match condition.get("type"), condition.get("status"):
                    case "Degraded", "True":
                        degraded.add_metric((*_who(endpoint), str(condition.get("reason"))), 1)
                    case "RouteProgrammed", "False" if phase != "Deleting":
                        unrouted.add_metric(_who(endpoint), 1)
        for phase, count in sorted(phases.items()):
            by_phase.add_metric((phase,), count)
        return (
            by_phase,
            degraded,
            unrouted,
            *self._of_rollouts(),
            *self._of_teardowns(),
            *self._of_hosts(),
            *self._of_processes(),
        )

    def _of_rollouts(self) -> Iterable[Metric]:
        step = GaugeMetricFamily("pilotage_rollout_step", "Step of a rollout that is under way", labels=ROLLOUT)
        weight = GaugeMetricFamily("pilotage_rollout_weight", "Weight of a candidate", labels=(*ROLLOUT, "kind"))
        aborted = GaugeMetricFamily("pilotage_rollout_aborted", "1 for one whose last rollout was aborted", labels=WHO)
        waiting = GaugeMetricFamily(
            "pilotage_rollout_waiting", "1 for one that goes on only if somebody acts", labels=(*ROLLOUT, "phase")
        )
        for endpoint in self._endpoints.list():
            rollout = endpoint.get("status", "rollout", default=None) or {}
            if rollout.get("phase") == "Aborted":
                aborted.add_metric(_who(endpoint), 1)
            if rollout.get("phase") in (None, "Aborted", "Promoted"):
                continue
            who = (*_who(endpoint), str(rollout.get("revision")))
            step.add_metric(who, rollout.get("step", 0))
            if _waits_for_person(endpoint, rollout):
                waiting.add_metric((*who, str(rollout.get("phase"))), 1)
            for kind, value in rollout.get("weight", {}).items():
                weight.add_metric((*who, kind), value)
        return step, weight, aborted, waiting

    def _of_teardowns(self) -> Iterable[Metric]:
        blocked = GaugeMetricFamily("pilotage_teardown_blocked", "1 for one that does not go on", labels=TEARDOWN)
        started = GaugeMetricFamily(
            "pilotage_teardown_started_timestamp_seconds", "When one began that is not finished", labels=TEARDOWN
        )
        for record in self._teardowns.list():
            if record.get("status", "phase") == TEARDOWN_DONE:
                continue
            who = (*_who(record), str(record.get("spec", "target", "name", default="")))
            if any(each.get("type") == "Blocked" and each.get("status") == "True" for each in _conditions(record)):
                blocked.add_metric(who, 1)
            since = record.get("status", "started")
            if isinstance(since, str):
                started.add_metric(who, parse_time(since).timestamp())
        return blocked, started

    def _of_hosts(self) -> Iterable[Metric]:
        lost = GaugeMetricFamily("pilotage_host_lost", "1 for one whose agent is lost", labels=("name",))
        pressed = GaugeMetricFamily(
            "pilotage_host_memory_pressure", "1 for one that is short of memory", labels=("name",)
        )
        for host in self._hosts.list():
            match host.get("status", "phase", default=None):
                case "Lost":
                    lost.add_metric((host.meta.name,), 1)
                case "Pressed":
                    pressed.add_metric((host.meta.name,), 1)
        return lost, pressed

    def _of_processes(self) -> Iterable[Metric]:
        evicted = GaugeMetricFamily("pilotage_host_process_evicted", "1 for one that was evicted", labels=PROCESS)
        failed = GaugeMetricFamily(
            "pilotage_host_process_failed", "1 for one that cannot run", labels=(*PROCESS, "reason")
        )
        for process in self._processes.list():
            who = (*_who(process), str(process.get("spec", "host", default=None) or ""))
            match process.get("status", "phase", default=None):
                case "Evicted":
                    evicted.add_metric(who, 1)
                case "Failed":
                    reasons = [str(each.get("reason")) for each in _conditions(process) if each.get("type") == "Ready"]
                    failed.add_metric((*who, *(reasons or [""])), 1)
        return evicted, failed


def _waits_for_person(endpoint: Object, rollout: Json) -> bool:
    """Whether it is held, or in a pause that time does not end. An analysis without a result pauses so."""
    if rollout.get("phase") != "Pausing":
        return rollout.get("phase") == "Held"
    steps = entries(endpoint.get("spec", default={}), "strategy", "canary", "steps")
    return not any(text(each, "pause", "duration") for each in steps[number(rollout, "step") - 1 :][:1])


def _who(obj: Object) -> tuple[str, str]:
    return obj.meta.namespace, obj.meta.name


def _conditions(obj: Object) -> list[dict[str, object]]:
    found = obj.get("status", "conditions")
    return found if isinstance(found, list) else []
