"""Kinds and objects that more than one family's cases need."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pilotage.kube import (
    PODS,
    Absent,
    ApiError,
    Client,
    Json,
    Object,
    Propagation,
    Resource,
    json_patch,
    merge_patch,
    without_finalizer,
)
from pilotage.kube.wire import format_micro_time, format_time
from pilotage.runtime.clock import utc_now
from tests.support.waiting import eventually
from tests.teardown.why.staging import Stage

ADMISSION = "admissionregistration.k8s.io"
VALIDATING = Resource(ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False)
POLICIES = Resource(ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
BINDINGS = Resource(ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False)
ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False)
NODES = Resource("", "v1", "nodes", "Node", False)
NODE_LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
SERVICES = Resource("", "v1", "services", "Service")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
JOBS = Resource("batch", "v1", "jobs", "Job")
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")
EVENTS = Resource("", "v1", "events", "Event")

FINALIZER = "staged.example.com/hold"
SILENT = {"pilotage.dev/silent-kubelet": "true"}
"""The annotation of a pod whose end is never reported (`controlplane/stages.yaml`)."""


def unique(prefix: str) -> str:
    """A name that no other test has, for what is in no namespace."""
    return f"{prefix}-{secrets.token_hex(4)}"


def pod(name: str, node: str = "", *, claim: str = "", grace: int = 30, **spec: Any) -> Json:
    """A pod on a node, which mounts a claim if one is named."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeName": node or None,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": "none"}],
            "volumes": volumes,
            **spec,
        },
    }


def claim(name: str) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }


def volume(name: str, policy: str = "Retain", **spec: Any) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "persistentVolumeReclaimPolicy": policy,
            "capacity": {"storage": "1Mi"},
            "hostPath": {"path": "/nowhere"},
            **spec,
        },
    }


async def node(stage: Stage, name: str, ready: str, reason: str = "KubeletReady") -> Object:
    """A Node without a kubelet: its Lease belongs to another one, so that kwok leaves it alone.

    Until kwok has seen that, it may play its pods, even those that were there before: they have to be `SILENT`.
    """
    now = utc_now()
    lease = {"holderIdentity": name, "leaseDurationSeconds": 3600, "renewTime": format_micro_time(now)}
    await stage.make(NODE_LEASES, {"metadata": {"name": name}, "spec": lease}, "kube-node-lease")
    condition = {
        "type": "Ready",
        "status": ready,
        "reason": reason,
        "message": "as staged",
        "lastHeartbeatTime": format_time(now),
        "lastTransitionTime": format_time(now),
    }
    return await stage.make(NODES, {"metadata": {"name": name}, "status": {"conditions": [condition]}})


async def event(stage: Stage, resource: Resource, obj: Object, reason: str, message: str) -> None:
    """An Event about an object, as a kubelet or a controller writes it."""
    now = format_time(utc_now())
    about = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "namespace": obj.meta.namespace,
        "name": obj.meta.name,
        "uid": obj.meta.uid,
    }
    body = {
        "metadata": {"generateName": "staged-"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": "Warning",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    await stage.make(EVENTS, body)


# Admission

Probe = Callable[[], Awaitable[object]]


def deleting(stage: Stage, resource: Resource, obj: Object) -> Probe:
    """A delete that is not done."""
    return lambda: stage.client.delete(
        resource, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND, dry_run=True
    )


def letting_go(stage: Stage, resource: Resource, obj: Object) -> Probe:
    """The removal of its finalizer, not done."""

    async def probe() -> None:
        patch = without_finalizer(await stage.client.get(resource, obj.key), FINALIZER)
        assert patch is not None
        await stage.client.patch(resource, obj.key, patch, dry_run=True)

    return probe


async def refused(probe: Probe) -> bool:
    try:
        await probe()
    except Absent:
        return False  # it was released, and another client was quicker
    except ApiError:
        return True
    return False


async def passes(probe: Probe) -> bool:
    return not await refused(probe)


@contextlib.asynccontextmanager
async def refusing(stage: Stage, probe: Probe, *staged: tuple[Resource, Json]) -> AsyncIterator[list[Object]]:
    """Admission of some kind, for the time of the block: it is there when the probe is refused, and gone when not."""
    made = [(resource, await stage.client.create(resource, body)) for resource, body in staged]
    try:
        await eventually(lambda: refused(probe))
        yield [obj for _, obj in made]
    finally:
        for resource, obj in reversed(made):
            await stage.client.delete(resource, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)
        await eventually(lambda: passes(probe))


def webhook(
    stage: Stage, operation: str, client_config: Json, plural: str = "configmaps", **changes: Any
) -> tuple[Resource, Json]:
    """A configuration with one webhook, for one kind in the test's namespace alone."""
    entry = {
        "name": "guard.staged.example.com",
        "clientConfig": client_config,
        "rules": [{"operations": [operation], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [plural]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        **changes,
    }
    return VALIDATING, {"metadata": {"name": unique("staged")}, "webhooks": [entry]}


def policy(stage: Stage, operation: str, message: str) -> list[tuple[Resource, Json]]:
    """A policy that refuses, and its binding."""
    name = unique("staged")
    rule = {"operations": [operation], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector},
        "validations": [{"expression": "false", "message": message}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    metadata = {"name": name}
    return [(POLICIES, {"metadata": metadata, "spec": spec}), (BINDINGS, {"metadata": metadata, "spec": binding})]


async def let_go(stage: Stage, resource: Resource, obj: Object) -> None:
    """Remove all its finalizers."""
    current = await stage.client.get(resource, obj.key)
    if current.meta.finalizers:
        remove = json_patch([{"op": "remove", "path": "/metadata/finalizers"}])
        await stage.client.patch(resource, obj.key, remove)


async def force_pods_out(client: Client, namespace: str) -> None:
    """Remove the pods that no kubelet will ever confirm: their namespace could not go."""
    for left in (await client.list(PODS, namespace, metadata_only=True)).items:
        with contextlib.suppress(ApiError):
            if left.meta.finalizers:
                await client.patch(PODS, left.key, merge_patch({"metadata": {"finalizers": None}}))
            await client.delete(PODS, left.key, uid=left.meta.uid, propagation=Propagation.BACKGROUND, grace_seconds=0)
