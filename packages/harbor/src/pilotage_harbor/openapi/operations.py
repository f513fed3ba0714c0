"""The paths of a kind, and what can be done at each: as OpenAPI v3 says it.

What all operations of a path have in common in their parameters stands at the path. A client looks here whether the
server checks fields (``fieldValidation`` of the patch), dry-runs (``dryRun``), and merges lists (the patch's types).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage_harbor.openapi.components import (
    DELETE_OPTIONS,
    GROUP_VERSION_KIND,
    META,
    custom_name,
    gvk,
    name_of,
    reference,
)
from pilotage_harbor.openapi.parameters import LOG, PARAMETERS, path_item

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.kinds import Kind

Json = dict[str, Any]

STATUS = META + "Status"
PATCH = META + "Patch"
_READ = ("application/json", "application/yaml")
_LISTED = ("application/json", "application/json;stream=watch", "application/yaml")
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_REASONS = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}
_CODES = {
    "get": ("200", "401"),
    "list": ("200", "401"),
    "post": ("200", "201", "202", "401"),
    "put": ("200", "201", "401"),
    "patch": ("200", "201", "401"),
    "delete": ("200", "202", "401"),
    "deletecollection": ("200", "401"),
}
# verb of the registry: action, method, first word of the operation's name
_VERBS = {
    "list": ("list", "get", "list"),
    "create": ("post", "post", "create"),
    "deletecollection": ("deletecollection", "delete", "delete"),
    "get": ("get", "get", "read"),
    "update": ("put", "put", "replace"),
    "patch": ("patch", "patch", "patch"),
    "delete": ("delete", "delete", "delete"),
}
# A delete answers with the object itself, not with a Status.
_RETURN_DELETED = frozenset(
    (
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
    )
)
_OF_COLLECTION = ("list", "create", "deletecollection")
_OF_OBJECT = ("get", "update", "patch", "delete")

# name: the kind that is read and written ("" is the parent's), verbs
_SUBRESOURCES: dict[str, tuple[tuple[str, str, str] | None, tuple[str, ...]]] = {
    "status": (None, ("get", "update", "patch")),
    "scale": (("autoscaling", "v1", "Scale"), ("get", "update", "patch")),
    "approval": (None, ("get", "update", "patch")),
    "ephemeralcontainers": (None, ("get", "update", "patch")),
    "resize": (None, ("get", "update", "patch")),
    "finalize": (None, ("update",)),
    "log": (None, ("get",)),
    "eviction": (("policy", "v1", "Eviction"), ("create",)),
    "binding": (("", "v1", "Binding"), ("create",)),
    "token": (("authentication.k8s.io", "v1", "TokenRequest"), ("create",)),
}


class Paths(NamedTuple):
    """Path items by path, and the components that they refer to."""

    items: dict[str, Json]
    refers_to: set[str]


def paths_of(kind: Kind) -> Paths:
    """All paths of one kind, but for the old ones below ``watch/``."""
    root = api_path(kind.group, kind.version)
    base = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    making = _Making(kind)
    if kind.namespaced and "list" in kind.verbs:
        making.add(f"{root}/{kind.plural}", ("list",), everywhere=True)
    making.add(base, [verb for verb in _OF_COLLECTION if verb in kind.verbs])
    making.add(base + "/{name}", [verb for verb in _OF_OBJECT if verb in kind.verbs])
    for subresource in sorted(kind.subresources & _SUBRESOURCES.keys()):
        making.add(f"{base}/{{name}}/{subresource}", _SUBRESOURCES[subresource][1], subresource)
    return Paths(making.items, making.refers_to)


def review_paths(group: str, reviews: Iterable[tuple[str, str, bool]]) -> Paths:
    """The paths of questions (plural, kind, namespaced), which can only be asked. All are v1."""
    paths = Paths({}, set())
    for plural, kind, namespaced in reviews:
        root = api_path(group, "v1")
        path = f"{root}/namespaces/{{namespace}}/{plural}" if namespaced else f"{root}/{plural}"
        component = name_of(group, "v1", kind) or STATUS
        operation = _operation("post", component, component)
        operation |= _named(f"create{_title(group)}V1{'Namespaced' if namespaced else ''}{kind}", group, "v1")
        operation |= {"x-kubernetes-action": "post", GROUP_VERSION_KIND: gvk(group, "v1", kind)}
        paths.items[path] = path_item(path, {"post": operation})
        paths.refers_to.add(component)
    return paths


def discovery_path(path: str, component: str) -> Json:
    """The path item of a document of discovery."""
    parts = path.strip("/").split("/")
    group = "core" if parts[0] == "api" else parts[1] if len(parts) > 1 else ""
    version = parts[-1] if len(parts) == 3 or (parts[0] == "api" and len(parts) == 2) else ""
    what = {"APIResourceList": "APIResources", "Info": "CodeVersion"}.get(component.rpartition(".")[2], "")
    what = what or ("APIGroup" if component.endswith("APIGroup") else "APIVersions")
    title = _title(group) if group else ""
    operation: Json = {"operationId": f"get{title}{version.capitalize()}{what}"}
    operation["responses"] = _responses(("200", "401"), component, ("application/json",))
    operation["tags"] = [_tag(group, version) if group else parts[0]]
    return {"get": operation}


def api_path(group: str, version: str) -> str:
    """Path of a version of a group."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


class _Making:
    """Collects the paths of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.items: dict[str, Json] = {}
        self.refers_to: set[str] = set()
        self._kind = kind
        self._own = gvk(kind.group, kind.version, kind.kind)
        self._component = component_of(kind, kind.kind)
        self._list = component_of(kind, kind.list_kind)

    def add(self, path: str, verbs: Iterable[str], subresource: str = "", *, everywhere: bool = False) -> None:
        """One path. `everywhere`: that of all namespaces."""
        operations = {_VERBS[verb][1]: self._operation(verb, subresource, everywhere) for verb in verbs}
        if operations:
            self.items[path] = path_item(path, operations)

    def _operation(self, verb: str, subresource: str, everywhere: bool) -> Json:
        kind = self._kind
        action = _VERBS[verb][0]
        other = _SUBRESOURCES[subresource][0] if subresource else None
        component = (name_of(*other) if other else None) or self._component
        answer = self._answer(verb, component)
        operation = _operation(action, component, answer, strategic=not kind.custom)
        if subresource == "log":
            operation["parameters"] = LOG
            operation["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
        operation |= _named(self._id(verb, subresource, everywhere), kind.group, kind.version)
        operation["x-kubernetes-action"] = action
        # A custom kind's scale says it is the custom kind: so does the real server.
        operation[GROUP_VERSION_KIND] = gvk(*other) if other and not kind.custom else self._own
        self.refers_to |= {component, answer}
        if action == "patch":
            self.refers_to.add(PATCH)
        elif action in ("delete", "deletecollection"):
            self.refers_to.add(DELETE_OPTIONS)
        return operation

    def _answer(self, verb: str, component: str) -> str:
        if verb == "list":
            return self._list
        gone = verb == "deletecollection" or (verb == "delete" and self._kind.qualified not in _RETURN_DELETED)
        return STATUS if gone else component

    def _id(self, verb: str, subresource: str, everywhere: bool) -> str:
        kind = self._kind
        collection = "Collection" if verb == "deletecollection" else ""
        scope = "Namespaced" if kind.namespaced and not everywhere else ""
        rest = "ForAllNamespaces" if everywhere else subresource.capitalize()
        where = _title(kind.group) + _title(kind.version)
        return f"{_VERBS[verb][2]}{where}{collection}{scope}{kind.kind}{rest}"


def component_of(kind: Kind, name: str) -> str:
    """The component of a kind or of its list. One that the table lacks is only known to be some object."""
    if kind.custom:
        return custom_name(kind.group, kind.version, name)
    return name_of(kind.group, kind.version, name) or META + "Patch"


def _operation(action: str, component: str, answer: str, *, strategic: bool = True) -> Json:
    """An operation without its names."""
    operation: Json = {}
    if PARAMETERS[action]:
        operation["parameters"] = PARAMETERS[action]
    if action in ("post", "put"):
        operation["requestBody"] = {"content": _content(component, ("*/*",)), "required": True}
    elif action == "patch":
        operation["requestBody"] = {
            "content": _content(PATCH, _PATCHES if strategic else _PATCHES[:3]),
            "required": True,
        }
    elif action in ("delete", "deletecollection"):
        operation["requestBody"] = {"content": _content(DELETE_OPTIONS, ("*/*",))}
    operation["responses"] = _responses(_CODES[action], answer, _LISTED if action == "list" else _READ)
    return operation


def _named(name: str, group: str, version: str) -> Json:
    return {"operationId": name, "tags": [_tag(group or "core", version)]}


def _content(component: str, media: Iterable[str]) -> Json:
    schema = {"schema": reference(component)}
    return dict.fromkeys(media, schema)


def _responses(codes: Iterable[str], component: str, media: Iterable[str]) -> Json:
    content = _content(component, media)
    return {
        code: {"description": _REASONS[code], "content": content} if code != "401" else {"description": _REASONS[code]}
        for code in codes
    }


def _title(name: str) -> str:
    """A group or version as part of an operation's name: ``RbacAuthorization`` of ``rbac.authorization.k8s.io``."""
    words = (name or "core").removesuffix(".k8s.io").replace("-", ".").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words)


def _tag(group: str, version: str) -> str:
    title = _title(group)
    tag = title[:1].lower() + title[1:]
    return f"{tag}_{version}" if version else tag
