"""Ledgers, observations and worlds for tests of the deciding parts: short to write, and the same each time."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pilotage.api.names import ENDPOINTS, GATEWAY_ROUTES, HOSTS, MODELS, PROCESSES
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import phase_of
from pilotage.kube import GroupKind, Object, Resource
from pilotage.kube.wire import format_time
from pilotage.teardown.engine.decision import Observation
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Policy
from pilotage.teardown.snapshot.world import Item, KindReading, State, World

NOW = dt.datetime(2026, 1, 1, 12, 0, tzinfo=dt.UTC)
STARTED = NOW - dt.timedelta(seconds=100)
UNTIL = STARTED + dt.timedelta(seconds=600)

KINDS = {
    resource.kind: resource
    for resource in (
        Resource("apps", "v1", "deployments", "Deployment"),
        Resource("apps", "v1", "replicasets", "ReplicaSet"),
        Resource("", "v1", "pods", "Pod"),
        Resource("", "v1", "services", "Service"),
        Resource("", "v1", "configmaps", "ConfigMap"),
        Resource("", "v1", "secrets", "Secret"),
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
        Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False),
        Resource("", "v1", "namespaces", "Namespace", namespaced=False),
        Resource("", "v1", "endpoints", "Endpoints"),
        MODELS,
        ENDPOINTS,
        HOSTS,
        PROCESSES,
        Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
        Resource("networking.istio.io", "v1", "virtualservices", "VirtualService"),
        Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute"),
        Resource("projectcontour.io", "v1", "httpproxies", "HTTPProxy"),
        GATEWAY_ROUTES,
        Resource("networking.k8s.io", "v1", "ingresses", "Ingress"),
        Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        Resource("protection.crossplane.io", "v1beta1", "usages", "Usage"),
        Resource(
            "admissionregistration.k8s.io",
            "v1",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            namespaced=False,
        ),
        Resource("test.dev", "v1", "apps", "App"),
        Resource("test.dev", "v1", "stages", "Stage"),
        Resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
        ),
    )
}


def seconds(number: float) -> dt.timedelta:
    return dt.timedelta(seconds=number)


def ago(number: float) -> str:
    return format_time(NOW - seconds(number))


def entry(kind: str, name: str = "web", **more: Any) -> Entry:
    """An entry whose uid is its name, unless it says otherwise."""
    resource = KINDS[kind]
    defaults: dict[str, Any] = {
        "resource": resource,
        "namespace": "shop" if resource.namespaced else "",
        "name": name,
        "uid": uid(kind, name),
        "phase": phase_of(GroupKind(resource.group, kind)),
        "disposition": Disposition.DELETE,
        "reason": "named",
    }
    return Entry(**(defaults | more))


def uid(kind: str, name: str = "web") -> str:
    return f"{kind}-{name}".lower()


def ledger(*entries: Entry, **policy: Any) -> Ledger:
    return Ledger(
        targets=("deployment/web -n shop",), started=format_time(STARTED), policy=Policy(**policy), entries=entries
    )


PRESENT = Observation(State.PRESENT)
GONE = Observation(State.GONE, gone_at=NOW - seconds(50))
FOREIGN = Observation(State.FOREIGN, gone_at=NOW - seconds(50))
UNKNOWN = Observation(State.UNKNOWN, problem="no answer")


def terminating(*finalizers: str, since: float = 1, grace: int = 0) -> Observation:
    return Observation(State.TERMINATING, finalizers, deletion=ago(since), grace_seconds=grace)


def item(
    kind: str,
    name: str = "web",
    *,
    owners: tuple[Item, ...] = (),
    finalizers: tuple[str, ...] = (),
    terminating: bool = False,
    labels: dict[str, str] | None = None,
    namespace: str | None = None,
    uid_: str = "",
    **body: Any,
) -> Item:
    """A whole object, as it would have been read."""
    resource = KINDS[kind]
    metadata: dict[str, Any] = {
        "name": name,
        "uid": uid_ or uid(kind, name),
        "resourceVersion": "1",
        "finalizers": [*finalizers],
        "labels": labels or {},
        "ownerReferences": [
            {
                "apiVersion": owner.resource.api_version,
                "kind": owner.resource.kind,
                "name": owner.meta.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
            for owner in owners
        ],
    }
    if resource.namespaced:
        metadata["namespace"] = "shop" if namespace is None else namespace
    if terminating:
        metadata |= {"deletionTimestamp": ago(1), "deletionGracePeriodSeconds": 0}
    whole = {"apiVersion": resource.api_version, "kind": kind, "metadata": metadata, **body}
    return Item(resource, Object.from_dict(whole), full=True)


def world_of(*items: Item) -> World:
    """A world in which all kinds were read."""
    world = World(NOW, live=True)
    for resource in KINDS.values():
        world.read_kind(KindReading(resource, "1"))
    for each in items:
        world.add(each)
    return world


__all__ = [
    "FOREIGN",
    "GONE",
    "KINDS",
    "NOW",
    "PRESENT",
    "STARTED",
    "UNKNOWN",
    "UNTIL",
    "Phase",
    "ago",
    "entry",
    "item",
    "ledger",
    "seconds",
    "terminating",
    "uid",
    "world_of",
]
