"""Worlds made by hand: for what is decided without a cluster."""

import datetime as dt
import uuid

from pilotage.kube import Json, Object, Resource
from pilotage.teardown.snapshot.world import Item, KindReading, World
from tests.support import kinds

NOW = dt.datetime(2026, 11, 1, 12, 0, tzinfo=dt.UTC)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
PODS = Resource("", "v1", "pods", "Pod")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
WIDGETS = Resource("gadgets.example.com", "v1", "widgets", "Widget")
ALL = (
    kinds.CONFIG_MAPS,
    kinds.CRDS,
    kinds.DEPLOYMENTS,
    kinds.NAMESPACES,
    kinds.SERVICES,
    kinds.CLUSTER_ROLES,
    LEASES,
    PODS,
    REPLICA_SETS,
    WIDGETS,
)


def ago(seconds: float) -> str:
    """A time of the API, this long before NOW."""
    return (NOW - dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def item(resource: Resource, name: str, namespace: str = "shop", *, full: bool = True, **body: object) -> Item:
    """An object; `metadata` in the body overrides name, namespace and uid."""
    given = body.pop("metadata", {})
    assert isinstance(given, dict)
    place: Json = {"namespace": namespace} if resource.namespaced else {}
    metadata = {"name": name, **place, "uid": str(uuid.uuid4()), **given}
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **body}
    return Item(resource, Object.from_dict(whole), full=full)


def world(
    *items: Item, live: bool = False, unread: dict[Resource, str] | None = None, namespaces: tuple[str, ...] = ()
) -> World:
    """A world with these objects, in which all the usual kinds were read."""
    made = World(NOW, live=live, namespaces=namespaces)
    for resource in (*ALL, *{each.resource: None for each in items}):
        made.read_kind(KindReading(resource))
    for resource, problem in (unread or {}).items():
        made.read_kind(KindReading(resource, problem=problem))
    for each in items:
        made.add(each)
    return made


def going(seconds_ago: float = 600, *finalizers: str, **more: object) -> Json:
    """Metadata of an object that is being deleted."""
    return {"deletionTimestamp": ago(seconds_ago), "finalizers": list(finalizers), **more}
