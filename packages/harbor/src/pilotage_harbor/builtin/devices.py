"""Devices that pods claim (resource.k8s.io): DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice.

They are objects only: harbor allocates no device, and does not compile the CEL expressions that select one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from pilotage_harbor.apimachinery.names import dns_label, dns_subdomain
from pilotage_harbor.builtin.base import Builtin, kind, now, path
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.builtin.csi import driver_name_problems
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind

_REQUESTS_MAX = 32
_DEVICES_MAX = 128
_POOL_NAME_MAX = 253
_ALL, _EXACT = "All", "ExactCount"


def _fill_claim(spec: Json) -> None:
    for request in path(spec, "devices", "requests") or ():
        exactly = request.get("exactly")
        for each in [*([exactly] if exactly is not None else []), *(request.get("firstAvailable") or ())]:
            if each.setdefault("allocationMode", _EXACT) == _EXACT:
                each.setdefault("count", 1)


def _claim_problems(spec: Json, field: str) -> list[StatusCause]:
    """Problems of the requests of a claim."""
    requests = path(spec, "devices", "requests") or []
    here = f"{field}.devices.requests"
    if len(requests) > _REQUESTS_MAX:
        return [too_many(here, len(requests), _REQUESTS_MAX)]
    problems: list[StatusCause] = []
    names: set[str] = set()
    for index, request in enumerate(requests):
        each, name = f"{here}[{index}]", request.get("name", "")
        problems += each_invalid(f"{each}.name", name, dns_label(name)) if name else [required(f"{each}.name")]
        exactly, first = request.get("exactly"), request.get("firstAvailable")
        one = "exactly one of `exactly` or `firstAvailable` is required"
        if exactly is None and not first:
            problems.append(required(each, one))
        elif exactly is not None and first:
            problems.append(invalid(each, None, f"{one}, but multiple fields are set"))
        elif exactly is not None:
            problems += _request_problems(exactly, f"{each}.exactly")
        else:
            for number, sub in enumerate(first or ()):
                sub_field, sub_name = f"{each}.firstAvailable[{number}]", sub.get("name", "")
                problems += each_invalid(f"{sub_field}.name", sub_name, dns_label(sub_name))
                problems += _request_problems(sub, sub_field)
        if name in names:
            problems.append(duplicate(each, name))
        names.add(name)
    return problems


def _request_problems(request: Json, field: str) -> list[StatusCause]:
    name, mode, count = request.get("deviceClassName", ""), request.get("allocationMode"), request.get("count", 0)
    here = f"{field}.deviceClassName"
    problems = each_invalid(here, name, dns_subdomain(name)) if name else [required(here)]
    problems += _selector_problems(request.get("selectors"), f"{field}.selectors")
    if mode not in (_ALL, _EXACT):
        problems.append(not_supported(f"{field}.allocationMode", mode, (_ALL, _EXACT)))
    elif mode == _ALL and count:
        problems.append(invalid(f"{field}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == _EXACT and count <= 0:
        problems.append(invalid(f"{field}.count", count, "must be greater than zero"))
    return problems


def _selector_problems(selectors: list[Json] | None, field: str) -> list[StatusCause]:
    missing = [index for index, each in enumerate(selectors or ()) if each.get("cel") is None]
    return [required(f"{field}[{index}].cel") for index in missing]


class DeviceClassStrategy(Builtin):
    """A DeviceClass."""

    go_type = "resource.DeviceClass"
    status = False
    counts = ("spec",)

    def check(self, obj: Json) -> list[StatusCause]:
        """The selectors and the drivers of its configuration."""
        spec = obj["spec"]
        problems = _selector_problems(spec.get("selectors"), "spec.selectors")
        for index, each in enumerate(spec.get("config") or ()):
            here, opaque = f"spec.config[{index}].opaque", each.get("opaque")
            if opaque is None:
                problems.append(required(here))
            else:
                problems += driver_name_problems(opaque.get("driver", ""), f"{here}.driver")
        return problems


class ResourceClaimStrategy(Builtin):
    """A ResourceClaim: immutable."""

    go_type = "resource.ResourceClaim"
    reset_fields: Mapping[str, tuple[str, ...]] = {"": ("status",), "status": ("metadata", "spec")}
    kept_by_status = ("labels", "annotations", "finalizers", "ownerReferences")

    def fill(self, obj: Json) -> None:
        """Defaults."""
        _fill_claim(obj["spec"])

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        return _claim_problems(obj["spec"], "spec")

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a changed object: its spec is immutable."""
        return immutable("spec", obj["spec"], old["spec"])


class ResourceClaimTemplateStrategy(Builtin):
    """A ResourceClaimTemplate: immutable."""

    go_type = "resource.ResourceClaimTemplate"
    status = False

    def fill(self, obj: Json) -> None:
        """Defaults."""
        _fill_claim(obj["spec"]["spec"])

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec of its claims."""
        return _claim_problems(obj["spec"]["spec"], "spec.spec")

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a changed object: its spec is immutable."""
        return self.check(obj) + immutable("spec", obj["spec"], old["spec"])


class ResourceSliceStrategy(Builtin):
    """A ResourceSlice: its driver, pool and node are immutable."""

    go_type = "resource.ResourceSlice"
    status = False
    counts = ("spec",)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        for device in obj["spec"].get("devices") or ():
            for taint in device.get("taints") or ():
                taint.setdefault("timeAdded", now())

    def check(self, obj: Json) -> list[StatusCause]:
        """Problems of the driver, the pool, the node selection and the devices."""
        spec = obj["spec"]
        problems = driver_name_problems(spec["driver"], "spec.driver")
        problems += _pool_problems(spec["pool"])
        where = {
            "nodeName": bool(spec.get("nodeName")),
            "nodeSelector": spec.get("nodeSelector") is not None,
            "allNodes": bool(spec.get("allNodes")),
            "perDeviceNodeSelection": bool(spec.get("perDeviceNodeSelection")),
        }
        said = [name for name, given in where.items() if given]
        one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
        if not said and not spec.get("sharedCounters"):
            problems.append(required("spec", one))
        elif len(said) > 1:
            shown = "{" + ", ".join(f"`{name}`" for name in said) + "}"
            problems.append(invalid("spec", shown, f"{one}, but multiple fields are set"))
        devices = spec.get("devices") or []
        if len(devices) > _DEVICES_MAX:
            problems.append(too_many("spec.devices", len(devices), _DEVICES_MAX))
        for index, device in enumerate(devices):
            problems += each_invalid(f"spec.devices[{index}].name", device["name"], dns_label(device["name"]))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a change to immutable fields."""
        new, was = obj["spec"], old["spec"]
        problems = self.check(obj)
        problems += immutable("spec.pool.name", new["pool"]["name"], was["pool"]["name"])
        for name in ("driver", "nodeName"):
            problems += immutable(f"spec.{name}", new.get(name), was.get(name))
        return problems

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for selectors, as in `Strategy.fields`."""
        return {"spec.nodeName": obj["spec"].get("nodeName") or "", "spec.driver": obj["spec"]["driver"]}


def _pool_problems(pool: Json) -> list[StatusCause]:
    field, name = "spec.pool.name", pool["name"]
    problems = [] if name else [required(field)]
    if len(name) > _POOL_NAME_MAX:
        problems.append(too_long(field, _POOL_NAME_MAX))
    for part in name.split("/") if name else ():
        problems += each_invalid(field, part, dns_subdomain(part))
    count, generation = pool["resourceSliceCount"], pool["generation"]
    if count <= 0:
        problems.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        problems.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return problems


def _state(obj: Json) -> str:
    going, status = obj["metadata"].get("deletionTimestamp"), obj.get("status") or {}
    states = ["deleted"] if going else []
    if status.get("allocation") is None:
        states += [] if going else ["pending"]
    else:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    return ",".join(states)


def kinds() -> list[Kind]:
    """The kinds of this family."""
    api = "resource.k8s.io/v1"
    slice_columns = (
        NAME,
        text("Node", at("spec", "nodeName")),
        text("Driver", at("spec", "driver")),
        text("Pool", at("spec", "pool", "name")),
        AGE,
    )
    return [
        kind(api, "deviceclasses", "DeviceClass", DeviceClassStrategy(), (NAME, AGE), namespaced=False),
        kind(
            api,
            "resourceclaims",
            "ResourceClaim",
            ResourceClaimStrategy(),
            (NAME, text("State", _state), AGE),
            subresources="status",
        ),
        kind(api, "resourceclaimtemplates", "ResourceClaimTemplate", ResourceClaimTemplateStrategy(), (NAME, AGE)),
        kind(
            api,
            "resourceslices",
            "ResourceSlice",
            ResourceSliceStrategy(),
            slice_columns,
            namespaced=False,
            selectable="spec.nodeName spec.driver",
        ),
    ]
