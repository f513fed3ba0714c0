"""What an agent counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.runtime.instruments import Counters, Levels

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from pilotage.kube import ObjectKey


class Tally:
    """All of it; each has a line of its own where it is scraped."""

    def __init__(self, to: CollectorRegistry) -> None:
        self._phases: dict[ObjectKey, str] = {}
        self._processes = Levels("pilotage_agent_processes", "HostProcesses of this host by phase", ["phase"], to)
        self.restarts = Counters("pilotage_agent_restarts", "Servers that ended by themselves, or were sick", [], to)
        self.takedowns = Counters("pilotage_agent_takedowns", "Servers taken down and proven gone", ["reason"], to)
        self.failures = Counters("pilotage_agent_takedown_failures", "Attempts that could not be finished", [], to)
        self.killed = Counters("pilotage_agent_killed_processes", "Processes that needed SIGKILL", [], to)
        self.checks = Counters("pilotage_agent_health_checks", "Checks of servers by what came of them", ["result"], to)
        self.pressure = Levels("pilotage_agent_memory_pressure", "0 normal, 1 warning, 2 critical", [], to)
        for each in (self.restarts, self.failures, self.killed, self.pressure):
            each.labels().value = 0  # seen from the start, so that a rise can be

    def show(self, key: ObjectKey, phase: str) -> None:
        """The phase of one HostProcess; empty for one that is gone."""
        before = self._phases.pop(key, "")
        if before:
            self._processes.labels(before).value -= 1
        if phase:
            self._phases[key] = phase
            self._processes.labels(phase).value += 1
