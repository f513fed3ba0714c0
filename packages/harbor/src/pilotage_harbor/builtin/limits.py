"""LimitRanges: what they give to new pods, and what they refuse of pods and claims, as the plugin LimitRanger does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.errors import forbidden
from pilotage_harbor.builtin.pod_resources import amounts, limits_of, requests_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage_harbor.builtin.pod_resources import Amounts
    from pilotage_harbor.builtin.quantity import Amount
    from pilotage_harbor.kinds import Json, View

LIMIT_RANGES = "limitranges"
ANNOTATION = "kubernetes.io/limit-ranger"


def give_defaults(pod: Json, view: View) -> None:
    """Set the requests and limits that the containers of a new pod leave out, and note that."""
    for limit_range in _ranges(pod, view):
        limits: Json = {}
        requests: Json = {}
        for item in limit_range["spec"].get("limits") or ():
            if item["type"] == "Container":
                limits |= item.get("default") or {}
                requests |= item.get("defaultRequest") or {}
        notes: list[str] = []
        for name, words in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(name) or ():
                resources = container["resources"]
                for kind, given, word in (("requests", requests, "request"), ("limits", limits, "limit")):
                    missing = {key: value for key, value in given.items() if key not in resources.get(kind, {})}
                    if missing:
                        resources[kind] = {**resources.get(kind, {}), **missing}
                        notes.append(f"{', '.join(sorted(missing))} {word} for {words} {container['name']}")
        if notes:
            pod["metadata"].setdefault("annotations", {})[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def check_pod(pod: Json, view: View) -> None:
    """403 for a new pod that a LimitRange does not allow."""
    for limit_range in _ranges(pod, view):
        problems: list[str] = []
        for item in limit_range["spec"].get("limits") or ():
            spec = pod["spec"]
            if item["type"] == "Container":
                for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
                    own = container.get("resources") or {}
                    problems += _problems(item, amounts(own.get("requests")), amounts(own.get("limits")))
            elif item["type"] == "Pod":
                problems += _problems(item, requests_of(spec), limits_of(spec))
        _refuse(problems, "pods", pod)


def check_claim(claim: Json, view: View) -> None:
    """403 for a claim that a LimitRange does not allow: what counts is what it requests."""
    for limit_range in _ranges(claim, view):
        problems: list[str] = []
        requests = amounts((claim["spec"].get("resources") or {}).get("requests"))
        for item in limit_range["spec"].get("limits") or ():
            if item["type"] == "PersistentVolumeClaim":
                for name, least in amounts(item.get("min")).items():
                    problems += _below(item["type"], name, least, requests, {})
                for name, most in amounts(item.get("max")).items():
                    problems += _above(item["type"], name, most, requests, what="request")
        _refuse(problems, "persistentvolumeclaims", claim)


def _ranges(obj: Json, view: View) -> Iterator[Json]:
    yield from view.objects(LIMIT_RANGES, obj["metadata"].get("namespace", ""))


def _refuse(problems: list[str], plural: str, obj: Json) -> None:
    if problems:
        unique = list(dict.fromkeys(problems))
        words = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
        raise forbidden("", plural, obj["metadata"].get("name", ""), words)


def _problems(item: Json, requests: Amounts, limits: Amounts) -> Iterator[str]:
    type_ = item["type"]
    for name, least in amounts(item.get("min")).items():
        yield from _below(type_, name, least, requests, limits)
    for name, most in amounts(item.get("max")).items():
        yield from _above(type_, name, most, limits, what="limit", besides=requests)
    for name, ratio in amounts(item.get("maxLimitRequestRatio")).items():
        yield from _ratio(type_, name, ratio, requests, limits)


def _below(type_: str, name: str, least: Amount, requests: Amounts, limits: Amounts) -> Iterator[str]:
    words = f"minimum {name} usage per {type_} is {least}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        yield f"{words}.  No request is specified"
    elif request.value < least.value:
        yield f"{words}, but request is {request}"
    elif limit is not None and limit.value < least.value:
        yield f"{words}, but limit is {limit}"


def _above(
    type_: str, name: str, most: Amount, needed: Amounts, *, what: str, besides: Amounts | None = None
) -> Iterator[str]:
    words = f"maximum {name} usage per {type_} is {most}"
    given, other = needed.get(name), (besides or {}).get(name)
    if given is None:
        yield f"{words}.  No {what} is specified"
    elif given.value > most.value:
        yield f"{words}, but {what} is {given}"
    elif other is not None and other.value > most.value:
        yield f"{words}, but request is {other}"


def _ratio(type_: str, name: str, most: Amount, requests: Amounts, limits: Amounts) -> Iterator[str]:
    words = f"{name} max limit to request ratio per {type_} is {most}"
    request, limit = requests.get(name), limits.get(name)
    if request is None or not request.value:
        yield f"{words}, but no request is specified or request is 0"
    elif limit is None or not limit.value:
        yield f"{words}, but no limit is specified or limit is 0"
    elif limit.value > most.value * request.value:
        yield f"{words}, but provided ratio is {limit.value / request.value:.6f}"
