"""The parameters of operations, in path and query."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def _query(name: str, kind: str = "string") -> Json:
    return {"in": "query", "name": name, "schema": {"type": kind, "uniqueItems": True}}


def _in_path(name: str) -> Json:
    return {"in": "path", "name": name, "required": True, "schema": {"type": "string", "uniqueItems": True}}


_PRETTY = _query("pretty")
_WRITE = [_query("dryRun"), _query("fieldManager"), _query("fieldValidation")]
_CHOICE = [
    _query("continue"),
    _query("fieldSelector"),
    _query("labelSelector"),
    _query("limit", "integer"),
    _query("resourceVersion"),
    _query("resourceVersionMatch"),
    _query("sendInitialEvents", "boolean"),
    _query("timeoutSeconds", "integer"),
]
_DELETE = [
    _query("dryRun"),
    _query("gracePeriodSeconds", "integer"),
    _query("orphanDependents", "boolean"),
    _query("propagationPolicy"),
]
LOG = [
    _query("container"),
    _query("follow", "boolean"),
    _query("insecureSkipTLSVerifyBackend", "boolean"),
    _query("limitBytes", "integer"),
    _query("previous", "boolean"),
    _query("sinceSeconds", "integer"),
    _query("stream"),
    _query("tailLines", "integer"),
    _query("timestamps", "boolean"),
]
PARAMETERS: dict[str, list[Json]] = {
    "get": [],
    "list": [*_CHOICE, _query("allowWatchBookmarks", "boolean"), _query("watch", "boolean")],
    "post": _WRITE,
    "put": _WRITE,
    "patch": [*_WRITE, _query("force", "boolean")],
    "delete": _DELETE,
    "deletecollection": [*_CHOICE, *_DELETE],
}
"""Query parameters, by action."""


def path_item(path: str, operations: Json) -> Json:
    """A path, with what its operations share taken out of them."""
    of_path = [_in_path(name) for name in ("name", "namespace") if f"{{{name}}}" in path]
    named = [{each["name"]: each for each in operation.get("parameters", ())} for operation in operations.values()]
    shared = set(named[0]).intersection(*named[1:])
    item: Json = {}
    for (method, operation), parameters in zip(operations.items(), named, strict=True):
        own = [parameters[name] for name in sorted(parameters) if name not in shared]
        item[method] = {key: value for key, value in operation.items() if key != "parameters"}
        if own:
            item[method]["parameters"] = own
    of_all = [*of_path, _PRETTY, *(named[0][name] for name in shared)]
    item["parameters"] = sorted(of_all, key=lambda parameter: str(parameter["name"]))
    return item
