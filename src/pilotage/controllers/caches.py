"""What endpoints are made of, as the cluster has it: one cache for each kind, of labelled objects only.

Of what others make from our parts (ReplicaSets, pods, slices) the metadata is enough. Kinds that a cluster may not
have (Gateway API, Contour, KServe, KEDA; our own that came later, after an upgrade) are empty until it has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage.kinds.names import (
    GATEWAY_ROUTES,
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    PROCESSES,
)
from pilotage.kube import Object, ObjectKey, Resource
from pilotage.serving.resources import (
    AUTOSCALERS,
    CLAIMS,
    DEPLOYMENTS,
    INFERENCE_SERVICES,
    SCALED_OBJECTS,
    SERVICES,
    SLICES,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pilotage.runtime import Informer, Manager

REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
PODS = Resource("", "v1", "pods", "Pod")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
HTTP_PROXIES = Resource("projectcontour.io", "v1", "httpproxies", "HTTPProxy")

MADE_BY_US = (DEPLOYMENTS, SERVICES, CLAIMS, AUTOSCALERS, INGRESSES)
MADE_BY_US_WHERE_SERVED = (
    HTTP_ROUTES,
    HTTP_PROXIES,
    INFERENCE_SERVICES,
    SCALED_OBJECTS,
    PROCESSES,
    GATEWAY_ROUTES,
)
MADE_FROM_OURS = (REPLICA_SETS, PODS, SLICES)

SELECTOR = f"{LABEL_MANAGED_BY}={MANAGED_BY},{LABEL_ENDPOINT_UID}"
_BY_UID = "endpoint uid"
_BY_ENDPOINT = "endpoint"
_BY_OWNER = "owner"


class Seen(NamedTuple):
    """One object of a cache."""

    resource: Resource
    object: Object
    full: bool
    """Whether all of it is known, or its metadata alone."""


class Caches:
    """See the module."""

    def __init__(self, manager: Manager, namespace: str = "") -> None:
        """`namespace`: look at one only."""
        self.informers: dict[Resource, Informer] = {}
        for resource in (*MADE_BY_US, *MADE_BY_US_WHERE_SERVED, *MADE_FROM_OURS):
            informer = manager.informer(
                resource,
                namespace=namespace,
                labels=SELECTOR,
                metadata_only=resource in MADE_FROM_OURS,
                optional=resource in MADE_BY_US_WHERE_SERVED,
            )
            informer.add_index(_BY_UID, _endpoint_uid)
            informer.add_index(_BY_ENDPOINT, _endpoint)
            informer.add_index(_BY_OWNER, _owners)
            self.informers[resource] = informer

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """One object, if it is labelled as a part."""
        informer = self.informers.get(resource)
        return informer.store.get(key) if informer is not None else None

    def has(self, resource: Resource) -> bool:
        """Whether there is a cache of a kind."""
        return resource in self.informers

    def is_full(self, resource: Resource) -> bool:
        """Whether a cache has whole objects."""
        return resource not in MADE_FROM_OURS

    def serves(self, resource: Resource) -> bool:
        """Whether the cluster has a kind, as far as is known."""
        informer = self.informers.get(resource)
        return informer is not None and not informer.absent

    def parts_of(self, uid: str) -> list[Seen]:
        """Everything that carries an endpoint's uid."""
        return self._indexed(_BY_UID, uid)

    def parts_named(self, key: ObjectKey) -> list[Seen]:
        """Everything that was made for endpoints of a name, whatever their uid."""
        return self._indexed(_BY_ENDPOINT, f"{key.namespace}/{key.name}")

    def owned_by(self, uid: str) -> list[Seen]:
        """Everything that names an object as its owner."""
        return self._indexed(_BY_OWNER, uid)

    def _indexed(self, index: str, value: str) -> list[Seen]:
        return [
            Seen(resource, obj, not informer.metadata_only)
            for resource, informer in self.informers.items()
            if len(informer.store)
            for obj in informer.store.indexed(index, value)
        ]

    def __iter__(self) -> Iterator[Informer]:
        return iter(self.informers.values())


def endpoint_of(obj: Object) -> ObjectKey:
    """Where the endpoint is, or was, that a part was made for."""
    return ObjectKey(obj.meta.namespace, obj.meta.labels.get(LABEL_ENDPOINT, ""))


def _endpoint_uid(obj: Object) -> Iterable[str]:
    return (obj.meta.labels.get(LABEL_ENDPOINT_UID, ""),)


def _endpoint(obj: Object) -> Iterable[str]:
    return (f"{obj.meta.namespace}/{obj.meta.labels.get(LABEL_ENDPOINT, '')}",)


def _owners(obj: Object) -> Iterable[str]:
    return (owner.uid for owner in obj.meta.owner_references)
