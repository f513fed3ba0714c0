"""The endpoints that use a Model: they block its deletion."""

from collections.abc import Iterable

from pilotage.kube import Object, ObjectKey

_IN_SERVICE = frozenset({"Current", "Starting"})
"""States of revisions that need their weights."""


def models_of(endpoint: Object) -> Iterable[ObjectKey]:
    """Map an endpoint to the Models that its spec names, and those of its revisions in service."""
    body = endpoint.to_dict()
    named = {_model_name(body.get("spec"))}
    for revision in _items(body, "status", "history"):
        if isinstance(revision, dict) and revision.get("state") in _IN_SERVICE:
            named.add(_model_name(revision.get("spec")))
    return [ObjectKey(endpoint.meta.namespace, name) for name in sorted(named - {""})]


def users_of(model: ObjectKey, endpoints: Iterable[Object]) -> list[str]:
    """The endpoints that use a Model, as KIND/NAME. One that is being deleted still does."""
    return sorted(f"servingendpoint/{each.meta.name}" for each in endpoints if model in models_of(each))


def _model_name(spec: object) -> str:
    model = spec.get("model") if isinstance(spec, dict) else None
    name = model.get("name") if isinstance(model, dict) else None
    return name if isinstance(name, str) else ""


def _items(body: object, *path: str) -> list[object]:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, list) else []
