"""The fingerprint of a revision: a spec with another one needs new pods.

It covers `REVISION_FIELDS`. With KServe, whether the endpoint has an autoscaler counts, too: there, that is written on
the pods.
"""

from typing import Any

from pilotage.api.endpoint import REVISION_FIELDS, EndpointSpec
from pilotage.serving.manifests import digest
from pilotage.serving.parts import ResolvedModel
from pilotage.serving.quantity import normal


def fingerprint(spec: EndpointSpec, model: ResolvedModel) -> str:
    """A digest that is the same for specs that the same pods can serve.

    Values that are the default do not count, so that a field that is new in a later version changes nothing.
    """
    parts: dict[str, Any] = {name: value for name, value in spec.without_defaults().items() if name in REVISION_FIELDS}
    resources = parts.get("resources") or {}
    parts["resources"] = {
        kind: {name: normal(value) for name, value in amounts.items()} for kind, amounts in resources.items()
    }
    if spec.cache is not None:
        parts["cache"]["size"] = normal(spec.cache.size)
    if spec.placement.kind == "KServe" and spec.autoscaling is not None:
        parts["scalesByItself"] = True
    parts["model"] = {name: value for name, value in model._asdict().items() if value}
    return digest(_without_nothing(parts))


def replicas_of(spec: EndpointSpec) -> int:
    """The least number of replicas."""
    return spec.replicas if spec.autoscaling is None else max(spec.autoscaling.min, 1)


def _without_nothing(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """The value without empty parts: they are the default of all our fields."""
    if isinstance(value, dict):
        kept = {name: _without_nothing(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in ({}, [])}
    return value
