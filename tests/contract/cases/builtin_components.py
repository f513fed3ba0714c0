"""Built-in kinds: those that kube-scheduler and kube-controller-manager wait for: CSI, devices, Service addresses."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import obj

theme = Theme("kind")
creates = theme.creates

STORAGE, NETWORKING, DEVICES = "storage.k8s.io/v1", "networking.k8s.io/v1", "resource.k8s.io/v1"
CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
POOL = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
PARENT = {"resource": "services", "namespace": "x", "name": "y"}


def driver(name: str, **spec: Any) -> Any:
    return obj(STORAGE, "CSIDriver", name, spec=spec)


def attachment(name: str, **spec: Any) -> Any:
    spec = {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}, **spec}
    return obj(STORAGE, "VolumeAttachment", name, spec=spec)


def slice_(name: str, **spec: Any) -> Any:
    spec = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "n", "devices": [{"name": "gpu-0"}], **spec}
    return obj(DEVICES, "ResourceSlice", name, spec=spec)


creates("csi driver", f"/{STORAGE}/csidrivers", driver("plain.csi.example.com"))
creates(
    "csi driver invalid",
    f"/{STORAGE}/csidrivers",
    driver(
        "invalid.csi.example.com",
        fsGroupPolicy="Always",
        volumeLifecycleModes=["Forever"],
        tokenRequests=[{"audience": "a", "expirationSeconds": 5}, {"audience": "a"}],
        nodeAllocatableUpdatePeriodSeconds=1,
    ),
)
creates(
    "csi storage capacity",
    f"{STORAGE}/csistoragecapacities",
    obj(STORAGE, "CSIStorageCapacity", "a", storageClassName="fast", capacity="1024Mi", nodeTopology={}),
)
creates(
    "csi storage capacity invalid",
    f"{STORAGE}/csistoragecapacities",
    obj(STORAGE, "CSIStorageCapacity", "a", storageClassName="Fast", capacity="-1"),
)
creates("volume attachment", f"/{STORAGE}/volumeattachments", attachment("kind-attachment"))
creates(
    "volume attachment of nothing", f"/{STORAGE}/volumeattachments", attachment("kind-attachment-nothing", source={})
)
creates(
    "volume attachment invalid",
    f"/{STORAGE}/volumeattachments",
    attachment("kind-attachment-invalid", attacher="", nodeName="N", source={"persistentVolumeName": ""}),
)
creates(
    "volume attributes class",
    f"/{STORAGE}/volumeattributesclasses",
    obj(STORAGE, "VolumeAttributesClass", "kind-gold", driverName="csi.example.com", parameters={"iops": "9"}),
)
creates(
    "volume attributes class invalid",
    f"/{STORAGE}/volumeattributesclasses",
    obj(STORAGE, "VolumeAttributesClass", "kind-lead", driverName=""),
)
creates(
    "ip address", f"/{NETWORKING}/ipaddresses", obj(NETWORKING, "IPAddress", "10.77.0.5", spec={"parentRef": PARENT})
)
creates(
    "ip address that is none",
    f"/{NETWORKING}/ipaddresses",
    obj(NETWORKING, "IPAddress", "ten", spec={"parentRef": {"resource": "services"}}),
)
creates("ip address of nothing", f"/{NETWORKING}/ipaddresses", obj(NETWORKING, "IPAddress", "10.77.0.6", spec={}))
creates(
    "service cidr",
    f"/{NETWORKING}/servicecidrs",
    obj(NETWORKING, "ServiceCIDR", "kind-cidr", spec={"cidrs": ["10.0.240.0/24"]}),
)
creates(
    "service cidr invalid",
    f"/{NETWORKING}/servicecidrs",
    obj(NETWORKING, "ServiceCIDR", "kind-cidr-invalid", spec={"cidrs": ["10.0.241.0"]}),
)
creates(
    "service cidr twice the family",
    f"/{NETWORKING}/servicecidrs",
    obj(NETWORKING, "ServiceCIDR", "kind-cidr-twice", spec={"cidrs": ["10.0.242.0/24", "10.0.243.0/24"]}),
)
creates(
    "service cidr of nothing", f"/{NETWORKING}/servicecidrs", obj(NETWORKING, "ServiceCIDR", "kind-cidr-0", spec={})
)
creates(
    "device class",
    f"/{DEVICES}/deviceclasses",
    obj(
        DEVICES,
        "DeviceClass",
        "kind-gpu",
        spec={"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
    ),
)
creates(
    "device class invalid",
    f"/{DEVICES}/deviceclasses",
    obj(DEVICES, "DeviceClass", "kind-no", spec={"selectors": [{}]}),
)
creates("resource claim", f"{DEVICES}/resourceclaims", obj(DEVICES, "ResourceClaim", "a", spec=CLAIM))
creates(
    "resource claim invalid",
    f"{DEVICES}/resourceclaims",
    obj(
        DEVICES,
        "ResourceClaim",
        "a",
        spec={
            "devices": {
                "requests": [
                    {"name": "none"},
                    {"name": "Bad", "exactly": {"deviceClassName": ""}},
                    {"name": "all", "exactly": {"deviceClassName": "c", "allocationMode": "All", "count": 2}},
                ]
            }
        },
    ),
)
creates(
    "resource claim template",
    f"{DEVICES}/resourceclaimtemplates",
    obj(DEVICES, "ResourceClaimTemplate", "a", spec={"metadata": {"labels": {"a": "b"}}, "spec": CLAIM}),
)
creates("resource slice", f"/{DEVICES}/resourceslices", slice_("kind-slice"))
creates(
    "resource slice invalid",
    f"/{DEVICES}/resourceslices",
    slice_("kind-slice-invalid", driver="", pool={"name": "", "generation": -1}, nodeName=None, devices=None),
)


@theme.case()
async def csi_driver_immutable(kit: Kit) -> None:
    drivers = f"/{STORAGE}/csidrivers"
    await kit.quiet.create(drivers, driver("fixed.csi.example.com"))
    await kit.patch(drivers, "fixed.csi.example.com", {"spec": {"attachRequired": False}})
    await kit.patch(drivers, "fixed.csi.example.com", {"spec": {"podInfoOnMount": True}})


@theme.case()
async def volume_attachment_status(kit: Kit) -> None:
    attachments = f"/{STORAGE}/volumeattachments"
    await kit.quiet.create(attachments, attachment("kind-attached"))
    await kit.patch(attachments, "kind-attached", {"spec": {"nodeName": "other"}})
    await kit.patch(attachments, "kind-attached", {"status": {"attached": True}})
    await kit.patch(attachments, "kind-attached", {"status": {"attached": True}}, "status")


@theme.case()
async def volume_attributes_class_immutable(kit: Kit) -> None:
    classes = f"/{STORAGE}/volumeattributesclasses"
    body = obj(STORAGE, "VolumeAttributesClass", "kind-iron", driverName="csi.example.com", parameters={"iops": "9"})
    await kit.quiet.create(classes, body)
    await kit.patch(classes, "kind-iron", {"driverName": "other.example.com", "parameters": {"iops": "10"}})


@theme.case()
async def csi_storage_capacity_immutable(kit: Kit) -> None:
    body = obj(STORAGE, "CSIStorageCapacity", "a", storageClassName="fast", capacity="1Gi")
    await kit.quiet.create(f"{STORAGE}/csistoragecapacities", body)
    await kit.patch(f"{STORAGE}/csistoragecapacities", "a", {"storageClassName": "slow", "capacity": "2Gi"})


@theme.case()
async def ip_address_immutable(kit: Kit) -> None:
    addresses = f"/{NETWORKING}/ipaddresses"
    await kit.quiet.create(addresses, obj(NETWORKING, "IPAddress", "10.77.0.7", spec={"parentRef": PARENT}))
    await kit.patch(addresses, "10.77.0.7", {"spec": {"parentRef": {"name": "z"}}})


@theme.case()
async def service_cidr_immutable(kit: Kit) -> None:
    ranges = f"/{NETWORKING}/servicecidrs"
    body = obj(NETWORKING, "ServiceCIDR", "kind-cidr-fixed", spec={"cidrs": ["10.0.244.0/24"]})
    await kit.quiet.create(ranges, body)
    await kit.patch(ranges, "kind-cidr-fixed", {"spec": {"cidrs": ["10.0.245.0/24"]}})


@theme.case()
async def resource_claim_immutable(kit: Kit) -> None:
    claims = f"{DEVICES}/resourceclaims"
    await kit.quiet.create(claims, obj(DEVICES, "ResourceClaim", "a", spec=CLAIM))
    refused = await kit.picking(lambda body: body["reason"]).patch(claims, "a", {"spec": {"devices": {"requests": []}}})
    kit.note("said", refused.body["message"].endswith("field is immutable"))


@theme.case()
async def resource_slice_of_a_node(kit: Kit) -> None:
    slices = f"/{DEVICES}/resourceslices"
    await kit.quiet.create(slices, slice_("kind-slice-here", nodeName="kind-here"))
    await kit.quiet.create(slices, slice_("kind-slice-there", nodeName="kind-there"))
    names = kit.picking(lambda body: [each["metadata"]["name"] for each in body["items"]])
    await names.list(slices, fieldSelector="spec.nodeName=kind-here")
