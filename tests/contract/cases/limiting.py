"""Limits: LimitRanges and RuntimeClasses, what they give to pods and what they refuse."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import PODS, container, obj, pod, with_service_account

theme = Theme("limit")

RANGES, CLAIMS = "limitranges", "persistentvolumeclaims"
CLASSES, NODE = "/node.k8s.io/v1/runtimeclasses", "node.k8s.io/v1"


def limits(name: str, *items: Any) -> Any:
    return obj("v1", "LimitRange", name, spec={"limits": [*items]})


def with_resources(name: str, *resources: Any, **spec: Any) -> Any:
    containers = [container(name=f"c{index}", resources=each) for index, each in enumerate(resources)]
    return pod(name, containers=containers, **spec)


async def ranged(kit: Kit, *items: Any) -> None:
    """A LimitRange, when the server knows of it: it asks again for those of an empty namespace every 30 s only."""
    await with_service_account(kit)
    await kit.quiet.create(RANGES, limits("range", *items))

    async def seen() -> bool:
        probe = with_resources("probe", {"limits": {"cpu": "9999"}})
        refused = await kit.probing.create(PODS, probe, dryRun="All")
        return "9999" in str(refused.body.get("message"))

    if any(item["type"] == "Container" and "cpu" in item.get("max", {}) for item in items):
        await kit.until("the range counts", seen)


CONTAINER = {
    "type": "Container",
    "max": {"cpu": "2"},
    "min": {"cpu": "100m"},
    "default": {"cpu": "1", "memory": "64Mi"},
    "defaultRequest": {"cpu": "200m"},
}


@theme.case()
async def defaults_of_containers(kit: Kit) -> None:
    await ranged(kit, CONTAINER)
    await kit.create(PODS, with_resources("none", {}))
    await kit.create(PODS, with_resources("some", {"requests": {"cpu": "300m"}}, {"limits": {"memory": "1Gi"}}))
    init = [container(name="init", resources={})]
    await kit.create(PODS, with_resources("init", {"limits": {"cpu": "1500m", "memory": "1Gi"}}, initContainers=init))


@theme.case()
async def bounds_of_containers(kit: Kit) -> None:
    await ranged(kit, CONTAINER)
    await kit.create(PODS, with_resources("small", {"requests": {"cpu": "50m"}}))
    await kit.create(PODS, with_resources("large", {"limits": {"cpu": "3"}}))
    await kit.create(PODS, with_resources("second", {}, {"limits": {"cpu": "2500m"}}))
    init = [container(name="init", resources={"limits": {"cpu": "4"}})]
    await kit.create(PODS, with_resources("init", {}, initContainers=init))


@theme.case()
async def bounds_that_nobody_names(kit: Kit) -> None:
    await ranged(
        kit,
        {"type": "Container", "max": {"cpu": "2"}},
        {"type": "Pod", "min": {"memory": "10Mi"}, "max": {"memory": "100Mi"}},
    )
    await kit.create(PODS, with_resources("none", {}))
    await kit.create(PODS, with_resources("request", {"requests": {"memory": "20Mi"}}))
    limited = {"requests": {"memory": "20Mi"}, "limits": {"memory": "60Mi"}}
    await kit.create(PODS, with_resources("two", limited, limited))
    await kit.create(PODS, with_resources("one", limited))


@theme.case()
async def bounds_of_pods(kit: Kit) -> None:
    """The largest of the init containers counts, with the sidecars before it."""
    await ranged(kit, {"type": "Container", "max": {"cpu": "8"}}, {"type": "Pod", "max": {"cpu": "3"}})
    one, two = {"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}
    sidecar = container(name="sidecar", resources=one, restartPolicy="Always")
    await kit.create(PODS, with_resources("sum", two, two))
    await kit.create(PODS, with_resources("sidecar", one, two, initContainers=[sidecar]))
    init = container(name="init", resources=two)
    await kit.create(PODS, with_resources("fits", one, initContainers=[sidecar, init]))
    more = container(name="init", resources={"limits": {"cpu": "2500m"}})
    await kit.create(PODS, with_resources("init", one, initContainers=[sidecar, more]))
    await kit.create(PODS, with_resources("whole", one, resources={"limits": {"cpu": "4"}}))


@theme.case()
async def ratio_of_limits(kit: Kit) -> None:
    item = {"type": "Container", "max": {"cpu": "8"}, "maxLimitRequestRatio": {"memory": "2"}}
    await ranged(kit, item)
    for name, request, limit in (("wide", "10Mi", "25Mi"), ("fits", "10Mi", "20Mi")):
        resources = {"requests": {"memory": request}, "limits": {"memory": limit}}
        await kit.create(PODS, with_resources(name, resources))
    await kit.create(PODS, with_resources("none", {}))


@theme.case()
async def bounds_of_claims(kit: Kit) -> None:
    await ranged(
        kit,
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
        {"type": "Container", "max": {"cpu": "8"}},
    )
    for name, size in (("small", "500Mi"), ("large", "3Gi"), ("fits", "2Gi")):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        await kit.create(CLAIMS, obj("v1", "PersistentVolumeClaim", name, spec=spec))


@theme.case()
async def what_is_there_stays(kit: Kit) -> None:
    """A range counts for new pods only, and what is invalid is said first."""
    await with_service_account(kit)
    await kit.quiet.create(PODS, with_resources("before", {"limits": {"cpu": "3"}}))
    await ranged(kit, CONTAINER)
    await kit.patch(PODS, "before", {"metadata": {"labels": {"a": "b"}}})
    await kit.create(PODS, with_resources("Invalid", {"limits": {"cpu": "3"}}))


def runtime(name: str, **fields: Any) -> Any:
    return obj(NODE, "RuntimeClass", name, handler="fast", **fields)


async def with_class(kit: Kit, name: str, **fields: Any) -> None:
    await with_service_account(kit)
    await kit.quiet.create(CLASSES, runtime(name, **fields))


@theme.case()
async def runtime_class_unknown(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.create(PODS, pod("a", runtimeClassName="never-made"))
    await kit.create(PODS, pod("b", overhead={"cpu": "1"}))


@theme.case()
async def runtime_class_overhead(kit: Kit) -> None:
    await with_class(kit, "limit-overhead", overhead={"podFixed": {"cpu": "250m", "memory": "64Mi"}})
    await kit.create(PODS, pod("given", runtimeClassName="limit-overhead"))
    same = {"cpu": "0.25", "memory": "65536Ki"}
    await kit.create(PODS, pod("same", runtimeClassName="limit-overhead", overhead=same))
    await kit.create(PODS, pod("other", runtimeClassName="limit-overhead", overhead={"cpu": "1"}))


@theme.case()
async def runtime_class_scheduling(kit: Kit) -> None:
    tolerations = [{"key": "fast", "operator": "Exists"}, {"key": "x", "operator": "Equal", "value": "y"}]
    await with_class(kit, "limit-scheduling", scheduling={"nodeSelector": {"disk": "fast"}, "tolerations": tolerations})
    await kit.create(PODS, pod("plain", runtimeClassName="limit-scheduling"))
    own = [{"key": "fast", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]
    selector = {"zone": "a", "disk": "fast"}
    await kit.create(PODS, pod("own", runtimeClassName="limit-scheduling", nodeSelector=selector, tolerations=own))
    await kit.create(PODS, pod("other", runtimeClassName="limit-scheduling", nodeSelector={"disk": "slow"}))


@theme.case()
async def runtime_class_of_nothing(kit: Kit) -> None:
    await with_class(kit, "limit-nothing")
    await kit.create(PODS, pod("a", runtimeClassName="limit-nothing"))
    await kit.create(PODS, pod("b", runtimeClassName="limit-nothing", overhead={"cpu": "1"}))
