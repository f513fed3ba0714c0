"""Every field of our kinds that a tenant can write, each with values that a tenant could hope to gain something by.

The fields come from the generated CustomResourceDefinitions, so a new field is in the matrix as soon as it exists. What
a namespace editor may write are ServingEndpoints and Models, and labelled objects of Kubernetes' own kinds; an owner of
a namespace who was given all of ``pilotage.dev`` writes the others, and statuses, too.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from pilotage.api.names import LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_KEPT, LABEL_MANAGED_BY, LABEL_REVISION
from pilotage.kube import Resource
from pilotage.operator.crds import crds
from pilotage.serving.resources import CLAIMS, DEPLOYMENTS, SERVICES
from tests.api.objects import gateway_route, process, resource_of, teardown

ATTACKER, VICTIM = "team-a", "team-b"
VICTIM_NAME = "victim"
VICTIM_UID = "{victim uid}"
"""Stands for the uid of the victim's endpoint, which is known only when that is there."""

TEXTS = (
    VICTIM,
    f"{VICTIM}/{VICTIM_NAME}",
    VICTIM_NAME,
    VICTIM_UID,
    "../../../../etc/passwd",
    "/etc/shadow",
    "file:///etc/shadow",
    "http://169.254.169.254/latest/meta-data",
    f"pvc://{VICTIM}/weights/a.gguf",
    "127.0.0.1",
    "localhost",
    "*.0.0.1",
    "--log-file=/tmp/owned",
    "LD_PRELOAD",
    "$(touch /tmp/owned)",
    "{model}$(MODEL_PATH)",
    "\x1b]52;c;aGk=\x07",
    "a\nb",
    "\u202egpj",
    "",
    "9" * 400,
    "x" * 40_000,
)
NUMBERS = (-1, 0, 1, 65536, 10**6, 2**31, 2**53, 2**63 - 1)
MANY = 4000
SAMPLED = 4
"""Ratio of all values to those in the sample."""

Path = tuple[str | int, ...]


class Case(NamedTuple):
    """An object to create in the attacker's namespace."""

    resource: Resource
    body: dict[str, Any]
    what: str
    """The field and its value, for people."""
    status: dict[str, Any] | None = None
    """Written as the object's status, once it is there."""


def cases() -> list[Case]:
    """The whole matrix, each with a name of its own."""
    found = [*_fields(), *_metadata(), *_labelled(), *_records()]
    for number, case in enumerate(found):
        case.body["metadata"]["name"] = f"m{number}"
    return found


def sample() -> list[Case]:
    """A part of the values of each field, and every case that has no field of its own."""
    groups = [[*group] for _, group in itertools.groupby(cases(), key=lambda case: case.what.split(" = ")[0])]
    return [case for number, group in enumerate(groups) for case in group[number % min(SAMPLED, len(group)) :: SAMPLED]]


def _fields() -> Iterator[Case]:
    for crd in crds():
        if crd["spec"]["scope"] != "Namespaced":
            continue
        resource = resource_of(crd)
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for base in _BASES[resource.kind]:
            for path, schema in _leaves(properties["spec"], ("spec",)):
                for value in _values(schema):
                    yield Case(resource, _with(base, path, value), f"{resource.kind} {_shown(path, value)}")
        if resource.kind in ("Teardown", "GatewayRoute", "HostProcess"):
            base = _BASES[resource.kind][0]
            for path, schema in _leaves(properties["status"], ("status",)):
                for value in _values(schema):
                    status = _with({}, path, value)["status"]
                    yield Case(resource, copy.deepcopy(base), f"{resource.kind} {_shown(path, value)}", status)


def _metadata() -> Iterator[Case]:
    """Fields of the metadata of every object, on an endpoint."""
    owner = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "name": VICTIM_NAME, "uid": VICTIM_UID}
    resource = next(resource_of(crd) for crd in crds() if crd["spec"]["names"]["kind"] == "ServingEndpoint")
    for metadata in (
        {"labels": _LABELS},
        {"labels": {LABEL_ENDPOINT_UID: "", LABEL_REVISION: "-1"}},
        {"annotations": dict.fromkeys(_LABELS, VICTIM_UID)},
        {"annotations": {f"pilotage.dev/{name}": f"{VICTIM}/{VICTIM_NAME}-1/all" for name in _INTENTS}},
        {"annotations": {f"pilotage.dev/{name}": "x" * 40_000 for name in _INTENTS}},
        {"finalizers": ["attacker.example/never"]},
        {"ownerReferences": [owner]},
        {"ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}]},
    ):
        body = copy.deepcopy(_BASES["ServingEndpoint"][0])
        body["metadata"] |= metadata
        yield Case(resource, body, f"ServingEndpoint metadata {metadata}")


def _labelled() -> Iterator[Case]:
    """Objects of other kinds that say that they are parts of the victim's endpoint."""
    template = {
        "metadata": {"labels": {"a": "b", **_LABELS}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 1}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    bodies: list[tuple[Resource, dict[str, Any]]] = [
        (SERVICES, {"ports": [{"port": 80}]}),
        (DEPLOYMENTS, deployment),
        (CLAIMS, claim),
    ]
    for labels in (
        _LABELS,
        _LABELS | {LABEL_ENDPOINT: "ghost"},
        _LABELS | {LABEL_ENDPOINT_UID: "00000000-0000-4000-8000-000000000000"},
        _LABELS | {LABEL_REVISION: "9" * 63},
        {LABEL_MANAGED_BY: "pilotage", LABEL_KEPT: VICTIM_NAME},
    ):
        for finalizers in ([], ["attacker.example/never"]):
            for resource, spec in bodies:
                metadata = {"labels": labels, "finalizers": finalizers}
                yield Case(resource, {"metadata": metadata, "spec": spec}, f"{resource.kind} labelled {labels}")


def _records() -> Iterator[Case]:
    """Teardowns of the victim's endpoint, as an attacker would write them who knows all about it."""
    resource = next(resource_of(crd) for crd in crds() if crd["spec"]["names"]["kind"] == "Teardown")
    for namespace in (VICTIM, ATTACKER):
        target = _TARGET | {"namespace": namespace, "uid": VICTIM_UID}
        for reason in ("Deleted", "Vanished"):
            for parts in ([], [_part("v1", "Service", "services"), _part("apps/v1", "Deployment", "deployments")]):
                spec = {"target": target, "reason": reason, "allParts": not parts, "parts": parts}
                yield Case(resource, teardown(spec=spec), f"Teardown {reason} of {namespace} with {len(parts)} parts")


def _part(api_version: str, kind: str, plural: str) -> dict[str, str]:
    name = f"{VICTIM_NAME}-1"
    return {"apiVersion": api_version, "kind": kind, "resource": plural, "name": name, "uid": f"{{{kind} uid}}"}


_LABELS = {
    LABEL_MANAGED_BY: "pilotage",
    LABEL_ENDPOINT: VICTIM_NAME,
    LABEL_ENDPOINT_UID: VICTIM_UID,
    LABEL_REVISION: "1",
}
_INTENTS = ("promote", "abort", "hold", "retry")
_TARGET = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "name": VICTIM_NAME}
_MODEL = {"source": "hf://org/repo/model.gguf"}
_BASES: dict[str, list[dict[str, Any]]] = {
    "ServingEndpoint": [
        {"metadata": {}, "spec": {"model": _MODEL, "route": {"kind": "Ingress", "host": "a.example.com"}}},
        {
            "metadata": {},
            "spec": {
                "model": _MODEL,
                "placement": {"kind": "Host", "host": "gpu-1"},
                "route": {"kind": "PilotageGateway"},
            },
        },
    ],
    "Model": [{"metadata": {}, "spec": _MODEL}],
    "Teardown": [teardown(spec={"allParts": True, "target": _TARGET | {"namespace": ATTACKER, "uid": VICTIM_UID}})],
    "HostProcess": [process(spec={"host": "gpu-1"})],
    "Experiment": [
        {
            "metadata": {},
            "spec": {"endpoint": {"name": VICTIM_NAME}, "variants": [{"name": "q8", "weight": 10, "same": True}]},
        }
    ],
    "GatewayRoute": [gateway_route(spec={"backends": [{"service": "assistant-1"}]})],
}


def _leaves(schema: dict[str, Any], path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The fields below one, lists and maps both as a whole and by their elements."""
    if schema.get("type") == "object" and "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from _leaves(inner, (*path, name))
        return
    yield path, schema
    if schema.get("type") == "array":
        yield from _leaves(schema["items"], (*path, 0))


def _values(schema: dict[str, Any]) -> Iterator[Any]:
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        yield from (*NUMBERS, *TEXTS[:4])
    elif kind == "string":
        yield from TEXTS if "enum" not in schema else [VICTIM, *schema["enum"]]
    elif kind in ("integer", "number"):
        yield from NUMBERS
    elif kind == "boolean":
        yield from (True, False)
    elif kind == "array":
        yield [_filler(schema["items"])] * MANY
    elif kind == "object" or schema.get("x-kubernetes-preserve-unknown-fields"):
        inner = schema.get("additionalProperties") or {}
        filler = _filler(inner) if isinstance(inner, dict) else "a"
        yield dict.fromkeys(TEXTS, filler)
        yield {f"k{number}": filler for number in range(MANY)}
        yield _nested(80)


def _filler(schema: dict[str, Any]) -> Any:
    return {"integer": 1, "boolean": True, "object": {}, "array": []}.get(schema.get("type", "string"), "a")


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def _with(base: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """The object, with one field set; what it needs on the way is made."""
    made: dict[str, Any] = copy.deepcopy(base)
    place: Any = made
    for step, following in itertools.pairwise(path):
        empty: Any = [] if following == 0 else {}
        if step == 0:
            if not place:
                place.append(empty)
            place = place[0]
        else:
            if not place.get(step):
                place[step] = empty
            place = place[step]
    if path[-1] == 0:
        place[:] = [value]
    else:
        place[path[-1]] = value
    return made


def _shown(path: Path, value: Any) -> str:
    text = repr(value)
    return f"{'.'.join(map(str, path))} = {text if len(text) < 60 else f'{text[:50]}… ({len(text)})'}"
