"""The fetch request of a Model, read from its spec. Pure."""

from pilotage.api.base import InvalidField
from pilotage.api.model import ModelSpec
from pilotage.controllers.model.status import ByPods
from pilotage.kube import Object
from pilotage.models import ClaimSource, FetchRequest, PermanentError, Reason, parse_source
from pilotage.models.source import is_read_by_pods


def request_of(model: Object) -> FetchRequest | PermanentError:
    """The request of a Model, or what is wrong with its spec."""
    try:
        spec = ModelSpec.read(model.get("spec"))
        source = parse_source(spec.source)
    except InvalidField as error:
        where = error.below("spec")
        return PermanentError(Reason.INVALID_SOURCE, f"{where} cannot be used: {error.reason}", f"Change {where}")
    except PermanentError as problem:
        return problem
    secret = spec.secret_ref.name if spec.secret_ref is not None else ""
    return FetchRequest(
        source,
        spec.sha256 or "",
        spec.format or "",
        secret,
        model.meta.namespace,
        model.meta.uid,
        retain=spec.cache.policy == "Retain",
    )


def left_to_pods(request: FetchRequest, *, everything: bool) -> ByPods | None:
    """Why a source is not fetched by the operator: only pods can read it, or pods fetch `everything`."""
    source = request.source
    if is_read_by_pods(source):
        what = "claim" if isinstance(source, ClaimSource) else "repository"
        return ByPods("CheckedByPods", f"The {what} is read, and checked, by the pods that use it.")
    return ByPods("FetchedByPods", "It is fetched, and checked, by the pods that use it.") if everything else None


def retains(model: Object) -> bool:
    """Whether the files of a Model stay when it goes. Its spec may be anything."""
    return bool(model.get("spec", "cache", "policy") == "Retain")
