"""The model that an endpoint serves: its own source, or a Model of its namespace that is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.controllers.endpoint.apply_parts import EndpointProblem
from pilotage.kube import ObjectKey
from pilotage.serving.parts import ResolvedModel

if TYPE_CHECKING:
    from pilotage.api.endpoint import EndpointSpec
    from pilotage.kube import Object
    from pilotage.runtime.store import Store


def resolve(models: Store, obj: Object, spec: EndpointSpec) -> ResolvedModel:
    """The weights and the name that clients use. EndpointProblem where that is not known yet."""
    choice = spec.model
    if choice.source is not None:
        secret = choice.secret_ref.name if choice.secret_ref is not None else ""
        return ResolvedModel(obj.meta.name, choice.source, choice.sha256 or "", secret)
    key = ObjectKey(obj.meta.namespace, choice.name or "")
    found = models.get(key)
    if found is None:
        raise EndpointProblem("ModelMissing", f"model/{key.name} -n {key.namespace} does not exist: create it.")
    if found.meta.terminating:
        raise EndpointProblem("ModelDeleting", f"model/{key.name} is being deleted: choose another one.")
    body = found.to_dict()
    status = body.get("status", {})
    if status.get("phase") == "Failed":
        conditions = status.get("conditions", [])
        why = next((each.get("message", "") for each in conditions if each.get("type") == "Degraded"), "")
        raise EndpointProblem("ModelFailed", f"model/{key.name} cannot be had: {why}")
    if status.get("phase") != "Ready":
        raise EndpointProblem("ModelNotReady", f"model/{key.name} is being fetched.", waits=True)
    wanted = body["spec"]
    secret = (wanted.get("secretRef") or {}).get("name", "")
    return ResolvedModel(key.name, wanted["source"], wanted.get("sha256") or "", secret)
