"""Names: resources, keys and references, as small immutable values.

No I/O here, and nothing that knows about one particular kind beyond the few that the layers above need to exist.
"""

import re
from typing import NamedTuple
from urllib.parse import quote

import msgspec

_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


class ObjectKey(msgspec.Struct, frozen=True, order=True, gc=False):
    """Namespace and name of an object. The namespace is empty for cluster-scoped kinds.

    Caches and queues hold one for each object, so it is smaller than a tuple and unknown to the garbage collector.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectRef(NamedTuple):
    """Identity of an object: the key with its kind, and the uid that tells it from another of the same name."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> ObjectKey:
        """The key without kind and uid."""
        return ObjectKey(self.namespace, self.name)

    def __str__(self) -> str:
        place = f" -n {self.namespace}" if self.namespace else ""
        return f"{self.kind.lower()}/{self.name}{place}"


class UnusableName(ValueError):
    """A text that cannot be the name of an object or a namespace."""


class GroupKind(NamedTuple):
    """A kind, whatever its version: an object is the same one in all of them."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class Resource(msgspec.Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """One REST resource of one API version: all that is needed to build its URLs.

    It is saved by the names of its fields (ledgers, receipts), so that fields can be added.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def group_kind(self) -> GroupKind:
        """The kind, whatever its version."""
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        """Version as objects carry it: ``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path; without a namespace, that of all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            root += f"/namespaces/{_segment(namespace)}"
        root += f"/{self.plural}"
        if name:
            root += f"/{_segment(name)}"
        return f"{root}/{subresource}" if subresource else root

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def is_address(host: str) -> bool:
    """Whether it is an IP address and not a name."""
    from ipaddress import ip_address  # most who import this module ask no such thing, and it takes its time

    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _segment(name: str) -> str:
    """A name as a part of a path. The server would take some apart again, however quoted, and read another path."""
    if "/" in name or name in (".", ".."):
        raise UnusableName(f"{name!r} cannot be the name of an object or a namespace")
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")


DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
SECRETS = Resource("", "v1", "secrets", "Secret")
