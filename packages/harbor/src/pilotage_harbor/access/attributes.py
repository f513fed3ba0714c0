"""The attributes of a request that authorization looks at: verb, resource, namespace and name, or a plain path.

This looks at the request line alone, never at what is served: a path that nobody serves is refused to those who may not
ask for it, before anybody says that it is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.schema.gotext import quote as quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_harbor.apimachinery.users import UserInfo

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class AccessAttributes(NamedTuple):
    """One access. It is one to a resource, unless `path` is set: then it is one to that path."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def attributes_of(method: str, path: str, query: Mapping[str, list[str]]) -> AccessAttributes:
    """The attributes of a request. `path` is decoded and without its query."""
    parts = path.strip("/").split("/")
    groupless = parts[0] == "api"
    if len(parts) < 3 or not (groupless or (parts[0] == "apis" and len(parts) > 3)):
        return AccessAttributes(method.lower(), path=path or "/")
    group, rest = ("", parts[2:]) if groupless else (parts[1], parts[3:])
    verb = _VERBS.get(method, "")
    if rest[0] == "watch" and len(rest) > 1:  # the old way to ask for a watch
        verb, rest = "watch", rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name:
        if verb == "get":
            verb = "watch" if _asks_to_watch(query) else "list"
            name = _name_in_selector(query)
        elif verb == "delete":
            verb = "deletecollection"
    return AccessAttributes(verb, group, rest[0], subresource, namespace, name)


def refusal(user: UserInfo, wanted: AccessAttributes, reason: str = "") -> errors.StatusError:
    """The 403 of kube-apiserver for an access that no rule allows."""
    words = _sentence(user, wanted).translate(_HTML)
    error = errors.forbidden(wanted.group, wanted.resource, wanted.name, f"{words}: {reason}" if reason else words)
    error.headers = {"X-Content-Type-Options": "nosniff"}
    return error


def _sentence(user: UserInfo, wanted: AccessAttributes) -> str:
    if wanted.path:
        return f"User {quoted(user.name)} cannot {wanted.verb} path {quoted(wanted.path)}"
    resource = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    scope = f"in the namespace {quoted(wanted.namespace)}" if wanted.namespace else "at the cluster scope"
    return (
        f"User {quoted(user.name)} cannot {wanted.verb} resource {quoted(resource)} "
        f"in API group {quoted(wanted.group)} {scope}"
    )


def _asks_to_watch(query: Mapping[str, list[str]]) -> bool:
    values = query.get("watch")
    return values is not None and values[0].lower() not in ("false", "0")


def _name_in_selector(query: Mapping[str, list[str]]) -> str:
    """A list of the one object that a field selector names is an access to that object."""
    values = query.get("fieldSelector")
    if not values or "metadata.name" not in values[0]:
        return ""
    for clause in values[0].split(","):
        field, _, value = clause.partition("=")
        if field.strip() == "metadata.name":
            name = value.removeprefix("=").strip()
            return name if name not in (".", "..") and "/" not in name and "%" not in name else ""
    return ""
