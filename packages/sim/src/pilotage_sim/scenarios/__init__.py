"""Scenarios that are played under faults, one file each: `pilotage.runtime` itself, endpoints, Models and teardowns."""

from pilotage_sim.scenario import Scenario
from pilotage_sim.scenarios.controller import ControllerScenario
from pilotage_sim.scenarios.endpoint import EndpointLife
from pilotage_sim.scenarios.endpoint_gateway import EndpointBehindGateway
from pilotage_sim.scenarios.informer import InformerScenario
from pilotage_sim.scenarios.leader import LeaderScenario
from pilotage_sim.scenarios.model import ModelScenario
from pilotage_sim.scenarios.teardown import SmallestTeardown
from pilotage_sim.scenarios.teardown_endpoints import (
    DeniedTeardown,
    DeploymentTeardown,
    NamespaceTeardown,
    RecreatedTeardown,
    StuckTeardown,
)
from pilotage_sim.scenarios.teardown_owners import DefinitionTeardown, OperatorLastTeardown, OwnerTeardown

TEARDOWNS = {
    "teardown": SmallestTeardown,
    "teardown-endpoint": DeploymentTeardown,
    "teardown-namespace": NamespaceTeardown,
    "teardown-recreated": RecreatedTeardown,
    "teardown-stuck": StuckTeardown,
    "teardown-denied": DeniedTeardown,
    "teardown-owner": OwnerTeardown,
    "teardown-operator": OperatorLastTeardown,
    "teardown-definition": DefinitionTeardown,
}
SCENARIOS: dict[str, type[Scenario]] = {
    "endpoint": EndpointLife,
    "endpoint-gateway": EndpointBehindGateway,
    "informer": InformerScenario,
    "leader": LeaderScenario,
    "model": ModelScenario,
    "controller": ControllerScenario,
    **TEARDOWNS,
}

__all__ = ["SCENARIOS", "TEARDOWNS", "ControllerScenario", "InformerScenario", "LeaderScenario", "ModelScenario"]
