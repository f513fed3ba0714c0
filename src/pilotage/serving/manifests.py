"""Small pieces that all placements make their manifests of."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from pilotage.serving.parts import DesiredObject, labels
from pilotage.serving.resources import CLAIMS
from pilotage.serving.weights import cache_name, scheme_of

if TYPE_CHECKING:
    from pilotage.kube import Resource
    from pilotage.kube.wire import Json
    from pilotage.serving.parts import EndpointRef, ResolvedModel

TEMPLATE = "pilotage.dev/template"
"""An annotation: the digest of the pod as it was made, which `sameness` looks at."""
SCALED_BY = "pilotage.dev/scaled-by"
"""An annotation: who sets the number of replicas, if not we."""


def manifest(
    resource: Resource,
    endpoint: EndpointRef,
    name: str,
    revision: int | None,
    spec: Json,
    annotations: dict[str, str] | None = None,
) -> DesiredObject:
    """An object of the endpoint, with its labels."""
    metadata: Json = {"name": name, "labels": labels(endpoint, revision)}
    if annotations:
        metadata["annotations"] = annotations
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    return DesiredObject(resource, name, body, revision)


def digest(value: object) -> str:
    """The same for values that mean the same, whatever the order of their fields."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]


def claims(endpoint: EndpointRef, model: ResolvedModel) -> list[DesiredObject]:
    """The claim for the weights, where there is to be one and the source leaves anything to be kept."""
    cache = endpoint.spec.cache
    if cache is None or scheme_of(model.source) in ("pvc", "file"):
        return []
    spec: Json = {"accessModes": [cache.access_mode], "resources": {"requests": {"storage": cache.size}}}
    if cache.storage_class_name is not None:
        spec["storageClassName"] = cache.storage_class_name
    return [manifest(CLAIMS, endpoint, cache_name(endpoint), None, spec)]
