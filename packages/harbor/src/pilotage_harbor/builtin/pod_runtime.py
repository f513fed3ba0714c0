"""RuntimeClasses: what pods that name one get from it, and which pods are refused, as the plugin RuntimeClass does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.errors import forbidden
from pilotage_harbor.builtin.pod_resources import amounts

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusError
    from pilotage_harbor.kinds import Json, View

RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"


def apply_runtime_class(pod: Json, view: View) -> None:
    """Give a new pod the overhead, node selector and tolerations of its class; 403 where that cannot be."""
    spec = pod["spec"]
    found = _class_of(pod, view)
    overhead = _overhead(found)
    if overhead is not None:
        if spec.get("overhead") and amounts(spec["overhead"]) != amounts(overhead):
            raise _refusal(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    scheduling = (found or {}).get("scheduling")
    if scheduling is None:
        return
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            where = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}]"
            raise _refusal(pod, f"conflict: {where} = {selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = _merged([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
    if tolerations:
        spec["tolerations"] = tolerations


def check_overhead(pod: Json, view: View) -> None:
    """403 for a pod with an overhead that is not that of its class."""
    overhead, given = _overhead(_class_of(pod, view)), pod["spec"].get("overhead")
    if overhead is None and given is not None:
        raise _refusal(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if overhead is not None and amounts(given) != amounts(overhead):
        raise _refusal(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def _class_of(pod: Json, view: View) -> Json | None:
    name = pod["spec"].get("runtimeClassName")
    if name is None:
        return None
    found = view.get(RUNTIME_CLASSES, "", name)
    if found is None:
        raise _refusal(pod, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _overhead(runtime_class: Json | None) -> Json | None:
    if runtime_class is None or runtime_class.get("overhead") is None:
        return None
    fixed: Json = runtime_class["overhead"].get("podFixed") or {}
    return fixed


def _refusal(pod: Json, why: str) -> StatusError:
    return forbidden("", "pods", pod["metadata"].get("name", ""), why)


def _merged(tolerations: list[Json]) -> list[Json]:
    """Those that no other one makes superfluous; of equal ones, the first."""
    kept: list[Json] = []
    for index, one in enumerate(tolerations):
        later = (each for each in tolerations[index + 1 :] if each != one)
        if not any(_covers(each, one) for each in kept) and not any(_covers(each, one) for each in later):
            kept.append(one)
    return kept


def _covers(wide: Json, narrow: Json) -> bool:
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if wide.get("key", "") != narrow.get("key", "") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and wide["effect"] != narrow.get("effect", ""):
        return False
    if wide.get("effect") == "NoExecute" and (seconds := wide.get("tolerationSeconds")) is not None:
        own = narrow.get("tolerationSeconds")
        if own is None or own > seconds:
            return False
    if exists:
        return True
    return bool(narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", ""))
