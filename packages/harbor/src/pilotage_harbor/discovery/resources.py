"""Discovery: versions, groups and resources, one by one or aggregated; also health and the server's version."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import JSON, ServerResponse, answer
from pilotage_harbor.verbs.negotiation import negotiate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Kind
    from pilotage_harbor.kinds.registry import Registry

Json = dict[str, Any]

VERSION = "v1.36.4"
"""The Kubernetes that harbor behaves like."""

REVIEWS = {
    "authorization.k8s.io": (
        ("localsubjectaccessreviews", "LocalSubjectAccessReview", True),
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
        ("subjectaccessreviews", "SubjectAccessReview", False),
    ),
    "authentication.k8s.io": (
        ("selfsubjectreviews", "SelfSubjectReview", False),
        ("tokenreviews", "TokenReview", False),
    ),
}
"""Questions that are asked by creating something that is never stored: (plural, kind, namespaced) by group."""

_SUBRESOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    # name: group, version, kind ("" is the parent's), verbs
    "status": ("", "", "", ("get", "patch", "update")),
    "approval": ("", "", "", ("get", "patch", "update")),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "log": ("", "v1", "Pod", ("get",)),
    "attach": ("", "v1", "PodAttachOptions", ("create", "get")),
    "exec": ("", "v1", "PodExecOptions", ("create", "get")),
    "portforward": ("", "v1", "PodPortForwardOptions", ("create", "get")),
    "binding": ("", "v1", "Binding", ("create",)),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "ephemeralcontainers": ("", "v1", "Pod", ("get", "patch", "update")),
    "resize": ("", "v1", "Pod", ("get", "patch", "update")),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
_PROXY_VERBS = ("create", "delete", "get", "patch", "update")
_CORE_PATHS = ("/healthz", "/livez", "/readyz")


def serve(core: Core, call: Call) -> ServerResponse:
    """Answer a path that is no resource's."""
    path = call.path.rstrip("/") or "/"
    if call.method not in ("GET", "HEAD") and path not in ("/api", "/apis"):
        raise errors.method_not_allowed()
    if path.startswith("/readyz") and (why := core.store.problem()):
        text = f"[+]ping ok\n[-]journal failed: {why}\nreadyz check failed\n"
        return ServerResponse(500, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})
    if path.startswith(_CORE_PATHS):
        return ServerResponse(200, b"ok", {"Content-Type": "text/plain; charset=utf-8"})
    if path == "/version":
        return _not_an_object(_version())
    found = _discovered(core, call, path)
    if found is None:
        if path == "/":
            return _not_an_object({"paths": sorted(_paths(core.registry))})
        raise errors.PageNotFound
    return found


def _not_an_object(body: Json) -> ServerResponse:
    return answer(body)._replace(headers={"Content-Type": JSON})


def _discovered(core: Core, call: Call, path: str) -> ServerResponse | None:
    registry = core.registry
    parts = path.split("/")[1:]
    if path in ("/api", "/apis"):
        form = negotiate(call.headers.get("accept", ""), discovery=True)
        if form.shape == "discovery":
            return _aggregated(registry, form.version, legacy=path == "/api")
        return answer(_api_versions(call) if path == "/api" else _group_list(registry))
    if parts[0] == "api" and len(parts) == 2:
        return _resource_list(registry, "", parts[1])
    if parts[0] == "apis" and len(parts) == 2:
        versions = _groups(registry).get(parts[1])
        return answer({"kind": "APIGroup", "apiVersion": "v1"} | _group(parts[1], versions)) if versions else None
    if parts[0] == "apis" and len(parts) == 3:
        return _resource_list(registry, parts[1], parts[2])
    return None


def _version() -> Json:
    _, minor, _ = VERSION.split(".")
    return {
        "major": "1",
        "minor": minor,
        "emulationMajor": "1",
        "emulationMinor": minor,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{VERSION}+pilotage",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{platform.system().lower()}/{_machine()}",
    }


def _machine() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _groups(registry: Registry) -> dict[str, list[str]]:
    groups = {group: versions for group, versions in registry.groups().items() if group}
    return groups | {group: ["v1"] for group in REVIEWS if group not in groups}


def _paths(registry: Registry) -> Iterable[str]:
    yield from ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")
    for group, versions in _groups(registry).items():
        yield f"/apis/{group}"
        yield from (f"/apis/{group}/{version}" for version in versions)


def _api_versions(call: Call) -> Json:
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": call.headers.get("host", "")}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


def _group(group: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _group_list(registry: Registry) -> Json:
    groups = [_group(group, versions) for group, versions in _groups(registry).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _resource_list(registry: Registry, group: str, version: str) -> ServerResponse | None:
    kinds = registry.version(group, version)
    if kinds is None and not (group in REVIEWS and version == "v1"):
        return None
    resources = [resource for kind in _sorted(kinds) for resource in _resources(kind)]
    resources += [
        {"name": plural, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": ["create"]}
        for plural, kind, namespaced in REVIEWS.get(group, ())
    ]
    group_version = f"{group}/{version}" if group else version
    body: Json = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
    if not group:
        del body["apiVersion"]
    return answer(body)


def _sorted(kinds: dict[str, Kind] | None) -> list[Kind]:
    return sorted((kinds or {}).values(), key=lambda kind: kind.plural)


def _resources(kind: Kind) -> Iterable[Json]:
    resource: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    yield resource
    for name in sorted(kind.subresources):
        group, version, sub_kind, verbs = _subresource(kind, name)
        subresource: Json = {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": sub_kind or kind.kind,
            "verbs": list(verbs),
        }
        if group:
            subresource = {**subresource, "group": group, "version": version}
        yield subresource


def _subresource(kind: Kind, name: str) -> tuple[str, str, str, tuple[str, ...]]:
    if name == "proxy":
        return "", "v1", f"{kind.kind}ProxyOptions", _PROXY_VERBS
    return _SUBRESOURCES.get(name, ("", "", "", ("get",)))


def _aggregated(registry: Registry, version: str, *, legacy: bool) -> ServerResponse:
    groups = {"": ["v1"]} if legacy else _groups(registry)
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
            "versions": [
                {"version": each, "resources": _aggregated_resources(registry, group, each), "freshness": "Current"}
                for each in versions
            ],
        }
        for group, versions in groups.items()
    ]
    body = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }
    media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return ServerResponse(200, answer(body).body + b"\n", {"Content-Type": media, "Vary": "Accept"})


def _aggregated_resources(registry: Registry, group: str, version: str) -> list[Json]:
    resources = [_aggregated_resource(kind) for kind in _sorted(registry.version(group, version))]
    for plural, kind, namespaced in REVIEWS.get(group, ()):
        resources.append(
            {
                "resource": plural,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "scope": "Namespaced" if namespaced else "Cluster",
                "singularResource": kind.lower(),
                "verbs": ["create"],
            }
        )
    return resources


def _aggregated_resource(kind: Kind) -> Json:
    own = {
        "group": kind.group if kind.custom else "",
        "version": kind.version if kind.custom else "",
        "kind": kind.kind,
    }
    resource: Json = {
        "resource": kind.plural,
        "responseKind": own,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    subresources = []
    for name in sorted(kind.subresources):
        group, version, sub_kind, verbs = _subresource(kind, name)
        served = (
            {"group": group, "version": version, "kind": sub_kind} if group else {**own, "kind": sub_kind or kind.kind}
        )
        subresources.append({"subresource": name, "responseKind": served, "verbs": list(verbs)})
    if subresources:
        resource["subresources"] = subresources
    return resource
