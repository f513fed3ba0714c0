"""What the shape of a field cannot say: rules in CEL, each with the sentence that a person gets.

Every rule stands at the smallest part of an object that it is about. The API server does not hold an unchanged part
against a rule that came later, so an object that was valid once can always lose its finalizers. The whole object is
never unchanged in that sense: a rule about it looks at creation alone (`on_create`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage.kinds.endpoint import (
    Autoscaling,
    Endpoint,
    EndpointSpec,
    ModelChoice,
    Placement,
    Route,
    Runtime,
)
from pilotage.kinds.host import ProcessSpec
from pilotage.kinds.teardown import TeardownSpec

if TYPE_CHECKING:
    from pilotage.kinds.base import Part
    from pilotage.kube import Json

ENDPOINT_NAME_MAX = 52
"""A revision's parts are called NAME-N, and what they are called is a label of at most 63 characters on pods."""


class Rule(NamedTuple):
    """`rule` has to be true of `self`."""

    rule: str
    message: str
    on_create: bool = False

    def written(self) -> Json:
        """As an entry of x-kubernetes-validations."""
        if self.on_create:
            return {"rule": f"oldSelf.hasValue() || ({self.rule})", "message": self.message, "optionalOldSelf": True}
        return {"rule": self.rule, "message": self.message}


RULES: dict[type[Part], tuple[Rule, ...]] = {
    Endpoint: (
        Rule(
            f"self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= "
            f"{ENDPOINT_NAME_MAX}",
            "the name of a ServingEndpoint becomes that of Services: at most "
            f"{ENDPOINT_NAME_MAX} characters of a-z, 0-9 and '-', a letter first, no '-' last",
            on_create=True,
        ),
    ),
    ModelChoice: (
        Rule("has(self.name) != has(self.source)", "give exactly one of name (a Model) and source"),
        Rule(
            "has(self.source) || !has(self.sha256) && !has(self.secretRef)",
            "sha256 and secretRef go with source; where name is given, the Model has its own",
        ),
    ),
    Runtime: (
        Rule(
            "self.name != 'custom' || has(self.image) || has(self.command) && size(self.command) > 0",
            "a custom runtime needs an image, or on a Host a command",
        ),
    ),
    Placement: (
        Rule(
            "self.kind != 'Host' || has(self.host) != has(self.hostSelector)",
            "placement on a Host needs exactly one of host and hostSelector",
        ),
        Rule(
            "self.kind == 'Host' || !has(self.host) && !has(self.hostSelector)",
            "host and hostSelector are for placement.kind Host",
        ),
    ),
    Autoscaling: (Rule("self.min <= self.max", "min must not be greater than max"),),
    Route: (
        Rule("self.kind != 'HTTPRoute' || has(self.gateway)", "an HTTPRoute needs route.gateway"),
        Rule("self.kind == 'HTTPRoute' || !has(self.gateway)", "gateway is for route.kind HTTPRoute"),
        Rule("self.kind != 'HTTPProxy' || has(self.host)", "an HTTPProxy needs route.host"),
        Rule(
            "self.kind in ['Ingress', 'HTTPProxy'] || !has(self.tls)",
            "tls is for route.kind Ingress and HTTPProxy; the listener of a Gateway has its own",
        ),
    ),
    EndpointSpec: (
        Rule(
            "self.placement.kind != 'Host' || self.route.kind in ['None', 'Gateway']",
            "on a Host, route.kind is None or Gateway: the others lead to pods",
        ),
    ),
    ProcessSpec: (
        Rule(
            "!has(oldSelf.host) || has(self.host) && self.host == oldSelf.host",
            "a HostProcess stays on its Host: delete it, and another one takes its place",
        ),
    ),
    TeardownSpec: (
        Rule("self == oldSelf", "the spec of a Teardown cannot be changed: what goes was decided when it was made"),
    ),
}
"""By the type whose objects they hold for."""
