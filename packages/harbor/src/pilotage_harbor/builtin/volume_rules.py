"""Validation of the volumes of a pod, and of its containers' mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from pilotage_harbor.apimachinery.names import dns_label
from pilotage_harbor.builtin.quantity import parse

if TYPE_CHECKING:
    from collections.abc import Collection

    from pilotage_harbor.apimachinery.errors import StatusCause

Json = dict[str, Any]

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
# In the order in which kube-apiserver looks at them.
_SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_ORDER = {name: index for index, name in enumerate(_SOURCES)}


def volume_problems(volumes: list[Json], field: str) -> tuple[set[str], list[StatusCause]]:
    """The names of the good volumes, and what is wrong with the others."""
    names: set[str] = set()
    problems: list[StatusCause] = []
    for index, volume in enumerate(volumes):
        here, name = f"{field}[{index}]", volume["name"]
        found = _source_problems(volume, here)
        found += each_invalid(f"{here}.name", name, dns_label(name)) if name else [required(f"{here}.name")]
        if name in names:
            found.append(duplicate(f"{here}.name", name))
        if found:
            problems += found
        else:
            names.add(name)
    return names, problems


def _source_problems(volume: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    found = [name for name in volume if name in _ORDER and volume[name] is not None]
    if len(found) > 1:
        found.sort(key=_ORDER.__getitem__)
    if not found:
        return [required(field, "must specify a volume type")]
    first, *more = found
    problems += _one_source(first, volume[first], f"{field}.{first}")
    problems += [forbidden(f"{field}.{name}", "may not specify more than 1 volume type") for name in more]
    return problems


def _one_source(name: str, source: Json, field: str) -> list[StatusCause]:
    match name:
        case "emptyDir":
            size = parse(source["sizeLimit"]) if source.get("sizeLimit") else None
            if size is not None and size < 0:
                return [forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
        case "hostPath":
            return _host_path(source, field)
        case "secret":
            return _files(source, "secretName", field)
        case "configMap":
            return _files(source, "name", field)
        case "persistentVolumeClaim":
            return [] if source.get("claimName") else [required(f"{field}.claimName")]
        case "nfs":
            return _nfs(source, field)
        case "projected":
            return _mode(source, field) + _projected(source, field)
        case "csi":
            return [] if source.get("driver") else [required(f"{field}.driver")]
        case "ephemeral":
            return [] if source.get("volumeClaimTemplate") else [required(f"{field}.volumeClaimTemplate")]
    return []


def _host_path(source: Json, field: str) -> list[StatusCause]:
    if not source.get("path"):
        return [required(f"{field}.path")]
    problems = backsteps(source["path"], f"{field}.path")
    if source.get("type") not in (None, *_HOST_PATH_TYPES):
        problems.append(not_supported(f"{field}.type", source["type"], _HOST_PATH_TYPES))
    return problems


def _nfs(source: Json, field: str) -> list[StatusCause]:
    problems = [required(f"{field}.{name}") for name in ("server", "path") if not source.get(name)]
    if source.get("path") and not source["path"].startswith("/"):
        problems.append(invalid(f"{field}.path", source["path"], "must be an absolute path"))
    return problems


def _mode(source: Json, field: str, name: str = "defaultMode") -> list[StatusCause]:
    mode = source.get(name)
    return [invalid(f"{field}.{name}", mode, _MODE)] if mode is not None and not 0 <= mode <= 0o777 else []


def _files(source: Json, name: str, field: str) -> list[StatusCause]:
    problems = [] if source.get(name) else [required(f"{field}.{name}")]
    return problems + _mode(source, field) + _items(source, field)


def _items(source: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, item in enumerate(source.get("items", ())):
        here = f"{field}.items[{index}]"
        problems += [required(f"{here}.{name}") for name in ("key", "path") if not item.get(name)]
        problems += local_path(item.get("path", ""), f"{here}.path") + _mode(item, here, "mode")
    return problems


def _projected(source: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, each in enumerate(source.get("sources") or ()):
        here = f"{field}.sources[{index}]"
        for name in ("secret", "configMap"):
            if (inner := each.get(name)) is not None:
                problems += [] if inner.get("name") else [required(f"{here}.{name}.name")]
                problems += _items(inner, f"{here}.{name}")
        if (token := each.get("serviceAccountToken")) is not None:
            seconds = token.get("expirationSeconds", 3600)
            if seconds < 600:
                why = "may not specify a duration less than 10 minutes"
                problems.append(invalid(f"{here}.serviceAccountToken.expirationSeconds", seconds, why))
            if not token.get("path"):
                problems.append(required(f"{field}.path"))
        if len(each) > 1:
            problems.append(forbidden(here, "may not specify more than 1 volume type per source"))
    return problems


def backsteps(path: str, field: str) -> list[StatusCause]:
    """A path must not climb."""
    return [invalid(field, path, "must not contain '..'")] if ".." in path.split("/") else []


def descending(path: str, field: str) -> list[StatusCause]:
    """A path must be relative and must not climb."""
    problems = [invalid(field, path, "must be a relative path")] if path.startswith("/") else []
    return problems + backsteps(path, field)


def local_path(path: str, field: str) -> list[StatusCause]:
    """Check as `descending` does, and that it does not start with two dots."""
    problems = descending(path, field)
    if path.startswith("..") and not path.startswith("../"):
        problems.append(invalid(field, path, "must not start with '..'"))
    return problems


def mount_problems(container: Json, volumes: Collection[str], field: str) -> list[StatusCause]:
    """Problems of what a container mounts."""
    problems: list[StatusCause] = []
    points: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        here = f"{field}[{index}]"
        if not mount["name"]:
            problems.append(required(f"{here}.name"))
        if mount["name"] not in volumes:
            problems.append(not_found(f"{here}.name", mount["name"]))
        if not mount["mountPath"]:
            problems.append(required(f"{here}.mountPath"))
        if mount["mountPath"] in points:
            problems.append(invalid(f"{here}.mountPath", mount["mountPath"], "must be unique"))
        points.add(mount["mountPath"])
        if path := mount.get("subPath"):
            problems += descending(path, f"{field}.subPath")
        if expression := mount.get("subPathExpr"):
            if mount.get("subPath"):
                why = "subPathExpr and subPath are mutually exclusive"
                problems.append(invalid(f"{here}.subPathExpr", expression, why))
            problems += descending(expression, f"{field}.subPathExpr")
    return problems
