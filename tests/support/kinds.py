"""Kinds that tests use, objects of them, and a kind of one's own."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any

from pilotage.kube import Absent, Client, Json, KindNotServed, Object, Propagation, Resource
from tests.support.waiting import eventually

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "data": data or {}}


def pod(name: str, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [{"name": "main", "image": "none"}]}}


def deployment(name: str, replicas: int = 1) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def definition(resource: Resource, short_name: str = "wd") -> Json:
    """The CustomResourceDefinition of a kind of one's own, which keeps unknown fields and has a status."""
    names = {
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "kind": resource.kind,
        "shortNames": [short_name],
    }
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}},
    }
    spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": str(resource)}, "spec": spec}


@contextlib.asynccontextmanager
async def served(client: Client, resource: Resource, short_name: str = "wd") -> AsyncIterator[Object]:
    """A kind of one's own, served for the time of the block. (Its first object takes the server 2 s.)"""
    async with existing(client, CRDS, definition(resource, short_name)) as crd:
        await eventually(lambda: _served(client, resource))
        yield crd


def widgets(version: str = "v1") -> Resource:
    """A kind in a group of its own."""
    return Resource(f"g{secrets.token_hex(4)}.example.com", version, "widgets", "Widget")


@contextlib.asynccontextmanager
async def existing(client: Client, resource: Resource, body: Json, namespace: str = "") -> AsyncIterator[Object]:
    """An object that exists during the block; for kinds without a namespace, which no other cleanup covers."""
    created = await client.create(resource, body, namespace=namespace)
    try:
        yield created
    finally:
        with contextlib.suppress(Absent):
            await client.delete(resource, created.key, uid=created.meta.uid, propagation=Propagation.BACKGROUND)


async def delete(client: Client, resource: Resource, obj: Object) -> Object | None:
    """Delete just this object, in the background."""
    return await client.delete(resource, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)


async def _served(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource)
    except KindNotServed:
        return False
    return True
