"""What a Model asks for, read from its spec. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from pilotage.api.model import ModelSpec
from pilotage.controllers.model_status import ByPods
from pilotage.models import ClaimSource, Order, Reason, Standing, parse_source
from pilotage.models.source import is_read_by_pods

if TYPE_CHECKING:
    from pilotage.kube import Object, ObjectKey


class Wish(NamedTuple):
    """What a Model asks for, and the Secret to read it with ("": none)."""

    key: ObjectKey
    uid: str
    order: Order
    secret: str


def read_wish(model: Object) -> Wish | Standing:
    """What a Model asks for; or what is wrong with its spec."""
    try:
        spec = ModelSpec.read(model.get("spec"))
        source = parse_source(spec.source)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("spec", *first["loc"])))
        return Standing(Reason.INVALID_SOURCE, f"{where} cannot be used: {first['msg']}", f"Change {where}")
    except Standing as problem:
        return problem
    secret = spec.secret_ref.name if spec.secret_ref is not None else ""
    audience = f"{model.meta.namespace}/{secret}" if secret else ""
    order = Order(
        source, spec.sha256 or "", spec.format or "", audience, spec.cache.policy == "Retain", model.meta.namespace
    )
    return Wish(model.key, model.meta.uid, order, secret)


def left_to_pods(wish: Wish, *, everything: bool) -> ByPods | None:
    """What is not fetched here: what only pods can read, or, where it is so set, `everything`."""
    source = wish.order.source
    if is_read_by_pods(source):
        what = "claim" if isinstance(source, ClaimSource) else "repository"
        return ByPods("CheckedByPods", f"The {what} is read, and checked, by the pods that use it.")
    return ByPods("FetchedByPods", "It is fetched, and checked, by the pods that use it.") if everything else None


def retains(model: Object) -> bool:
    """Whether its files are to stay when it goes; asked of Models whose spec may be anything."""
    return bool(model.get("spec", "cache", "policy") == "Retain")
