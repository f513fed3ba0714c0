"""The objects that are taken down in the stories of teardowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Resource
from pilotage_sim.models.common import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    SERVICES,
    SLICES,
    owner_reference,
)
from pilotage_sim.models.kubelet import EXIT

if TYPE_CHECKING:
    from pilotage.kube import Json, Object

__all__ = [
    "APPS",
    "AUTOSCALERS",
    "CLAIMS",
    "CONFIG_MAPS",
    "DEFINITIONS",
    "DEPLOYMENTS",
    "INGRESSES",
    "NAMESPACES",
    "PODS",
    "REPLICA_SETS",
    "SERVICES",
    "SERVING",
    "SLICES",
    "app",
    "autoscaler",
    "claim",
    "config_map",
    "definition",
    "deployment",
    "endpoint_slice",
    "ingress",
    "metadata",
    "namespace",
    "pod",
    "replica_set",
    "service",
]

INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
APPS = Resource("sim.pilotage.dev", "v1", "apps", "App")
"""The custom resources of these stories."""
SERVING = (DEPLOYMENTS, REPLICA_SETS, PODS, SERVICES, SLICES, INGRESSES, AUTOSCALERS, CONFIG_MAPS, CLAIMS)
"""The parts of endpoints; the first six are enough for a plain one."""

Part = tuple[Resource, "Json"]
_OF_BOTH = ("replicas", "selector", "template")


def metadata(name: str, namespace: str = "default", owner: Object | None = None) -> Json:
    """Metadata; with an owner, if one is given, and with its labels: many controllers copy those."""
    found: Json = {"namespace": namespace, "name": name}
    if owner is not None:
        body = owner.to_dict()
        reference = {
            "apiVersion": body["apiVersion"],
            "kind": body["kind"],
            "name": owner.meta.name,
            "uid": owner.meta.uid,
        }
        found["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
        found["labels"] = {**owner.meta.labels}
    return found


def deployment(
    name: str,
    namespace: str = "default",
    *,
    owner: Object | None = None,
    replicas: int = 1,
    config: str = "",
    claim: str = "",
) -> Part:
    """One whose pods take a second to end, with a ConfigMap and a claim if they are named."""
    volumes: list[Json] = []
    if config:
        volumes.append({"name": "config", "configMap": {"name": config}})
    if claim:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": claim}})
    spec: Json = {
        "containers": [{"name": "main", "image": "one", "ports": [{"containerPort": 8080}]}],
        "volumes": volumes,
        "terminationGracePeriodSeconds": 5,
    }
    meta, selector = metadata(name, namespace, owner), {"app": name}
    labels = {**meta.get("labels", {}), **selector}
    template = {"metadata": {"labels": labels, "annotations": {EXIT: "1"}}, "spec": spec}
    return DEPLOYMENTS, {
        "metadata": meta,
        "spec": {"replicas": replicas, "selector": {"matchLabels": selector}, "template": template},
    }


def replica_set(deployment: Object) -> Part:
    """The objects that the Deployment's controller would have created, for scenarios that run without it."""
    body = deployment.to_dict()
    meta = metadata(f"{deployment.meta.name}-1", deployment.meta.namespace)
    meta["ownerReferences"] = [owner_reference(DEPLOYMENTS, deployment)]
    meta["labels"] = body["spec"]["template"]["metadata"]["labels"]
    return REPLICA_SETS, {"metadata": meta, "spec": {name: body["spec"][name] for name in _OF_BOTH}}


def pod(replica_set: Object) -> Part:
    """The same for a ReplicaSet."""
    template = replica_set.to_dict()["spec"]["template"]
    meta = {**metadata(f"{replica_set.meta.name}-1", replica_set.meta.namespace), **template["metadata"]}
    meta["ownerReferences"] = [owner_reference(REPLICA_SETS, replica_set)]
    return PODS, {"metadata": meta, "spec": template["spec"]}


def endpoint_slice(service: Object) -> Part:
    """The same for a Service."""
    meta = metadata(f"{service.meta.name}-1", service.meta.namespace)
    meta["ownerReferences"] = [owner_reference(SERVICES, service)]
    meta["labels"] = {**service.meta.labels, "kubernetes.io/service-name": service.meta.name}
    return SLICES, {"metadata": meta, "addressType": "IPv4", "endpoints": []}


def service(name: str, namespace: str = "default", *, owner: Object | None = None) -> Part:
    """Service in front of the Deployment of its name."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
    return SERVICES, {"metadata": metadata(name, namespace, owner), "spec": spec}


def ingress(name: str, namespace: str = "default", *, owner: Object | None = None, host: str = "") -> Part:
    """Ingress in front of the Service of its name."""
    backend = {"service": {"name": name, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rule = {"host": host or f"{name}.example.com", "http": {"paths": [path]}}
    return INGRESSES, {"metadata": metadata(name, namespace, owner), "spec": {"rules": [rule]}}


def autoscaler(name: str, namespace: str = "default", *, owner: Object | None = None, least: int = 2) -> Part:
    """Autoscaler of the Deployment of its name."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": 4}
    return AUTOSCALERS, {"metadata": metadata(name, namespace, owner), "spec": spec}


def config_map(name: str, namespace: str = "default", *, owner: Object | None = None) -> Part:
    """Some configuration."""
    return CONFIG_MAPS, {"metadata": metadata(name, namespace, owner), "data": {"color": "blue"}}


def claim(name: str, namespace: str = "default", *, owner: Object | None = None) -> Part:
    """A claim to a volume."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return CLAIMS, {"metadata": metadata(name, namespace, owner), "spec": spec}


def namespace(name: str) -> Part:
    """A place for them."""
    return NAMESPACES, {"metadata": {"name": name}}


def definition(resource: Resource = APPS) -> Part:
    """Definition of a kind whose objects may have any content."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    spec = {"group": resource.group, "names": names, "scope": "Namespaced", "versions": [version]}
    return DEFINITIONS, {"metadata": {"name": f"{resource.plural}.{resource.group}"}, "spec": spec}


def app(
    name: str,
    namespace: str = "default",
    *,
    resource: Resource = APPS,
    finalizers: tuple[str, ...] = (),
    **spec: object,
) -> Part:
    """A custom resource that owns what makes an endpoint."""
    return resource, {"metadata": {**metadata(name, namespace), "finalizers": [*finalizers]}, "spec": spec}


def is_terminating(body: Json | None) -> bool:
    """Whether an object is there whose deletion has begun."""
    return body is not None and "deletionTimestamp" in body["metadata"]
