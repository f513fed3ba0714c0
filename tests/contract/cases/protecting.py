"""Protection: claims, volumes and their classes that are deleted stay while something uses them, and no longer."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import PODS, obj, pod, with_service_account

theme = Theme("protect")

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "/persistentvolumes", "/storage.k8s.io/v1/volumeattributesclasses"
SIZE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def claim(name: str, **spec: Any) -> Any:
    return obj("v1", "PersistentVolumeClaim", name, spec={**SIZE, "storageClassName": "", **spec})


def volume(name: str, **spec: Any) -> Any:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/none"},
        "storageClassName": "",
        **spec,
    }
    return obj("v1", "PersistentVolume", name, spec=spec)


def user(name: str, claim_name: str, **spec: Any) -> Any:
    data = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
    return pod(name, volumes=[data], nodeName="nowhere", **spec)


async def stays(kit: Kit, resource: str, name: str, other: Any) -> None:
    """Delete an object that is used and then another one that is not; when that is gone, the first is still there."""
    await kit.quiet.create(resource, other)
    await kit.quiet.delete(resource, name)
    await kit.quiet.delete(resource, other["metadata"]["name"])
    await kit.until_gone(resource, other["metadata"]["name"])
    await kit.get(resource, name)


@theme.case()
async def claim_that_nobody_uses(kit: Kit) -> None:
    await kit.create(CLAIMS, claim("data"))
    await kit.delete(CLAIMS, "data")
    await kit.until_gone(CLAIMS, "data")


@theme.case()
async def claim_of_a_pod(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.quiet.create(CLAIMS, claim("data"))
    await kit.quiet.create(PODS, user("a", "data"))
    await stays(kit, CLAIMS, "data", claim("other"))
    await kit.quiet.delete(PODS, "a", gracePeriodSeconds=0)
    await kit.until_gone(CLAIMS, "data")


@theme.case()
async def claim_of_two_pods(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.quiet.create(CLAIMS, claim("data"))
    for name in ("a", "b"):
        await kit.quiet.create(PODS, user(name, "data"))
    await kit.quiet.delete(PODS, "a", gracePeriodSeconds=0)
    await stays(kit, CLAIMS, "data", claim("other"))
    await kit.quiet.delete(PODS, "b", gracePeriodSeconds=0)
    await kit.until_gone(CLAIMS, "data")


@theme.case()
async def claim_of_a_pod_that_has_ended(kit: Kit) -> None:
    """It is in use: the pod is still there."""
    await with_service_account(kit)
    await kit.quiet.create(CLAIMS, claim("data"))
    await kit.quiet.create(PODS, user("a", "data"))
    await kit.quiet.patch(PODS, "a", {"status": {"phase": "Succeeded"}}, "status")
    await stays(kit, CLAIMS, "data", claim("other"))
    await kit.quiet.delete(PODS, "a")
    await kit.until_gone(CLAIMS, "data")


@theme.case()
async def claim_of_a_pod_without_a_node(kit: Kit) -> None:
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    await with_service_account(kit)
    await kit.quiet.create(CLAIMS, claim("data"))
    await kit.quiet.create(PODS, pod("a", volumes=[data]))
    await kit.quiet.delete(CLAIMS, "data")
    await kit.until_gone(CLAIMS, "data")


@theme.case()
async def claim_with_another_finalizer(kit: Kit) -> None:
    body = claim("data")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await kit.quiet.create(CLAIMS, body)
    await kit.delete(CLAIMS, "data")

    async def alone() -> bool:
        found = await kit.quiet.get(CLAIMS, "data")
        return bool(found.body["metadata"]["finalizers"] == ["example.com/hold"])

    await kit.until("only the other finalizer is left", alone)
    await kit.get(CLAIMS, "data")


@theme.case()
async def claim_that_is_marked_and_unprotected(kit: Kit) -> None:
    """A finalizer can be removed by hand without further checks."""
    await with_service_account(kit)
    await kit.quiet.create(CLAIMS, claim("data"))
    await kit.quiet.create(PODS, user("a", "data"))
    await kit.quiet.delete(CLAIMS, "data")
    await kit.patch(CLAIMS, "data", {"metadata": {"finalizers": None}})
    await kit.until_gone(CLAIMS, "data")


@theme.case()
async def volume_that_is_bound(kit: Kit) -> None:
    data = (await kit.quiet.create(CLAIMS, claim("data", volumeName="protect-bound"))).body
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": kit.ns,
        "name": "data",
        "uid": data["metadata"]["uid"],
    }
    await kit.quiet.create(VOLUMES, volume("protect-bound", claimRef=reference))
    await kit.quiet.patch(VOLUMES, "protect-bound", {"status": {"phase": "Bound"}}, "status")
    await stays(kit, VOLUMES, "protect-bound", volume("protect-other"))
    await kit.quiet.patch(VOLUMES, "protect-bound", {"status": {"phase": "Released"}}, "status")
    await kit.until_gone(VOLUMES, "protect-bound")


@theme.case()
async def class_of_volumes(kit: Kit) -> None:
    def made(name: str) -> Any:
        driver, parameters = "csi.example.com", {"iops": "9"}
        return obj("storage.k8s.io/v1", "VolumeAttributesClass", name, driverName=driver, parameters=parameters)

    await kit.quiet.create(CLASSES, made("protect-gold"))
    await kit.quiet.create(CLAIMS, claim("data", volumeAttributesClassName="protect-gold"))
    await stays(kit, CLASSES, "protect-gold", made("protect-lead"))
    await kit.quiet.delete(CLAIMS, "data")
    await kit.until_gone(CLASSES, "protect-gold")
