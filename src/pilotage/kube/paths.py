"""Paths of requests: of one object, and the query behind it."""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlencode

from pilotage.kube.names import ObjectKey, Resource


def object_path(resource: Resource, key: ObjectKey, subresource: str = "") -> str:
    """The path of one object; ValueError for a key that is not whole: it would be the path of a collection."""
    if not key.name or (resource.namespaced and not key.namespace):
        raise ValueError(f"{resource.kind} {str(key)!r}: a name is needed, and a namespace where the kind has one")
    return resource.path(key.namespace, key.name, subresource)


def check_uid(resource: Resource, key: ObjectKey, uid: str) -> None:
    """ValueError unless there is one."""
    if not uid:
        raise ValueError(f"{resource.kind} {key}: a delete without a uid could delete another client's object")


def with_query(path: str, query: Mapping[str, str]) -> str:
    """The path, and what of the query is not empty."""
    used = tuple((name, value) for name, value in query.items() if value)
    return f"{path}?{_encoded(used)}" if used else path


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)
