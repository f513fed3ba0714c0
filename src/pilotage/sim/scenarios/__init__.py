"""The scenarios that `pilotage.runtime` itself is held to, each in its own file."""

from pilotage.sim.scenarios.controller import ControllerScenario
from pilotage.sim.scenarios.informer import InformerScenario
from pilotage.sim.scenarios.leader import LeaderScenario

SCENARIOS = {"informer": InformerScenario, "leader": LeaderScenario, "controller": ControllerScenario}

__all__ = ["SCENARIOS", "ControllerScenario", "InformerScenario", "LeaderScenario"]
