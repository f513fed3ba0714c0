"""Worlds from manifests, for tests that need no cluster."""

from __future__ import annotations

import datetime as dt
from typing import Any

import yaml

from pilotage.catalogue.relation import RelationRow
from pilotage.kube import Json, Object, Resource
from pilotage.teardown.relations import BUILT_IN, relate
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.world import Item, KindReading, World

NOW = dt.datetime(2026, 11, 15, 12, 0, tzinfo=dt.UTC)
CLUSTER_SCOPED = {
    "APIService", "Bucket", "ClusterAnalysisTemplate", "ClusterIssuer", "ClusterRole", "ClusterRoleBinding",
    "ClusterServingRuntime", "ClusterTriggerAuthentication", "ClusterUsage", "Composition", "CSIDriver",
    "CustomResourceDefinition", "Function", "GatewayClass", "IngressClass", "MutatingWebhookConfiguration", "Namespace",
    "Node", "PersistentVolume", "PriorityClass", "ProviderConfig", "ProviderConfigUsage", "RuntimeClass",
    "StorageClass", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeSnapshotClass",
    "VolumeSnapshotContent", "XDatabase",
}  # fmt: skip
NAMESPACE = "shop"


def item_of(body: Json, *, full: bool = True) -> Item:
    """An object. Its namespace and uid are made up where the manifest leaves them out."""
    group, _, version = body["apiVersion"].rpartition("/")
    kind = body["kind"]
    namespaced = kind not in CLUSTER_SCOPED
    meta = {"namespace": NAMESPACE} if namespaced else {}
    meta |= body.get("metadata", {})
    meta.setdefault("uid", f"{kind}/{meta.get('name')}".lower())
    resource = Resource(group, version, f"{kind.lower()}s", kind, namespaced)
    return Item(resource, Object.from_dict(body | {"metadata": meta}), full=full)


def world_of(manifests: str | list[Json], *, live: bool = False, full: bool = True) -> World:
    """A world in which the kinds of these manifests were read, and no others."""
    bodies = list(yaml.safe_load_all(manifests)) if isinstance(manifests, str) else manifests
    world = World(NOW, live=live)
    for body in bodies:
        if body:
            item = item_of(body, full=full)
            world.add(item)
            world.read_kind(KindReading(item.resource))
    return world


def owned_by(kind: str, name: str, *, api_version: str = "apps/v1", uid: str | None = None) -> list[dict[str, Any]]:
    """ownerReferences with one controller."""
    uid = f"{kind}/{name}".lower() if uid is None else uid
    return [{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}]


def told(edge: Edge) -> str:
    """An edge in a line; `!` marks what is not there."""
    return f"{edge.source} {edge.relation} {edge.name}{'' if edge.target else ' !'} @ {edge.field}"


def edges_of(manifests: str | list[Json], rows: tuple[RelationRow, ...] = BUILT_IN) -> list[str]:
    """All edges of these manifests, in lines without the namespace of all."""
    world = world_of(manifests)
    return lines_of(relate(world, rows), world)


def lines_of(graph: Graph, world: World) -> list[str]:
    lines = [told(edge) for item in world for edge in graph.out_of(item.uid)]
    return [line.replace(f" -n {NAMESPACE}", "") for line in lines]
