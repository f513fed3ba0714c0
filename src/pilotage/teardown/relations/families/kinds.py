"""The kinds that rows of more than one family point at."""

from __future__ import annotations

from pilotage.teardown.relations.rows import Kind, Named, Reference

CONFIG_MAP = Kind("", "ConfigMap")
NODE = Kind("", "Node", namespaced=False)
POD = Kind("", "Pod")
SECRET = Kind("", "Secret")
SERVICE = Kind("", "Service")
SERVICE_ACCOUNT = Kind("", "ServiceAccount")
VOLUME = Kind("", "PersistentVolume", namespaced=False)
VOLUME_CLAIM = Kind("", "PersistentVolumeClaim")
DEPLOYMENT = Kind("apps", "Deployment")
INGRESS = Kind("networking.k8s.io", "Ingress")
INGRESS_CLASS = Kind("networking.k8s.io", "IngressClass", namespaced=False)
PRIORITY_CLASS = Kind("scheduling.k8s.io", "PriorityClass", namespaced=False)
RESOURCE_CLAIM = Kind("resource.k8s.io", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATE = Kind("resource.k8s.io", "ResourceClaimTemplate")
RUNTIME_CLASS = Kind("node.k8s.io", "RuntimeClass", namespaced=False)
STORAGE_CLASS = Kind("storage.k8s.io", "StorageClass", namespaced=False)

A_SERVICE = Named((SERVICE,))
A_SERVICE_ANYWHERE = Named((SERVICE,), namespace="namespace")
A_SECRET = Named((SECRET,))
A_SECRET_ANYWHERE = Named((SECRET,), namespace="namespace")
ANYTHING = Reference()
ANYTHING_BY_GROUP = Reference(group="apiGroup")
