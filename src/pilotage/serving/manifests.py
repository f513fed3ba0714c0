"""Manifests that all placements share."""

import hashlib

import msgspec

from pilotage.api.names import LABEL_KEEP_ALIVE
from pilotage.kube import Resource
from pilotage.kube.wire import Json
from pilotage.serving.parts import DesiredObject, EndpointRef, ResolvedModel, labels, revision_name
from pilotage.serving.resources import CLAIMS, SERVICES
from pilotage.serving.runtimes import RUNTIMES
from pilotage.serving.runtimes.contract import keep_alive_seconds
from pilotage.serving.weights import cache_name, scheme_of

TEMPLATE = "pilotage.dev/template"
"""Annotation: digest of the pod template as it was written, for `drift`."""
SCALED_BY = "pilotage.dev/scaled-by"
"""Annotation: the kind of the autoscaler that sets the number of replicas."""


def manifest(
    resource: Resource,
    endpoint: EndpointRef,
    name: str,
    revision: int | None,
    spec: Json,
    annotations: dict[str, str] | None = None,
) -> DesiredObject:
    """An object of an endpoint, with its labels."""
    metadata: Json = {"name": name, "labels": labels(endpoint, revision)}
    if annotations:
        metadata["annotations"] = annotations
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    return DesiredObject(resource, name, body, revision)


def service(endpoint: EndpointRef, revision: int, spec: Json) -> DesiredObject:
    """The Service of a revision."""
    made = manifest(SERVICES, endpoint, revision_name(endpoint.name, revision), revision, spec)
    runtime = endpoint.spec.runtime
    if seconds := keep_alive_seconds(RUNTIMES[runtime.name], runtime):
        made.body["metadata"]["labels"][LABEL_KEEP_ALIVE] = str(seconds)
    return made


def digest(value: object) -> str:
    """Digest of a value, which does not depend on the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]


def claims(endpoint: EndpointRef, model: ResolvedModel) -> list[DesiredObject]:
    """The claim for fetched weights, if the endpoint has a cache and its source has to be fetched."""
    cache = endpoint.spec.cache
    if cache is None or scheme_of(model.source) in ("pvc", "file"):
        return []
    spec: Json = {"accessModes": [cache.access_mode], "resources": {"requests": {"storage": cache.size}}}
    if cache.storage_class_name is not None:
        spec["storageClassName"] = cache.storage_class_name
    return [manifest(CLAIMS, endpoint, cache_name(endpoint), None, spec)]
