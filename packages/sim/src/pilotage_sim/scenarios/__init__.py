"""Scenarios that are played under faults, one file each: `pilotage.runtime` itself, endpoints, Models and teardowns."""

from pilotage_sim.scenario import Scenario
from pilotage_sim.scenarios.controller import ControllerScenario
from pilotage_sim.scenarios.endpoint import EndpointLife
from pilotage_sim.scenarios.endpoint_gateway import EndpointBehindGateway
from pilotage_sim.scenarios.experiment import EndpointExperiment
from pilotage_sim.scenarios.informer import InformerScenario
from pilotage_sim.scenarios.leader import LeaderScenario
from pilotage_sim.scenarios.model import ModelScenario
from pilotage_sim.scenarios.rollout import EndpointRollout
from pilotage_sim.scenarios.teardown import SmallestTeardown
from pilotage_sim.scenarios.teardown_by_operator import (
    DefinitionByCaches,
    DeniedByOperator,
    EndpointByOperator,
    NamespaceByCaches,
    OperatorByCaches,
    OwnerByOperator,
    RecreatedByOperator,
    SmallestByOperator,
    StuckByOperator,
)
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
TEARDOWNS_BY_OPERATOR = {
    "teardown-by-operator": SmallestByOperator,
    "teardown-endpoint-by-operator": EndpointByOperator,
    "teardown-namespace-by-caches": NamespaceByCaches,
    "teardown-recreated-by-operator": RecreatedByOperator,
    "teardown-stuck-by-operator": StuckByOperator,
    "teardown-denied-by-operator": DeniedByOperator,
    "teardown-owner-by-operator": OwnerByOperator,
    "teardown-operator-by-caches": OperatorByCaches,
    "teardown-definition-by-caches": DefinitionByCaches,
}
"""The same stories through the operator's observer."""
SCENARIOS: dict[str, type[Scenario]] = {
    "endpoint": EndpointLife,
    "endpoint-gateway": EndpointBehindGateway,
    "rollout": EndpointRollout,
    "experiment": EndpointExperiment,
    "informer": InformerScenario,
    "leader": LeaderScenario,
    "model": ModelScenario,
    "controller": ControllerScenario,
    **TEARDOWNS,
    **TEARDOWNS_BY_OPERATOR,
}

__all__ = [
    "SCENARIOS",
    "TEARDOWNS",
    "TEARDOWNS_BY_OPERATOR",
    "ControllerScenario",
    "InformerScenario",
    "LeaderScenario",
    "ModelScenario",
]
