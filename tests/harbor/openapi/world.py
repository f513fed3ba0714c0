"""A core that serves a few kinds, for tests of what is published about them."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_harbor.apimachinery.users import UserInfo
from pilotage_harbor.kinds import Kind
from pilotage_harbor.kinds.registry import Registry
from pilotage_harbor.openapi import serve
from pilotage_harbor.schema import SchemaNode

Json = dict[str, Any]

GROUP = "stable.example.com"
CRONTABS = f"crontabs.{GROUP}"
BUILTIN = [
    Kind("", "v1", "pods", "Pod", SchemaNode(), subresources=frozenset({"status", "log", "eviction"})),
    Kind("", "v1", "nodes", "Node", SchemaNode(), namespaced=False),
    Kind("apps", "v1", "deployments", "Deployment", SchemaNode(), subresources=frozenset({"status", "scale"})),
    Kind("rbac.authorization.k8s.io", "v1", "roles", "Role", SchemaNode()),
    Kind(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        SchemaNode(),
        namespaced=False,
    ),
    Kind(
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        "APIService",
        SchemaNode(),
        namespaced=False,
        verbs=("get", "list"),
    ),
]


def crontab(version: str = "v1") -> Kind:
    return Kind(
        GROUP, version, "crontabs", "CronTab", SchemaNode(), custom=True, subresources=frozenset({"status", "scale"})
    )


def crd(schema: Json | None, version: str = "v1", **more: object) -> Json:
    made: Json = {"name": version, "served": True, "storage": True, **more}
    if schema is not None:
        made["schema"] = {"openAPIV3Schema": schema}
    return {"metadata": {"name": CRONTABS}, "spec": {"group": GROUP, "versions": [made]}}


class World:
    """The parts of a core that are published."""

    def __init__(self) -> None:
        self.registry = Registry(BUILTIN)
        self.crds: dict[str, Json] = {}

    def get(self, storage: str, namespace: str, name: str) -> Json | None:
        assert (storage, namespace) == ("customresourcedefinitions.apiextensions.k8s.io", "")
        return self.crds.get(name)

    def now(self) -> float:
        return 0.0

    def define(self, definition: Json, *kinds: Kind) -> None:
        self.crds[CRONTABS] = definition
        self.registry.serve_custom(CRONTABS, list(kinds or [crontab()]))

    def ask(
        self, path: str, method: str = "GET", query: dict[str, list[str]] | None = None, **headers: str
    ) -> ServerResponse:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return serve(self, Call(method, path, query or {}, sent, b"", UserInfo("me")))  # type: ignore[arg-type]

    def document(self, path: str) -> Json:
        answer = self.ask(path)
        assert answer.status == 200
        decoded: Json = msgspec.json.decode(answer.body)
        return decoded


def references(value: object) -> set[str]:
    """All that is referred to in a document."""
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(part) for part in value.values()))
    return set().union(*(references(part) for part in value)) if isinstance(value, list) else set()
