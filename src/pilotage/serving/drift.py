"""Drift detection: whether an object differs from what is desired, and the body that corrects it.

A steady state writes nothing. Only fields that we set are compared: the server adds defaults, normalizes quantities and
omits empty values; others add labels, or containers beside ours.

The pods of a revision are never changed in place. Their desired form can change all the same: with another version of
the operator, or with a drain time that takes effect with the next revision. The digest in an annotation tells these
apart from drift: if it differs from ours, the pods stay as they are; if it is equal, somebody has changed them, and the
change is corrected. The spec of a HostProcess or a Job is never changed at all.
"""

import copy
from typing import Any

from pilotage.api.names import ANNOTATION_SEAL, PROCESSES
from pilotage.kube import Object
from pilotage.kube.wire import Json
from pilotage.serving.manifests import SCALED_BY, TEMPLATE
from pilotage.serving.parts import DesiredObject
from pilotage.serving.placements.kserve import SCALING_FIELDS
from pilotage.serving.quantity import amount, normal
from pilotage.serving.resources import CLAIMS, DEPLOYMENTS, INFERENCE_SERVICES, JOBS

_KEYS = ("name", "mountPath", "containerPort", "port")
"""Merge keys of the lists that we write."""
_OPEN = frozenset({"containers", "initContainers", "env", "ports", "volumes", "volumeMounts"})
"""Lists to which others may add elements. In all others, such as the services of a route, one more is a difference."""
_AMOUNTS = ("limits", "requests")
_EMPTY: tuple[object, ...] = ({}, [], None, "")


def same(wanted: DesiredObject, seen: Object) -> bool:
    """Whether an object has everything that is desired, so that nothing has to be written."""
    have = seen.to_dict()
    return _has(_settled(wanted, have), have)


def apply_body(wanted: DesiredObject, seen: Object) -> Json:
    """Body of the server-side apply that corrects an object. Its uid keeps another object of that name untouched."""
    body = copy.deepcopy(_settled(wanted, seen.to_dict()))
    body["metadata"] |= {"namespace": seen.meta.namespace, "uid": seen.meta.uid}
    return body


def _settled(wanted: DesiredObject, have: Json) -> Json:
    """The desired body for this object, which keeps its pods, the replicas of its autoscaler and immutable fields."""
    if wanted.resource in (PROCESSES, JOBS):
        return wanted.body | {"spec": have["spec"]}
    if wanted.resource not in (DEPLOYMENTS, INFERENCE_SERVICES, CLAIMS):
        return wanted.body
    body: Json = dict(wanted.body)
    body["spec"] = dict(body["spec"])
    if wanted.resource == CLAIMS:
        kept = {field: have["spec"][field] for field in ("storageClassName", "accessModes") if field in have["spec"]}
        body["spec"] |= {field: value for field, value in kept.items() if field in body["spec"]}
        if _amount(body["spec"]) < _amount(have["spec"]):
            body["spec"]["resources"] = have["spec"]["resources"]
        return body
    annotations = body["metadata"].get("annotations", {})
    has = have["metadata"].get("annotations") or {}
    if wanted.resource == INFERENCE_SERVICES:
        # KServe copies annotations onto the pods: another seal would replace all of them.
        annotations = {name: value for name, value in annotations.items() if name != ANNOTATION_SEAL}
        annotations |= {name: value for name, value in has.items() if name == ANNOTATION_SEAL}
        body["metadata"] = body["metadata"] | {"annotations": annotations}
    made_of = has.get(TEMPLATE)
    if wanted.resource == DEPLOYMENTS and SCALED_BY in annotations:
        body["spec"]["replicas"] = have["spec"].get("replicas", 1)
    if made_of is not None and made_of != annotations[TEMPLATE]:
        body["metadata"] = body["metadata"] | {"annotations": annotations | {TEMPLATE: made_of}}
        if wanted.resource == DEPLOYMENTS:
            body["spec"]["template"] = have["spec"]["template"]
            body["spec"]["progressDeadlineSeconds"] = have["spec"]["progressDeadlineSeconds"]
        else:
            scaling = {field: value for field, value in body["spec"]["predictor"].items() if field in SCALING_FIELDS}
            body["spec"]["predictor"] = have["spec"]["predictor"] | scaling
    return body


def _has(want: Any, have: Any, field: str = "") -> bool:  # noqa: ANN401 - JSON has no narrower type
    if want == have or (not want and want in _EMPTY and have in _EMPTY):
        return True  # most of it is simply equal
    if isinstance(want, dict):
        inner = field in _AMOUNTS
        return isinstance(have, dict) and all(
            _has(each, have.get(name), "amount" if inner else name) for name, each in want.items()
        )
    if isinstance(want, list):
        return isinstance(have, list) and _has_all(want, have, field)
    if field == "amount" and have is not None:
        return normal(want) == normal(have)
    return False


def _has_all(want: list[Any], have: list[Any], field: str) -> bool:
    """Elements with a name are looked up by it, and there may be others; lists without names have to be equal."""
    key = next((each for each in _KEYS if all(isinstance(element, dict) and each in element for element in want)), None)
    if key is None or field not in _OPEN:
        return len(want) == len(have) and all(map(_has, want, have))
    by_key = {element.get(key): element for element in have if isinstance(element, dict)}
    return all(_has(element, by_key.get(element[key])) for element in want)


def _amount(claim_spec: Json) -> Any:  # noqa: ANN401 - a Fraction
    return amount(claim_spec["resources"]["requests"]["storage"]) or 0
