"""Final state of a namespace, without values that differ between two runs: random names, hashes, times, versions."""

import re
from typing import Any

from pilotage.kube import Client, Json
from pilotage_sim.models.common import (
    CONFIG_MAPS,
    CONTROLLERS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    SLICES,
    is_ready,
)

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_COUNTERS = re.compile(r".*[rR]eplicas$|active|ready|succeeded|failed|terminating")


async def settled(client: Client, namespace: str) -> Json:
    """The state of a namespace, in a form in which two can be compared."""
    found = {}
    for resource in (DEPLOYMENTS, REPLICA_SETS, CONTROLLERS, JOBS, PODS, SLICES, CONFIG_MAPS, SERVICE_ACCOUNTS):
        found[resource.plural] = [obj.to_dict() for obj in (await client.list(resource, namespace)).items]
    hashes = {
        each["metadata"]["labels"][HASH]: f"HASH-{each['metadata']['annotations'][REVISION]}"
        for each in found["replicasets"]
        if HASH in each["metadata"].get("labels", {})
    }
    state = {
        "deployments": [_workload(each) for each in found["deployments"]],
        "replicasets": [_workload(each) for each in found["replicasets"]],
        "replicationcontrollers": [_workload(each) for each in found["replicationcontrollers"]],
        "jobs": [_workload(each) for each in found["jobs"]],
        "pods": [_pod(each) for each in found["pods"]],
        "endpointslices": [_slice(each) for each in found["endpointslices"]],
        "names": sorted(each["metadata"]["name"] for kind in ("configmaps", "serviceaccounts") for each in found[kind]),
    }
    hidden = _hidden(state, hashes)
    return {kind: sorted(each, key=str) for kind, each in hidden.items()}


def _workload(body: Json) -> Json:
    status = body.get("status") or {}
    conditions = sorted(
        (each["type"], each["status"], each.get("reason", ""), each.get("message", ""))
        for each in status.get("conditions") or []
    )
    return {
        **_meta(body),
        "replicas": body["spec"].get("replicas"),
        "selector": body["spec"].get("selector") if body["kind"] != "Job" else None,
        "counts": {name: count for name, count in status.items() if _COUNTERS.fullmatch(name)},
        "conditions": conditions,
        "observed": status.get("observedGeneration") == body["metadata"].get("generation"),
    }


def _meta(body: Json) -> Json:
    meta = body["metadata"]
    labels = {name: value for name, value in meta.get("labels", {}).items() if "controller-uid" not in name}
    return {
        "name": meta["name"] if "generateName" not in meta else meta["generateName"],
        "labels": labels,
        "annotations": {
            name: value for name, value in meta.get("annotations", {}).items() if "last-change-trigger-time" not in name
        },
        "owners": [
            (each["kind"], each.get("controller"), each.get("blockOwnerDeletion"))
            for each in meta.get("ownerReferences", ())
        ],
        "finalizers": meta.get("finalizers", []),
        "terminating": "deletionTimestamp" in meta,
    }


def _pod(body: Json) -> Json:
    images = [each["image"] for each in body["spec"]["containers"]]
    return {**_meta(body), "phase": body["status"]["phase"], "ready": is_ready(body), "images": images}


def _slice(body: Json) -> Json:
    endpoints = [
        {
            "conditions": each["conditions"],
            "placed": "nodeName" in each,
            "target": each.get("targetRef", {}).get("kind"),
            "addresses": len(each["addresses"]),
        }
        for each in body.get("endpoints") or ()
    ]
    ports = sorted((body.get("ports") or ()), key=str)
    return {**_meta(body), "type": body["addressType"], "ports": ports, "endpoints": sorted(endpoints, key=str)}


def _hidden(value: Any, hashes: dict[str, str]) -> Any:
    """Template hashes become their revision."""
    if isinstance(value, dict):
        return {name: _hidden(each, hashes) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(each, hashes) for each in value]
    if isinstance(value, str):
        for hash_, name in hashes.items():
            value = value.replace(hash_, name)
    return value
