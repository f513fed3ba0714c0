"""CustomResourceDefinitions of our kinds, generated from their types.

The types give the schema (defaults, bounds, patterns, descriptions); `cel_rules` has the rules that no type can
express. Defaults are given in specs only: a status has what its controller wrote and nothing else.

A later schema may be stricter: the API server (from 1.30 on) does not validate unchanged fields again, so that an
object that was valid once can still be changed elsewhere, and lose its finalizers. A test shows it.
"""

from functools import cache
from typing import NamedTuple

import msgspec

from pilotage.api.base import Schema
from pilotage.api.cel_rules import RULES
from pilotage.api.endpoint import Endpoint
from pilotage.api.experiment import Experiment
from pilotage.api.gateway_route import GatewayRoute
from pilotage.api.host import Host, HostProcess, HostServices
from pilotage.api.model import Model
from pilotage.api.names import (
    ENDPOINTS,
    EXPERIMENTS,
    GATEWAY_ROUTES,
    HOST_SERVICES,
    HOSTS,
    MODELS,
    PROCESSES,
    TEARDOWNS,
)
from pilotage.api.structural import structural
from pilotage.api.teardown import Teardown
from pilotage.kube import Json, Resource


class Column(NamedTuple):
    """A printer column of ``kubectl get``; a `wide` one is shown with ``-o wide`` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def written(self) -> Json:
        """Entry of additionalPrinterColumns."""
        made: Json = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**made, "priority": 1} if self.wide else made


AGE = Column("Age", ".metadata.creationTimestamp", "date")


class Definition(NamedTuple):
    """One of our kinds: its resource, its type, and how kubectl shows it."""

    resource: Resource
    type: type[Schema]
    short_name: str
    columns: tuple[Column, ...]
    categories: tuple[str, ...] = ("pilotage",)
    scale: Json | None = None


DEFINITIONS = (
    Definition(
        MODELS,
        Model,
        "mdl",
        (
            Column("Source", ".spec.source"),
            Column("Phase", ".status.phase"),
            Column("Size", ".status.bytes.total", "integer"),
            AGE,
            Column("Format", ".status.format.kind", wide=True),
            Column("Architecture", ".status.format.architecture", wide=True),
            Column("Quantization", ".status.format.quantization", wide=True),
        ),
    ),
    Definition(
        ENDPOINTS,
        Endpoint,
        "se",
        (
            Column("Model", ".spec.model['name','source']"),
            Column("Placement", ".spec.placement.kind"),
            Column("Ready", ".status.ready"),
            Column("Phase", ".status.phase"),
            Column("Deleting", ".metadata.deletionTimestamp", "date"),
            Column("URL", ".status.url"),
            AGE,
            Column("Revision", ".status.revision", wide=True),
            Column("Route", ".spec.route.kind", wide=True),
            Column("Waiting", ".status.waitingFor", wide=True),
        ),
        categories=("all", "pilotage"),
        scale={
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas.ready",
            "labelSelectorPath": ".status.selector",
        },
    ),
    Definition(
        EXPERIMENTS,
        Experiment,
        "exp",
        (
            Column("Endpoint", ".spec.endpoint.name"),
            Column("Phase", ".status.phase"),
            Column("Variants", ".status.summary"),
            Column("Verdict", ".status.verdict.result"),
            Column("Until", ".status.until", "date"),
            AGE,
            Column("Reason", ".status.reason", wide=True),
            Column("Waiting", ".status.waitingFor", wide=True),
        ),
    ),
    Definition(
        TEARDOWNS,
        Teardown,
        "td",
        (
            Column("Target", ".spec.target.name"),
            Column("Phase", ".status.phase"),
            Column("Waiting-For", ".status.waitingFor"),
            Column("Left", ".status.left", "integer"),
            AGE,
            Column("Reason", ".spec.reason", wide=True),
        ),
    ),
    Definition(
        HOSTS,
        Host,
        "hst",
        (
            Column("Phase", ".status.phase"),
            Column("Address", ".status.addresses[0]"),
            Column("Processes", ".status.processes", "integer"),
            Column("Memory", ".status.memoryBytes", "integer"),
            Column("Free", ".status.freeBytes", "integer"),
            AGE,
            Column("Version", ".status.agentVersion", wide=True),
        ),
    ),
    Definition(
        PROCESSES,
        HostProcess,
        "hp",
        (
            Column("Endpoint", ".spec.endpoint"),
            Column("Host", ".spec.host"),
            Column("Phase", ".status.phase"),
            Column("Ready", ".status.ready", "boolean"),
            Column("Restarts", ".status.restarts", "integer"),
            AGE,
            Column("Address", ".status.address", wide=True),
            Column("Port", ".status.port", "integer", wide=True),
            Column("Message", ".status.message", wide=True),
        ),
    ),
    Definition(HOST_SERVICES, HostServices, "hs", (AGE,)),
    Definition(
        GATEWAY_ROUTES,
        GatewayRoute,
        "gr",
        (
            Column("Endpoint", ".spec.endpoint"),
            Column("State", ".status.state"),
            Column("Host", ".spec.host"),
            AGE,
            Column("Message", ".status.message", wide=True),
        ),
    ),
)


def crds_of_types() -> list[Json]:
    """The CustomResourceDefinitions of all our kinds, sorted by name, without the choices that registries have.

    `operator.crds` adds those. Each call gives a copy that may be changed.
    """
    made: list[Json] = msgspec.json.decode(_encoded())
    return made


@cache
def _encoded() -> bytes:
    """Generated once: it takes as long as many requests do."""
    return msgspec.json.encode(
        sorted((_crd(each) for each in DEFINITIONS), key=lambda crd: str(crd["metadata"]["name"]))
    )


def _crd(definition: Definition) -> Json:
    resource = definition.resource
    schema = _schema(definition.type)
    subresources: Json = {"status": {}} if "status" in schema["properties"] else {}
    if definition.scale:
        subresources["scale"] = definition.scale
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Without it `helm uninstall` would delete every object of the kind.
        "metadata": {"name": str(resource), "annotations": {"helm.sh/resource-policy": "keep"}},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "shortNames": [definition.short_name],
                "categories": list(definition.categories),
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": subresources,
                    "additionalPrinterColumns": [column.written() for column in definition.columns],
                }
            ],
        },
    }


def _schema(kind: type[Schema]) -> Json:
    made = structural(kind, {part: [rule.written() for rule in of] for part, of in RULES.items()})
    made["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **made["properties"],
    }
    if "status" in made["properties"]:
        made["properties"]["status"] = _without_defaults(made["properties"]["status"])
    return made


def _without_defaults(schema: Json) -> Json:
    """The schema without its defaults, at all depths; a field that is called "default" stays."""
    made = {name: value for name, value in schema.items() if name != "default"}
    if "properties" in made:
        made["properties"] = {name: _without_defaults(each) for name, each in made["properties"].items()}
    for within in ("items", "additionalProperties"):
        if within in made:
            made[within] = _without_defaults(made[within])
    return made
