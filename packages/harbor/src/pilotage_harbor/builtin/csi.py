"""Storage drivers and their volumes: CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment, VolumeAttributesClass.

They are objects only: harbor attaches nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    forbidden,
    immutable,
    invalid,
    nonnegative,
    not_supported,
    required,
    too_long,
)
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.apimachinery.names import dns_subdomain, qualified_name
from pilotage_harbor.builtin.base import Builtin, kind, path, protect
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.builtin.quantity import parse
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

CLASS_PROTECTION = "kubernetes.io/vac-protection"
_DRIVER_MAX = 63
_NODE_ID_MAX = 256
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_TOKEN_SECONDS = range(600, 2**32 + 1)
_UPDATE_SECONDS_MIN = 10


def driver_name_problems(name: str, field: str) -> list[StatusCause]:
    """The name of a driver, of storage or of devices."""
    if not name:
        return [required(field)]
    problems = [too_long(field, _DRIVER_MAX)] if len(name) > _DRIVER_MAX else []
    return problems + each_invalid(field, name, dns_subdomain(name.lower()))


class CSIDriverStrategy(Builtin):
    """A CSIDriver: whether volumes are attached, and how long they live, is immutable."""

    go_type = "storage.CSIDriver"
    status = False
    unconditional_update = False

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        spec.setdefault("attachRequired", True)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        spec.setdefault("volumeLifecycleModes", ["Persistent"])
        for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
            spec.setdefault(name, False)

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Count its generation, which begins at 0: that is not written."""
        if obj["spec"] != old["spec"]:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        spec = obj["spec"]
        problems: list[StatusCause] = []
        if spec["fsGroupPolicy"] not in _FS_GROUP_POLICIES:
            problems.append(not_supported("spec.fsGroupPolicy", spec["fsGroupPolicy"], _FS_GROUP_POLICIES))
        audiences: set[str] = set()
        for index, each in enumerate(spec.get("tokenRequests") or ()):
            field, audience, seconds = f"spec.tokenRequests[{index}]", each["audience"], each.get("expirationSeconds")
            if audience in audiences:
                problems.append(duplicate(f"{field}.audience", audience))
            elif seconds is not None and seconds not in _TOKEN_SECONDS:
                why = "less than 10 minutes" if seconds < _TOKEN_SECONDS.start else "larger than 2^32 seconds"
                problems.append(invalid(f"{field}.expirationSeconds", seconds, f"may not specify a duration {why}"))
            audiences.add(audience)
        problems += [
            not_supported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
            for mode in spec["volumeLifecycleModes"]
            if mode not in ("Persistent", "Ephemeral")
        ]
        seconds = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if seconds is not None and seconds < _UPDATE_SECONDS_MIN:
            why = f"must be greater than or equal to {_UPDATE_SECONDS_MIN} seconds"
            problems.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", seconds, why))
        if (secrets := spec.get("serviceAccountTokenInSecrets")) is not None and not spec.get("tokenRequests"):
            why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            problems.append(invalid("spec.serviceAccountTokenInSecrets", secrets, why))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a change to immutable fields."""
        new, was = obj["spec"], old["spec"]
        problems = self.check(obj)
        problems += immutable("spec.attachedRequired", new["attachRequired"], was["attachRequired"])  # spelled so
        return problems + immutable(
            "spec.volumeLifecycleModes", new["volumeLifecycleModes"], was["volumeLifecycleModes"]
        )


class CSINodeStrategy(Builtin):
    """A CSINode: drivers come and go; of one that stays, only what it can allocate may change."""

    go_type = "storage.CSINode"
    status = False
    unconditional_update = False
    qualified_finalizers = False

    def check(self, obj: Json) -> list[StatusCause]:
        """Its drivers."""
        problems: list[StatusCause] = []
        names: set[str] = set()
        for index, driver in enumerate(obj["spec"].get("drivers") or ()):
            here = f"spec.drivers[{index}]"
            problems += driver_name_problems(driver["name"], f"{here}.name")
            problems += _node_id(driver["nodeID"], f"{here}.nodeID")
            problems += nonnegative(f"{here}.allocatable.count", path(driver, "allocatable", "count"))
            if driver["name"] in names:
                problems.append(duplicate(f"{here}.name", driver["name"]))
            names.add(driver["name"])
            problems += _topology(driver.get("topologyKeys") or [], here)
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a change to a field that is immutable while the driver stays."""
        problems = self.check(obj)
        for was in old["spec"].get("drivers") or ():
            for driver in obj["spec"].get("drivers") or ():
                if driver["name"] == was["name"] and _fixed(driver) != _fixed(was):
                    problems.append(invalid("spec.drivers", _fixed(driver), "field is immutable"))
        return problems


class CSIStorageCapacityStrategy(Builtin):
    """A CSIStorageCapacity: of which class and where is immutable."""

    go_type = "storage.CSIStorageCapacity"
    status = False
    unconditional_update = False

    def check(self, obj: Json) -> list[StatusCause]:
        """All of it."""
        problems = selector_problems(obj.get("nodeTopology"), "nodeTopology")
        problems += each_invalid("storageClassName", obj["storageClassName"], dns_subdomain(obj["storageClassName"]))
        amount = parse(obj.get("capacity", "0"))
        if amount is not None and amount < 0:
            problems.append(invalid("capacity", obj["capacity"], "must be greater than or equal to 0"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a change to immutable fields."""
        problems = self.check(obj)
        for name in ("nodeTopology", "storageClassName"):
            problems += immutable(name, obj.get(name), old.get(name))
        return problems


class VolumeAttachmentStrategy(Builtin):
    """A VolumeAttachment: what is to be attached where is immutable."""

    go_type = "storage.VolumeAttachment"
    unconditional_update = False
    reset_fields: Mapping[str, tuple[str, ...]] = {"": ("status",), "status": ("metadata", "spec")}
    kept_by_status = ("labels", "annotations", "finalizers", "ownerReferences")

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        spec = obj["spec"]
        source, node = spec["source"], spec["nodeName"]
        problems = driver_name_problems(spec["attacher"], "spec.attacher")
        volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        if volume is None and inline is None:
            problems.append(required("spec.source", one))
        elif volume is not None and inline is not None:
            problems.append(forbidden("spec.source", one))
        elif volume == "":
            problems.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
        problems += each_invalid("spec.nodeName", node, dns_subdomain(node))
        if volume is not None:
            problems += each_invalid("spec.source.persistentVolumeName", volume, dns_subdomain(volume))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a change to immutable fields."""
        return self.check(obj) + immutable("spec", _as_go_shows(obj["spec"]), _as_go_shows(old["spec"]))


class VolumeAttributesClassStrategy(Builtin):
    """A VolumeAttributesClass: immutable."""

    go_type = "storage.VolumeAttributesClass"
    status = False

    def prepare_create(self, obj: Json, view: View) -> None:
        """The finalizer that keeps it while a claim or a volume names it."""
        protect(obj, CLASS_PROTECTION)

    def check(self, obj: Json) -> list[StatusCause]:
        """All of it."""
        driver = obj["driverName"]
        if not driver:
            problems = [required("driverName")]
        else:
            problems = each_invalid("driverName", driver.lower(), qualified_name(driver.lower()))
        if not obj.get("parameters"):
            problems.append(required("parameters", "must contain at least one key/value pair"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a change to immutable fields."""
        changed = [name for name in ("driverName", "parameters") if obj.get(name) != old.get(name)]
        return [forbidden(name, f"updates to {name} are forbidden.") for name in changed] + self.check(obj)


def _as_go_shows(spec: Json) -> Json:
    source = spec["source"]
    return {
        "Attacher": spec["attacher"],
        "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": source.get("inlineVolumeSpec"),
        },
        "NodeName": spec["nodeName"],
    }


def _fixed(driver: Json) -> Json:
    """Fields that may not change, in the order in which Go would show them."""
    return {
        "Name": driver["name"],
        "NodeID": driver["nodeID"],
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def _node_id(name: str, field: str) -> list[StatusCause]:
    if not name:
        return [required(field)]
    return [invalid(field, name, f"must be {_NODE_ID_MAX} characters or less")] if len(name) > _NODE_ID_MAX else []


def _topology(keys: list[str], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, key in enumerate(keys):
        if not key:
            problems.append(required(field))
        if key in keys[:index]:
            problems.append(duplicate(field, key))
        problems += each_invalid(field, key, qualified_name(key))
    return problems


def _audiences(obj: Json) -> str:
    requests = path(obj, "spec", "tokenRequests")
    return ",".join(each["audience"] for each in requests) if requests else "<unset>"


def kinds() -> list[Kind]:
    """The kinds of this family."""
    api = "storage.k8s.io/v1"
    driver_columns = (
        NAME,
        text("AttachRequired", at("spec", "attachRequired", default=True), type_="boolean"),
        text("PodInfoOnMount", at("spec", "podInfoOnMount", default=False), type_="boolean"),
        text("StorageCapacity", at("spec", "storageCapacity", default=False), type_="boolean"),
        text("TokenRequests", _audiences),
        text("RequiresRepublish", at("spec", "requiresRepublish", default=False), type_="boolean"),
        text("Modes", lambda obj: ",".join(path(obj, "spec", "volumeLifecycleModes") or ()) or "<none>"),
        AGE,
    )
    attachment_columns = (
        NAME,
        text("Attacher", at("spec", "attacher"))._replace(format="name"),
        text("PV", at("spec", "source", "persistentVolumeName")),
        text("Node", at("spec", "nodeName")),
        text("Attached", at("status", "attached", default=False), type_="boolean"),
        AGE,
    )
    drivers = text("Drivers", lambda obj: len(path(obj, "spec", "drivers") or ()), type_="integer")
    class_columns = (NAME, text("DriverName", at("driverName")), AGE)
    return [
        kind(api, "csidrivers", "CSIDriver", CSIDriverStrategy(), driver_columns, namespaced=False),
        kind(api, "csinodes", "CSINode", CSINodeStrategy(), (NAME, drivers, AGE), namespaced=False),
        kind(api, "csistoragecapacities", "CSIStorageCapacity", CSIStorageCapacityStrategy(), ()),
        kind(
            api,
            "volumeattachments",
            "VolumeAttachment",
            VolumeAttachmentStrategy(),
            attachment_columns,
            namespaced=False,
            subresources="status",
        ),
        kind(
            api,
            "volumeattributesclasses",
            "VolumeAttributesClass",
            VolumeAttributesClassStrategy(),
            class_columns,
            namespaced=False,
            short="vac",
        ),
    ]
