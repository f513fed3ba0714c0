"""Metrics of the agent."""

from prometheus_client import CollectorRegistry

from pilotage.kube import ObjectKey
from pilotage.runtime.instruments import Counters, Levels


class AgentMetrics:
    """The instruments, in one registry."""

    def __init__(self, to: CollectorRegistry) -> None:
        self._phases: dict[ObjectKey, str] = {}
        self._processes = Levels("pilotage_agent_processes", "HostProcesses of this host by phase", ["phase"], to)
        self.restarts = Counters(
            "pilotage_agent_restarts", "Servers that ended by themselves, or were unhealthy", [], to
        )
        self.stops = Counters("pilotage_agent_stops", "Servers stopped and proven gone", ["reason"], to)
        self.failures = Counters("pilotage_agent_takedown_failures", "Attempts to stop a server that failed", [], to)
        self.killed = Counters("pilotage_agent_killed_processes", "Processes that needed SIGKILL", [], to)
        self.checks = Counters("pilotage_agent_health_checks", "Probes of servers by result", ["result"], to)
        self.pressure = Levels("pilotage_agent_memory_pressure", "0 normal, 1 warning, 2 critical", [], to)
        for each in (self.restarts, self.failures, self.killed, self.pressure):
            each.labels().value = 0  # exported from the start, so that a rise is visible

    def show(self, key: ObjectKey, phase: str) -> None:
        """The phase of one HostProcess; empty for one that is gone."""
        before = self._phases.pop(key, "")
        if before:
            self._processes.labels(before).value -= 1
        if phase:
            self._phases[key] = phase
            self._processes.labels(phase).value += 1
