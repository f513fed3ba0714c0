"""Quotas: what is counted, what is refused when there is no room, and what a deletion gives back."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import (
    CM,
    DEPLOYMENTS,
    LEASES,
    PODS,
    cm,
    container,
    deployment,
    lease,
    obj,
    pod,
    secret,
    service,
    template,
    with_service_account,
)

theme = Theme("quota")

QUOTAS, CLAIMS = "resourcequotas", "persistentvolumeclaims"


def hard(limits: Any, name: str = "q") -> Any:
    return obj("v1", "ResourceQuota", name, spec={"hard": limits})


async def limited(kit: Kit, limits: Any, name: str = "q", probe: str = "leases.coordination.k8s.io") -> None:
    """A quota, when it counts: a real one does when its status is written and known. Nothing may be probed by it."""
    await with_service_account(kit)
    await kit.quiet.create(QUOTAS, hard({**limits, f"count/{probe}": "0"}, name))

    async def counts() -> bool:
        resource, body = PROBES[probe]
        return (await kit.probing.create(resource, body, dryRun="All")).status == 403

    await kit.until("the quota counts", counts)


PROBES = {
    "leases.coordination.k8s.io": (LEASES, lease("probe")),
    "podtemplates": ("podtemplates", obj("v1", "PodTemplate", "probe", template=template("a"))),
}


async def until_used(kit: Kit, used: Any, name: str = "q") -> None:
    async def so() -> bool:
        status = (await kit.quiet.get(QUOTAS, name)).body["status"]
        return all(status["used"].get(key) == value for key, value in used.items())

    await kit.until(f"{used} is used", so)
    kit.note("used", used)


async def show(kit: Kit, used: Any, name: str = "q") -> None:
    """The whole quota, once its status says what is used of it: harbor writes that after what it counts."""

    async def so() -> bool:
        quota = (await kit.quiet.get(QUOTAS, name)).body
        status = quota.get("status") or {}
        shown = status.get("used") or {}
        return status.get("hard") == quota["spec"]["hard"] and all(shown[key] == used[key] for key in used)

    await kit.until(f"the status says that {used} is used", so)
    await kit.get(QUOTAS, name)


async def until_taken(kit: Kit, body: Any) -> None:
    """A pod that there is room for, as soon as the server knows that."""

    async def so() -> bool:
        return (await kit.probing.create(PODS, body)).status == 201

    await kit.until("there is room", so)
    kit.note("taken", body["metadata"]["name"])


async def until_refused(kit: Kit, body: Any, *words: str) -> None:
    """A pod that there is no room for, as soon as the server knows why."""

    async def so() -> bool:
        message = str((await kit.probing.create(PODS, body, dryRun="All")).body.get("message"))
        return all(word in message for word in words)

    await kit.until("there is no room", so)
    await kit.create(PODS, body)


def sized(name: str, cpu: str = "", memory: str = "", **spec: Any) -> Any:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    return pod(name, containers=[container(resources={"requests": requests, "limits": requests})], **spec)


def claim(name: str, size: str, **spec: Any) -> Any:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return obj("v1", "PersistentVolumeClaim", name, spec=spec)


@theme.case()
async def numbers_of_objects(kit: Kit) -> None:
    await limited(kit, {"count/configmaps": "2", "secrets": "1", "count/deployments.apps": "0"})
    await kit.quiet.create(CM, cm("a"))
    await kit.quiet.create(CM, cm("b"))
    await kit.create(CM, cm("c"))
    await kit.quiet.create("secrets", secret("a", {}))
    await kit.create("secrets", secret("b", {}))
    await kit.create(DEPLOYMENTS, deployment("a"))
    await show(kit, {"count/configmaps": "2", "secrets": "1"})


@theme.case()
async def compute_of_pods(kit: Kit) -> None:
    await limited(kit, {"requests.cpu": "1", "limits.memory": "1Gi", "pods": "3"})
    await kit.create(PODS, sized("a", "600m", "256Mi"))
    await kit.create(PODS, sized("b", "500m", "256Mi"))
    await kit.create(PODS, sized("c", "100m", "900Mi"))
    await kit.create(PODS, sized("d", "900m", "1Gi"))
    await kit.create(PODS, sized("e", "400m", "512Mi"))
    await until_used(kit, {"requests.cpu": "1", "limits.memory": "768Mi", "pods": "2"})
    await kit.get(QUOTAS, "q")
    await kit.quiet.delete(PODS, "a")
    await until_used(kit, {"requests.cpu": "400m", "limits.memory": "512Mi", "pods": "1"})
    await until_taken(kit, sized("b", "600m", "256Mi"))


@theme.case()
async def resources_that_must_be_said(kit: Kit) -> None:
    await limited(kit, {"cpu": "1", "limits.memory": "1Gi", "requests.ephemeral-storage": "1Gi"})
    await kit.create(PODS, pod("a"))
    await kit.create(PODS, sized("b", "100m"))
    init = [container(name="init")]
    await kit.create(PODS, sized("c", "100m", "1Mi", initContainers=init))
    whole = {"requests": {"cpu": "100m"}, "limits": {"memory": "1Mi"}}
    await kit.create(PODS, pod("d", resources=whole))


@theme.case()
async def pods_that_have_ended(kit: Kit) -> None:
    """They are counted as objects, and no more as pods."""
    await limited(kit, {"pods": "1", "count/pods": "2", "requests.cpu": "1"})
    await kit.quiet.create(PODS, sized("a", "1"))
    await kit.create(PODS, sized("b", "1"))
    await kit.quiet.patch(PODS, "a", {"status": {"phase": "Succeeded"}}, "status")
    await until_used(kit, {"pods": "0", "count/pods": "1", "requests.cpu": "0"})
    await until_taken(kit, sized("b", "1"))
    await kit.quiet.patch(PODS, "b", {"status": {"phase": "Failed"}}, "status")
    await until_used(kit, {"pods": "0", "count/pods": "2", "requests.cpu": "0"})
    await until_refused(kit, sized("c", "1"), "requested: count/pods=1, used")


@theme.case()
async def extended_resources(kit: Kit) -> None:
    await limited(kit, {"requests.example.com/gpu": "2"})
    gpus = {"example.com/gpu": "2"}
    await kit.quiet.create(PODS, pod("a", containers=[container(resources={"limits": gpus})]))
    await kit.create(PODS, pod("b", containers=[container(resources={"limits": gpus})]))
    await kit.quiet.create(PODS, pod("c"))
    await until_used(kit, {"requests.example.com/gpu": "2"})


@theme.case()
async def services_and_ports(kit: Kit) -> None:
    await limited(kit, {"services": "3", "services.nodeports": "2", "services.loadbalancers": "1"})
    await kit.quiet.create("services", service("a", type="NodePort", ports=[{"port": 80}]))
    two = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    await kit.create("services", service("b", type="NodePort", ports=two))
    await kit.quiet.create("services", service("c"))
    await kit.patch("services", "c", {"spec": {"type": "NodePort", "ports": two}})
    await kit.quiet.create("services", service("d", type="LoadBalancer"))
    await kit.create("services", service("e"))
    await until_used(kit, {"services": "3", "services.nodeports": "2", "services.loadbalancers": "1"})


@theme.case()
async def storage_of_claims(kit: Kit) -> None:
    gold = "gold.storageclass.storage.k8s.io"
    await limited(
        kit,
        {
            "requests.storage": "3Gi",
            "persistentvolumeclaims": "5",
            f"{gold}/requests.storage": "1Gi",
            f"{gold}/persistentvolumeclaims": "1",
        },
    )
    await kit.quiet.create(CLAIMS, claim("a", "1Gi", storageClassName="gold"))
    await kit.create(CLAIMS, claim("b", "1Gi", storageClassName="gold"))
    await kit.create(CLAIMS, claim("c", "2560Mi"))
    await kit.quiet.create(CLAIMS, claim("d", "1536Mi"))
    await show(kit, {"persistentvolumeclaims": "2", "requests.storage": "2560Mi"})


@theme.case()
async def two_quotas(kit: Kit) -> None:
    await limited(kit, {"count/configmaps": "9"}, "large")
    await limited(kit, {"count/configmaps": "1"}, "small", "podtemplates")
    await kit.quiet.create(CM, cm("a"))
    await kit.create(CM, cm("b"))


@theme.case()
async def quota_made_smaller(kit: Kit) -> None:
    """Existing objects stay; no new ones are accepted."""
    await limited(kit, {"count/configmaps": "2"})
    for name in ("a", "b"):
        await kit.quiet.create(CM, cm(name))
    await kit.quiet.patch(QUOTAS, "q", {"spec": {"hard": {"count/configmaps": "1"}}})

    async def smaller() -> bool:
        refused = await kit.probing.create(CM, cm("c"), dryRun="All")
        return "limited: count/configmaps=1" in str(refused.body.get("message"))

    await kit.until("the new limit counts", smaller)
    await kit.create(CM, cm("c"))
    await kit.patch(CM, "a", {"data": {"k": "other"}})
    await show(kit, {"count/configmaps": "2"})


@theme.case()
async def dry_runs_use_nothing(kit: Kit) -> None:
    await limited(kit, {"count/configmaps": "1"})
    await kit.quiet.create(CM, cm("a"), dryRun="All")
    await kit.quiet.create(CM, cm("a"))
    await kit.create(CM, cm("b"), dryRun="All")


@theme.case()
async def refused_is_said_before_taken(kit: Kit) -> None:
    await limited(kit, {"count/configmaps": "1"})
    await kit.quiet.create(CM, cm("a"))
    await kit.create(CM, cm("a"))


theme.creates("unknown resource", QUOTAS, hard({"chairs": "1"}))
theme.creates("negative", QUOTAS, hard({"pods": "-1"}))
theme.creates("fraction of a pod", QUOTAS, hard({"pods": "1500m"}))
theme.creates("scopes", QUOTAS, obj("v1", "ResourceQuota", "q", spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]}))
theme.creates(
    "scope selector",
    QUOTAS,
    obj(
        "v1",
        "ResourceQuota",
        "q",
        spec={
            "hard": {"pods": "1"},
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
            },
        },
    ),
)
theme.creates("devices", QUOTAS, hard({"gpu.deviceclass.resource.k8s.io/devices": "1"}))
