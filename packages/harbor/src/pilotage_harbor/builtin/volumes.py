"""PersistentVolumes, PersistentVolumeClaims and StorageClasses: as objects; nothing is ever provisioned here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    each_invalid,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.apimachinery.names import dns_subdomain, qualified_name
from pilotage_harbor.builtin.base import Builtin, kind, now, path, protect
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.builtin.limits import check_claim
from pilotage_harbor.builtin.quantity import parse
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_PV_FIELDS = (
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
)  # fmt: skip
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _mode_problems(modes: list[str], field: str, missing: str) -> list[StatusCause]:
    problems = [] if modes else [required(field, missing)]
    problems += [not_supported(field, mode, _MODES) for mode in modes if mode not in _MODES]
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        problems.append(forbidden(field, "may not use ReadWriteOncePod with other access modes"))
    return problems


def claim_spec_problems(spec: Json, field: str) -> list[StatusCause]:
    """Problems of the spec of a claim, or of a template of claims."""
    missing = "at least 1 access mode is required"
    problems = [] if spec.get("accessModes") else [required(f"{field}.accessModes", missing)]
    problems += selector_problems(spec.get("selector"), f"{field}.selector")
    if spec.get("accessModes"):
        problems += _mode_problems(spec["accessModes"], f"{field}.accessModes", missing)
    size, here = path(spec, "resources", "requests", "storage"), f"{field}.resources[storage]"
    amount = None if size is None else parse(size)
    if size is None:
        problems.append(required(here))
    elif amount is not None and amount <= 0:
        problems.append(invalid(here, size, "must be greater than zero"))
    if name := spec.get("storageClassName"):
        problems += each_invalid(f"{field}.storageClassName", name, dns_subdomain(name))
    if (mode := spec.get("volumeMode")) not in (None, "Block", "Filesystem"):
        problems.append(not_supported(f"{field}.volumeMode", mode, ("Block", "Filesystem")))
    return problems


class ClaimStrategy(Builtin):
    """A PersistentVolumeClaim: immutable, but for its size once it is bound."""

    go_type = "core.PersistentVolumeClaim"

    def fill(self, obj: Json) -> None:
        """Defaults."""
        obj["spec"].setdefault("volumeMode", "Filesystem")
        obj["status"].setdefault("phase", "Pending")

    def prepare_create(self, obj: Json, view: View) -> None:
        """The default class, and the finalizer that keeps it while it is in use."""
        super().prepare_create(obj, view)
        if "storageClassName" not in obj["spec"]:
            classes = [each for each in view.objects("storageclasses.storage.k8s.io") if _is_default(each)]
            if classes:
                newest = max(classes, key=lambda each: str(each["metadata"].get("creationTimestamp", "")))
                obj["spec"]["storageClassName"] = newest["metadata"]["name"]
        protect(obj, CLAIM_PROTECTION)

    def new_status(self, obj: Json) -> Json:
        """Status of a new claim: not bound."""
        return {"phase": "Pending"}

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        return claim_spec_problems(obj["spec"], "spec")

    def admit(self, obj: Json, old: Json | None, view: View) -> None:
        """Limits, unless it is on its way out."""
        if old is None or "deletionTimestamp" not in old["metadata"]:
            check_claim(obj, view)

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Hardly anything may change."""
        problems = self.check(obj)
        new, was = dict(obj["spec"]), dict(old["spec"])
        bound = path(obj, "status", "phase") == "Bound"
        if not was.get("volumeName"):
            new.pop("volumeName", None)
        if was.get("storageClassName") is None:
            new.pop("storageClassName", None)
        if bound:
            for each in (new, was):
                resources = each.get("resources", {})
                requests = {name: size for name, size in resources.get("requests", {}).items() if name != "storage"}
                each["resources"] = resources | {"requests": requests}
                each.pop("volumeAttributesClassName", None)
        if new != was:
            why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
            problems.append(forbidden("spec", f"{why} claims\n"))
        size, before = (parse(path(each, "spec", "resources", "requests", "storage") or "0") for each in (obj, old))
        capacity = parse(path(old, "status", "capacity", "storage") or "0")
        if size is not None and before is not None and capacity is not None and size < before and size <= capacity:
            problems.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
        return problems + immutable("volumeMode", obj["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


class VolumeStrategy(Builtin):
    """A PersistentVolume."""

    go_type = "core.PersistentVolume"

    def fill(self, obj: Json) -> None:
        """Defaults."""
        obj["status"].setdefault("phase", "Pending")
        spec = obj["spec"]
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        if (host := spec.get("hostPath")) is not None:
            host.setdefault("type", "")

    def prepare_create(self, obj: Json, view: View) -> None:
        """The finalizer that keeps it while it is bound."""
        super().prepare_create(obj, view)
        protect(obj, VOLUME_PROTECTION)

    def new_status(self, obj: Json) -> Json:
        """Status of a new volume: not yet available."""
        return {"phase": "Pending", "lastPhaseTransitionTime": now()}

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec."""
        spec = obj["spec"]
        problems = _mode_problems(spec.get("accessModes", []), "spec.accessModes", "")
        capacity = spec.get("capacity", {})
        if not capacity:
            problems.append(required("spec.capacity"))
        if set(capacity) != {"storage"}:
            problems.append(not_supported("spec.capacity", capacity or None, ("storage",)))
        for name, size in capacity.items():
            amount = parse(size)
            if amount is not None and amount <= 0:
                problems.append(invalid(f"spec.capacity[{name}]", size, "must be greater than zero"))
        policy = spec["persistentVolumeReclaimPolicy"]
        if policy not in ("Delete", "Recycle", "Retain"):
            supported = ("Delete", "Recycle", "Retain")
            problems.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, supported))
        sources = [name for name in spec if name not in _PV_FIELDS]
        if not sources:
            problems.append(required("spec", "must specify a volume type"))
        for name in sorted(sources)[1:]:
            problems.append(forbidden(f"spec.{name}", "may not specify more than 1 volume type"))
        if name := spec.get("storageClassName"):
            problems += each_invalid("spec.storageClassName", name, dns_subdomain(name))
        if spec["volumeMode"] not in ("Block", "Filesystem"):
            problems.append(not_supported("spec.volumeMode", spec["volumeMode"], ("Block", "Filesystem")))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Its source stays."""
        problems = self.check(obj)
        new, was = ({k: v for k, v in each["spec"].items() if k not in _PV_FIELDS} for each in (obj, old))
        if new != was:
            why = "spec.persistentvolumesource is immutable after creation\n"
            problems.append(forbidden("spec.persistentvolumesource", why))
        return problems + immutable("volumeMode", obj["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


class StorageClassStrategy(Builtin):
    """A StorageClass: all that matters of it is immutable."""

    go_type = "storage.StorageClass"
    status = False

    def fill(self, obj: Json) -> None:
        """Defaults."""
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def check(self, obj: Json) -> list[StatusCause]:
        """All of it."""
        provisioner = obj.get("provisioner", "")
        if provisioner:
            problems = each_invalid("provisioner", provisioner.lower(), qualified_name(provisioner.lower()))
        else:
            problems = [required("provisioner")]
        if obj["reclaimPolicy"] not in ("Delete", "Retain"):
            problems.append(not_supported("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain")))
        if obj["volumeBindingMode"] not in ("Immediate", "WaitForFirstConsumer"):
            supported = ("Immediate", "WaitForFirstConsumer")
            problems.append(not_supported("volumeBindingMode", obj["volumeBindingMode"], supported))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of a changed StorageClass: all but expansion, mount options and topologies is immutable."""
        problems: list[StatusCause] = []
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            problems += immutable(name, obj.get(name), old.get(name))
        return problems


def _is_default(obj: Json) -> bool:
    found = obj["metadata"].get("annotations") or {}
    return (
        found.get(_DEFAULT_CLASS) == "true" or found.get("storageclass.beta.kubernetes.io/is-default-class") == "true"
    )


def _access(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _SHORT.items() if mode in (modes or ()))


def _phase(obj: Json) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return path(obj, "status", "phase") or ""


def _claim(obj: Json) -> str:
    found = path(obj, "spec", "claimRef")
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else ""


def _bound(obj: Json, *names: str) -> str:
    return path(obj, *names) if path(obj, "spec", "volumeName") else ""


def kinds() -> list[Kind]:
    """The kinds of this family."""
    attributes = text("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default="<unset>"))
    storage_class = text("StorageClass", at("spec", "storageClassName"))
    mode = text("VolumeMode", at("spec", "volumeMode", default="<unset>"), wide=True)
    return [
        kind(
            "v1",
            "persistentvolumes",
            "PersistentVolume",
            VolumeStrategy(),
            (
                NAME,
                text("Capacity", at("spec", "capacity", "storage", default="0")),
                text("Access Modes", lambda obj: _access(path(obj, "spec", "accessModes"))),
                text("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy")),
                text("Status", _phase),
                text("Claim", _claim),
                storage_class,
                attributes,
                text("Reason", at("status", "reason")),
                AGE,
                mode,
            ),
            namespaced=False,
            short="pv",
            subresources="status",
        ),
        kind(
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            ClaimStrategy(),
            (
                NAME,
                text("Status", _phase),
                text("Volume", at("spec", "volumeName")),
                text("Capacity", lambda obj: _bound(obj, "status", "capacity", "storage") or ""),
                text("Access Modes", lambda obj: _access(path(obj, "status", "accessModes")) if _bound(obj) else ""),
                storage_class,
                attributes,
                AGE,
                mode,
            ),
            short="pvc",
            subresources="status",
        ),
        kind(
            "storage.k8s.io/v1",
            "storageclasses",
            "StorageClass",
            StorageClassStrategy(),
            (
                NAME._replace(cell=lambda obj, _: obj["metadata"]["name"] + (" (default)" if _is_default(obj) else "")),
                text("Provisioner", at("provisioner")),
                text("ReclaimPolicy", at("reclaimPolicy", default="Delete")),
                text("VolumeBindingMode", at("volumeBindingMode", default="Immediate")),
                text("AllowVolumeExpansion", at("allowVolumeExpansion", default=False)),
                AGE,
            ),
            namespaced=False,
            short="sc",
        ),
    ]
