"""The model that an endpoint serves: its own source, or a Model of its namespace that is ready. Pure."""

from collections.abc import Callable

from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.kube import Object, ObjectKey
from pilotage.serving.parts import EndpointRef, ResolvedModel


def resolve(subject: EndpointRef, find: Callable[[ObjectKey], Object | None]) -> ResolvedModel | EndpointProblem:
    """The weights and the name that clients use, or why they are unknown. `find` looks a Model up."""
    choice = subject.spec.model
    if choice.source is not None:
        secret = choice.secret_ref.name if choice.secret_ref is not None else ""
        return ResolvedModel(subject.name, choice.source, choice.sha256 or "", secret)
    key = ObjectKey(subject.namespace, choice.name or "")
    found = find(key)
    if found is None:
        return EndpointProblem("ModelMissing", f"model/{key.name} -n {key.namespace} does not exist: create it.")
    if found.meta.terminating:
        return EndpointProblem("ModelDeleting", f"model/{key.name} is being deleted: choose another one.")
    body = found.to_dict()
    status = body.get("status", {})
    if status.get("phase") == "Failed":
        conditions = status.get("conditions", [])
        why = next((each.get("message", "") for each in conditions if each.get("type") == "Degraded"), "")
        return EndpointProblem("ModelFailed", f"{why.rstrip('. ') or 'it cannot be fetched'} (model/{key.name}).")
    if status.get("phase") != "Ready":
        return EndpointProblem("ModelNotReady", f"model/{key.name} is being fetched.", waits=True)
    wanted = body["spec"]
    secret = (wanted.get("secretRef") or {}).get("name", "")
    return ResolvedModel(key.name, wanted["source"], wanted.get("sha256") or "", secret)
