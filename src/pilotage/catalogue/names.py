"""Kinds that code treats in a way of their own, by name."""

from pilotage.kube import GroupKind

DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
LEASE = GroupKind("coordination.k8s.io", "Lease")
NAMESPACE = GroupKind("", "Namespace")
NODE = GroupKind("", "Node")
POD = GroupKind("", "Pod")
SERVICE = GroupKind("", "Service")
SERVICE_ACCOUNT = GroupKind("", "ServiceAccount")
SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
VOLUME = GroupKind("", "PersistentVolume")
VOLUME_CLAIM = GroupKind("", "PersistentVolumeClaim")
