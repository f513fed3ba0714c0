"""How the Kubernetes API is spoken: configuration, transport, wire types, patches, selectors, errors.

Nothing here knows what a controller is, and nothing here retries on its own beyond what the server asked for. The
names below are the public face; the modules behind them can move.
"""

from pilotage.kube.client import (
    ANY,
    MOST_RECENT,
    Client,
    Propagation,
    ReadVersion,
    WriteGuard,
    exactly,
    not_older_than,
)
from pilotage.kube.config import ClusterConfig, ConfigError, in_cluster_config, load_config
from pilotage.kube.discovery import ApiResource, Discovery, Surface, UnknownKind
from pilotage.kube.errors import (
    Absent,
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    ErrorClass,
    Expired,
    Forbidden,
    Foreign,
    Invalid,
    KindNotServed,
    Terminating,
    Throttled,
    Unauthorized,
    Unavailable,
    Uncertain,
)
from pilotage.kube.names import EVENTS, LEASES, PODS, ObjectKey, ObjectRef, Resource
from pilotage.kube.patches import Patch, apply_patch, json_patch, merge_patch, without_finalizer
from pilotage.kube.ratelimit import TokenBucket
from pilotage.kube.selectors import FieldSelector, LabelSelector, SelectorError
from pilotage.kube.watch import Watch, WatchEvent
from pilotage.kube.wire import Json, Object, ObjectList, ObjectMeta, OwnerReference

__all__ = [
    "ANY",
    "EVENTS",
    "LEASES",
    "MOST_RECENT",
    "PODS",
    "Absent",
    "AlreadyExists",
    "ApiError",
    "ApiResource",
    "Cause",
    "Client",
    "ClusterConfig",
    "ConfigError",
    "Conflict",
    "Discovery",
    "ErrorClass",
    "Expired",
    "FieldSelector",
    "Forbidden",
    "Foreign",
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
    "ReadVersion",
    "Resource",
    "SelectorError",
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
    "WriteGuard",
    "apply_patch",
    "exactly",
    "in_cluster_config",
    "json_patch",
    "load_config",
    "merge_patch",
    "not_older_than",
    "without_finalizer",
]
