"""Validation rules in CEL, for what no type can express, each with the message that a user gets.

Every rule stands at the smallest part of an object that it is about. The API server does not validate an unchanged part
against a rule that was added later, so an object that was valid once can always lose its finalizers. The whole object
is never unchanged in that sense: a rule about it is for creation alone (`on_create`).
"""

from typing import NamedTuple

from pilotage.api.base import Schema
from pilotage.api.endpoint import Autoscaling, Endpoint, ModelChoice, Placement
from pilotage.api.experiment import ExperimentSpec
from pilotage.api.gateway_route import GatewayRouteSpec
from pilotage.api.host import ProcessSpec
from pilotage.api.strategy import CanaryScale, CanaryStep, Strategy
from pilotage.api.teardown import TeardownSpec
from pilotage.api.traffic import AssignmentKey
from pilotage.api.variant import VariantSpec
from pilotage.kube import Json

ENDPOINT_NAME_MAX = 52
"""A revision's parts are called NAME-N, and what they are called is a label of at most 63 characters on pods."""


GATEWAY_HOST = "(self.host.matches('[^*.][.]') && !self.host.endsWith('.localhost'))"
GATEWAY_HOST_MESSAGE = (
    "the host of a route of the gateway is a name with a dot in it, such as chat.example.com, that is not localhost: "
    "all others are names of machines, and by these clients reach the gateway itself"
)


class CelRule(NamedTuple):
    """An expression that has to be true of `self`."""

    rule: str
    message: str
    on_create: bool = False

    def written(self) -> Json:
        """Entry of x-kubernetes-validations."""
        if self.on_create:
            return {"rule": f"oldSelf.hasValue() || ({self.rule})", "message": self.message, "optionalOldSelf": True}
        return {"rule": self.rule, "message": self.message}


def _exactly_one(kind: type[Schema]) -> str:
    """An expression: exactly one field is set."""
    return f"[{', '.join(f'has(self.{name})' for name in kind.__struct_encode_fields__)}].filter(set, set).size() == 1"


def _unchanged_but(kind: type[Schema], name: str) -> str:
    """An expression: every field but one is unchanged."""
    others = [each for each in kind.__struct_encode_fields__ if each != name]
    same = "has(self.{0}) == has(oldSelf.{0}) && (!has(self.{0}) || self.{0} == oldSelf.{0})"
    return " && ".join(same.format(each) for each in others)


RULES: dict[type[Schema], tuple[CelRule, ...]] = {
    Endpoint: (
        CelRule(
            f"self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= "
            f"{ENDPOINT_NAME_MAX}",
            "the name of a ServingEndpoint becomes that of Services: at most "
            f"{ENDPOINT_NAME_MAX} characters of a-z, 0-9 and '-', a letter first, no '-' last",
            on_create=True,
        ),
    ),
    ModelChoice: (
        CelRule("has(self.name) != has(self.source)", "give exactly one of name (a Model) and source"),
        CelRule(
            "has(self.source) || !has(self.sha256) && !has(self.secretRef)",
            "sha256 and secretRef go with source; where name is given, the Model has its own",
        ),
    ),
    Placement: (
        CelRule(
            "self.kind != 'Host' || has(self.host) != has(self.hostSelector)",
            "placement on a Host needs exactly one of host and hostSelector",
        ),
        CelRule(
            "self.kind == 'Host' || !has(self.host) && !has(self.hostSelector)",
            "host and hostSelector are for placement.kind Host",
        ),
    ),
    Autoscaling: (CelRule("self.min <= self.max", "min must not be greater than max"),),
    VariantSpec: (
        CelRule("has(self.weight) != has(self.mirror)", "a variant has either a weight or a mirror"),
        CelRule(
            "[has(self.overrides), has(self.revision), has(self.same) && self.same].filter(x, x).size() == 1",
            "a variant has exactly one of overrides, revision and same: true",
        ),
    ),
    ExperimentSpec: (
        CelRule(
            "self.variants.map(x, has(x.weight) ? x.weight : 0).sum() < 100",
            "the weights of the variants add up to 100 or more: the serving revision has to keep a share",
        ),
        CelRule(
            "self.endpoint == oldSelf.endpoint",
            "an Experiment stays on its endpoint: create another one",
        ),
    ),
    AssignmentKey: (CelRule(_exactly_one(AssignmentKey), "give exactly one of header and body"),),
    Strategy: (
        CelRule("self.type == 'Canary' || !has(self.canary)", "canary is for strategy.type Canary"),
        CelRule(
            "self.type != 'Canary' || has(self.canary)",
            "strategy.type Canary needs canary with steps, such as canary: {steps: [{setWeight: 10}, {pause: {}}]}",
        ),
    ),
    CanaryStep: (
        CelRule(
            _exactly_one(CanaryStep), "give exactly one of setWeight, setScale, pause, analysis, experiment and job"
        ),
    ),
    CanaryScale: (CelRule(_exactly_one(CanaryScale), "give exactly one of replicas, percent and follow"),),
    GatewayRouteSpec: (CelRule(f"!has(self.host) || {GATEWAY_HOST}", GATEWAY_HOST_MESSAGE),),
    ProcessSpec: (
        CelRule(
            "!has(oldSelf.host) || has(self.host) && self.host == oldSelf.host",
            "a HostProcess stays on its Host: delete it, and another one takes its place",
        ),
        CelRule(
            _unchanged_but(ProcessSpec, "host"),
            "the spec of a HostProcess cannot be changed: another spec is another process",
        ),
    ),
    TeardownSpec: (
        CelRule("self == oldSelf", "the spec of a Teardown cannot be changed: what goes was decided when it was made"),
    ),
}
"""Rules by the type that they hold for."""
