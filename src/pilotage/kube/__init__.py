"""Client of the Kubernetes API: configuration, transport, wire types, patches, selectors, errors.

Nothing here knows what a controller is, and nothing here retries on its own beyond what the server asked for. The
names below are the public face; the modules behind them can move.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pilotage.kube.client import Client
from pilotage.kube.errors import (
    Absent,
    AlreadyExists,
    ApiError,
    ConfigError,
    Conflict,
    ErrorClass,
    Expired,
    Forbidden,
    Foreign,
    Invalid,
    KindNotServed,
    StatusCause,
    Terminating,
    Throttled,
    Unauthorized,
    Unavailable,
    Uncertain,
)
from pilotage.kube.names import (
    DEFINITIONS,
    EVENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    GroupKind,
    ObjectKey,
    ObjectRef,
    Resource,
)
from pilotage.kube.options import ANY, Propagation, exactly, not_older_than
from pilotage.kube.patches import Patch, apply_patch, json_patch, merge_patch, without_finalizer
from pilotage.kube.watch import Watch, WatchEvent
from pilotage.kube.wire import Json, Object, ObjectList, ObjectMeta, OwnerReference

if TYPE_CHECKING:
    from pilotage.kube.config import ClusterConfig, in_cluster_config, load_config
    from pilotage.kube.discovery import ApiResource, Discovery, Surface, UnknownKind
    from pilotage.kube.ratelimit import TokenBucket
    from pilotage.kube.selectors import LabelSelector, SelectorError

# Not every program reads a kubeconfig, asks what kinds there are, matches selectors or limits its rate: imported when
# first used. asyncio, which takes longer than all of this package, is imported by the modules that run on a loop.
_LATER = {
    "config": ("ClusterConfig", "in_cluster_config", "load_config"),
    "discovery": ("ApiResource", "Discovery", "Surface", "UnknownKind"),
    "ratelimit": ("TokenBucket",),
    "selectors": ("LabelSelector", "SelectorError"),
}


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ANY",
    "DEFINITIONS",
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "PODS",
    "SECRETS",
    "Absent",
    "AlreadyExists",
    "ApiError",
    "ApiResource",
    "Client",
    "ClusterConfig",
    "ConfigError",
    "Conflict",
    "Discovery",
    "ErrorClass",
    "Expired",
    "Forbidden",
    "Foreign",
    "GroupKind",
    "Invalid",
    "Json",
    "KindNotServed",
    "LabelSelector",
    "Object",
    "ObjectKey",
    "ObjectList",
    "ObjectMeta",
    "ObjectRef",
    "OwnerReference",
    "Patch",
    "Propagation",
    "Resource",
    "SelectorError",
    "StatusCause",
    "Surface",
    "Terminating",
    "Throttled",
    "TokenBucket",
    "Unauthorized",
    "Unavailable",
    "Uncertain",
    "UnknownKind",
    "Watch",
    "WatchEvent",
    "apply_patch",
    "exactly",
    "in_cluster_config",
    "json_patch",
    "load_config",
    "merge_patch",
    "not_older_than",
    "without_finalizer",
]
