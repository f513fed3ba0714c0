"""Tables: what `kubectl get` shows of each kind, and how much of the objects comes with it."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import TABLE, Kit
from tests.contract.objects import (
    CM,
    DEPLOYMENTS,
    LEASES,
    cm,
    deployment,
    job,
    lease,
    obj,
    secret,
    service,
    stateful_set,
    with_pod,
    with_service_account,
)

theme = Theme("table")

TIMES = ("Age", "Last Seen", "First Seen", "Duration", "Created At")


def brief(body: Any) -> Any:
    """Columns (name, type, priority) and cells, but for ages."""
    if body.get("kind") != "Table":
        return body
    columns = [[c["name"], c["type"], c["format"], c["priority"]] for c in body["columnDefinitions"]]
    skip = {number for number, column in enumerate(columns) if column[0] in TIMES}
    return [columns, [[cell for number, cell in enumerate(row["cells"]) if number not in skip] for row in body["rows"]]]


def wordless(body: Any) -> Any:
    """The columns without their descriptions: harbor keeps no prose."""
    return [column | {"description": ""} for column in body["columnDefinitions"]]


def shows(name: str, resource: str, *bodies: Any) -> None:
    """A case that creates objects of one kind and asks for the table of them."""

    async def run(kit: Kit) -> None:
        for body in bodies:
            made = await kit.quiet.create(resource, body)
            assert made.status == 201, made.body
        names = ",".join(body["metadata"]["name"] for body in bodies)
        await kit.picking(brief).accepting(TABLE).list(resource, labelSelector=None, **_only(resource, names))

    theme.add(name, run)


def _only(resource: str, names: str) -> dict[str, str]:
    return {"fieldSelector": f"metadata.name={names}"} if resource.startswith("/") else {}


shows("config maps", LEASES, lease("a", holderIdentity="me"), lease("b"))
shows("secrets", "secrets", secret("a", {"x": "eA==", "y": "eQ=="}))
shows("deployments", DEPLOYMENTS, deployment("a", replicas=3), deployment("b"))
shows(
    "replica sets", "apps/v1/replicasets", obj("apps/v1", "ReplicaSet", "a", spec=deployment("a", replicas=2)["spec"])
)
shows("stateful sets", "apps/v1/statefulsets", stateful_set("a", replicas=2))
shows("daemon sets", "apps/v1/daemonsets", obj("apps/v1", "DaemonSet", "a", spec=deployment("a")["spec"]))
shows("jobs", "batch/v1/jobs", job("a", completions=3))
shows("headless services", "services", service("a", clusterIP="None"))
shows(
    "external services",
    "services",
    obj("v1", "Service", "a", spec={"type": "ExternalName", "externalName": "example.com"}),
)
shows("roles", "rbac.authorization.k8s.io/v1/roles", obj("rbac.authorization.k8s.io/v1", "Role", "a", rules=[]))
shows(
    "role bindings",
    "rbac.authorization.k8s.io/v1/rolebindings",
    obj(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "a",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        subjects=[
            {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"},
        ],
    ),
)
shows(
    "ingresses",
    "networking.k8s.io/v1/ingresses",
    obj(
        "networking.k8s.io/v1",
        "Ingress",
        "a",
        spec={"ingressClassName": "x", "rules": [{"host": "example.com"}], "tls": [{"hosts": ["example.com"]}]},
    ),
)
shows(
    "budgets",
    "policy/v1/poddisruptionbudgets",
    obj("policy/v1", "PodDisruptionBudget", "a", spec={"minAvailable": 1, "selector": {}}),
)
shows(
    "autoscalers",
    "autoscaling/v2/horizontalpodautoscalers",
    obj(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "a",
        spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3},
    ),
)
shows(
    "endpoint slices",
    "discovery.k8s.io/v1/endpointslices",
    obj(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "a",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.9.0.1"]}],
        ports=[{"port": 80, "name": "http"}],
    ),
)
shows(
    "claims",
    "persistentvolumeclaims",
    obj(
        "v1",
        "PersistentVolumeClaim",
        "a",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"},
    ),
)
shows(
    "nodes",
    "/nodes",
    obj(
        "v1",
        "Node",
        "table-node",
        meta={"labels": {"node-role.kubernetes.io/worker": ""}},
        spec={"unschedulable": True},
    ),
)
DEVICE_CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
shows(
    "csi drivers",
    "/storage.k8s.io/v1/csidrivers",
    obj("storage.k8s.io/v1", "CSIDriver", "table.example.com", spec={"tokenRequests": [{"audience": "a"}]}),
)
shows(
    "csi storage capacities",
    "storage.k8s.io/v1/csistoragecapacities",
    obj("storage.k8s.io/v1", "CSIStorageCapacity", "a", storageClassName="fast"),
)
shows(
    "volume attachments",
    "/storage.k8s.io/v1/volumeattachments",
    obj(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "table-attachment",
        spec={"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    ),
)
shows(
    "volume attributes classes",
    "/storage.k8s.io/v1/volumeattributesclasses",
    obj("storage.k8s.io/v1", "VolumeAttributesClass", "table-gold", driverName="d.example.com", parameters={"a": "b"}),
)
shows(
    "service cidrs",
    "/networking.k8s.io/v1/servicecidrs",
    obj("networking.k8s.io/v1", "ServiceCIDR", "table-cidr", spec={"cidrs": ["10.0.246.0/24"]}),
)
shows(
    "device classes",
    "/resource.k8s.io/v1/deviceclasses",
    obj("resource.k8s.io/v1", "DeviceClass", "table-class", spec={}),
)
shows(
    "resource claims",
    "resource.k8s.io/v1/resourceclaims",
    obj("resource.k8s.io/v1", "ResourceClaim", "a", spec=DEVICE_CLAIM),
)
shows(
    "resource claim templates",
    "resource.k8s.io/v1/resourceclaimtemplates",
    obj("resource.k8s.io/v1", "ResourceClaimTemplate", "a", spec={"spec": DEVICE_CLAIM}),
)
shows(
    "resource slices",
    "/resource.k8s.io/v1/resourceslices",
    obj(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "table-slice",
        spec={
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        },
    ),
)
shows(
    "priority classes",
    "/scheduling.k8s.io/v1/priorityclasses",
    obj("scheduling.k8s.io/v1", "PriorityClass", "table-priority", value=5),
)
shows("namespaces", "/namespaces", obj("v1", "Namespace", "table-namespace"))


@theme.case()
async def whole_answer(kit: Kit) -> None:
    await kit.quiet.create(LEASES, lease("a"))

    def pick(body: Any) -> Any:
        ageless = [row | {"cells": row["cells"][:2]} for row in body["rows"]]
        return body | {"rows": ageless, "columnDefinitions": wordless(body)}

    await kit.picking(pick).accepting(TABLE).list(LEASES)


@theme.case()
async def service_accounts(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.picking(brief).accepting(TABLE).list("serviceaccounts")


@theme.case()
async def config_map_rows(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"x": "1", "y": "2"}) | {"binaryData": {"z": "eA=="}})
    await kit.picking(brief).accepting(TABLE).get(CM, "a")


@theme.case()
async def include_object(kit: Kit) -> None:
    await kit.quiet.create(LEASES, lease("a"))
    pick = kit.picking(lambda b: [row.get("object") for row in b["rows"]] if "rows" in b else b)
    for include in ("None", "Metadata", "Object", "Everything"):
        await pick.accepting(TABLE).list(LEASES, includeObject=include)


@theme.case()
async def of_one_object(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.picking(brief).accepting(TABLE).get(DEPLOYMENTS, "a")


@theme.case()
async def of_nothing(kit: Kit) -> None:
    await kit.picking(lambda b: b | {"columnDefinitions": wordless(b)}).accepting(TABLE).list(LEASES)


@theme.case()
async def of_what_is_absent(kit: Kit) -> None:
    await kit.accepting(TABLE).get(LEASES, "a")


@theme.case()
async def in_pages(kit: Kit) -> None:
    for name in "abc":
        await kit.quiet.create(LEASES, lease(name))
    pick = kit.picking(lambda b: {"metadata": b["metadata"], "rows": [row["cells"][0] for row in b["rows"]]})
    page = await pick.accepting(TABLE).list(LEASES, limit=2)
    await pick.accepting(TABLE).list(LEASES, limit=2, **{"continue": page.body["metadata"]["continue"]})


@theme.case()
async def with_a_fallback(kit: Kit) -> None:
    await kit.quiet.create(LEASES, lease("a"))
    accept = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
    await kit.picking(lambda b: [b["kind"], b["apiVersion"]]).accepting(accept).list(LEASES)


@theme.case()
async def of_another_version(kit: Kit) -> None:
    await (
        kit.picking(lambda b: [b["kind"], b["apiVersion"]])
        .accepting("application/json;as=Table;v=v1beta1;g=meta.k8s.io")
        .list(LEASES)
    )


@theme.case()
async def of_a_delete(kit: Kit) -> None:
    """A Status is no table's row."""
    await kit.quiet.create(LEASES, lease("a"))
    await kit.accepting(TABLE).delete(LEASES, "a")


@theme.case()
async def of_a_create(kit: Kit) -> None:
    await kit.picking(brief).accepting(TABLE).create(LEASES, lease("a"))


@theme.case()
async def pods(kit: Kit) -> None:
    await with_pod(kit, "new")
    await with_pod(kit, "running", nodeName="far")
    status = {
        "phase": "Running",
        "podIP": "10.9.0.1",
        "podIPs": [{"ip": "10.9.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "main", "ready": True, "restartCount": 2, "image": "i", "imageID": "i", "state": {"running": {}}}
        ],
    }
    await kit.quiet.patch("pods", "running", {"status": status}, "status")
    await with_pod(kit, "waiting", nodeName="far")
    waiting = {
        "name": "main",
        "ready": False,
        "restartCount": 0,
        "image": "i",
        "imageID": "i",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    }
    await kit.quiet.patch("pods", "waiting", {"status": {"phase": "Running", "containerStatuses": [waiting]}}, "status")
    await with_pod(kit, "done", nodeName="far")
    ended = {
        "name": "main",
        "ready": False,
        "restartCount": 0,
        "image": "i",
        "imageID": "i",
        "state": {"terminated": {"reason": "Completed", "exitCode": 0}},
    }
    await kit.quiet.patch("pods", "done", {"status": {"phase": "Succeeded", "containerStatuses": [ended]}}, "status")
    await with_pod(kit, "leaving", nodeName="far")
    await kit.quiet.delete("pods", "leaving")
    await kit.picking(brief).accepting(TABLE).list("pods")


@theme.case()
async def deployment_with_a_status(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a", replicas=3))
    status = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "updatedReplicas": 3}
    await kit.quiet.patch(DEPLOYMENTS, "a", {"status": status}, "status")
    await kit.picking(brief).accepting(TABLE).list(DEPLOYMENTS)


@theme.case()
async def events(kit: Kit) -> None:
    body = obj(
        "v1",
        "Event",
        "e",
        involvedObject={"kind": "Pod", "name": "p", "namespace": kit.ns},
        reason="Tested",
        message="words",
        type="Normal",
        source={"component": "contract"},
        count=3,
    )
    await kit.quiet.create("events", body)
    await kit.picking(brief).accepting(TABLE).list("events")


@theme.case()
async def definitions(kit: Kit) -> None:
    from tests.contract.objects import Kind

    kind = await Kind(kit).served()
    await kit.picking(brief).accepting(TABLE).get("/apiextensions.k8s.io/v1/customresourcedefinitions", kind.name)


@theme.case()
async def as_text_html_or_table(kit: Kit) -> None:
    await kit.quiet.create(LEASES, lease("a"))
    await (
        kit.picking(lambda b: b.get("kind"))
        .accepting("text/html;as=Table;v=v1;g=meta.k8s.io, application/json")
        .list(LEASES)
    )
