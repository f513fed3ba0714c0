"""Claims, volumes and classes of volumes that are deleted go when nothing uses them any more.

Each has a finalizer from its creation on; here it is removed, as three controllers of kube-controller-manager do it. A
claim is in use while a pod that was placed on a node has it as a volume, also after the pod has ended; a volume while
it is bound to a claim that exists; a class while a claim or a volume names it. Where the real controllers run on harbor
as well, whoever comes second finds the finalizer gone: it is removed only from the version that was looked at.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.builtin.base import path
from pilotage_harbor.builtin.csi import CLASS_PROTECTION
from pilotage_harbor.builtin.volumes import CLAIM_PROTECTION, VOLUME_PROTECTION
from pilotage_harbor.core.objects import from_entry
from pilotage_harbor.housekeeping.client import MERGE_PATCH, Asker, controller, path_of
from pilotage_harbor.housekeeping.controller import StoreController
from pilotage_harbor.storage.store import DELETED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.core import Core
    from pilotage_harbor.housekeeping.client import Handle
    from pilotage_harbor.kinds import Json
    from pilotage_harbor.storage.store import Event, StoredObject

PODS, CLAIMS, VOLUMES = "pods", "persistentvolumeclaims", "persistentvolumes"
CLASSES = "volumeattributesclasses.storage.k8s.io"
BACKOFF_SECONDS_MAX = 60.0

_DELETING = b'"deletionTimestamp"'
_EPHEMERAL = b'"ephemeral"'
_FINALIZERS = {CLAIMS: CLAIM_PROTECTION, VOLUMES: VOLUME_PROTECTION, CLASSES: CLASS_PROTECTION}
_CONTROLLERS = {
    CLAIMS: "pvc-protection-controller",
    VOLUMES: "pv-protection-controller",
    CLASSES: "volumeattributesclass-protection-controller",
}


class _Key(NamedTuple):
    storage: str
    namespace: str
    name: str


class Protection(StoreController[_Key]):
    """The controller of what is protected while it is used."""

    def __init__(self, core: Core, handle: Handle) -> None:
        super().__init__(backoff_seconds_max=BACKOFF_SECONDS_MAX)
        self._core = core
        self._askers = {
            storage: Asker(handle, controller(name), "kube-controller-manager")
            for storage, name in _CONTROLLERS.items()
        }
        self._going: dict[tuple[str, str], set[str]] = {}
        """Objects that are being deleted and still have their finalizer: names by storage and namespace."""

    def begin(self) -> None:
        """Take in what is stored, and listen from now on."""
        for storage in _FINALIZERS:
            for entry in self._core.store.entries(storage):
                self._see(storage, entry)
        self._stop_listening = self._core.store.listen_to_all(self._observe)

    def _observe(self, event: Event) -> None:
        storage, entry = event.storage, event.entry
        if storage in _FINALIZERS:
            if event.type == DELETED:
                self._forget(_Key(storage, entry.namespace, entry.name))
            else:
                self._see(storage, entry)
        if self._going:
            for key in self._freed_by(event):
                self._queue.add(key)

    def _see(self, storage: str, entry: StoredObject) -> None:
        if _DELETING in entry.raw:
            self._going.setdefault((storage, entry.namespace), set()).add(entry.name)
            self._queue.add(_Key(storage, entry.namespace, entry.name))

    def _forget(self, key: _Key) -> None:
        names = self._going.get(key[:2], set())
        names.discard(key.name)
        if not names:
            self._going.pop(key[:2], None)

    def _freed_by(self, event: Event) -> Iterable[_Key]:
        """Objects whose use this change may end."""
        storage, namespace = event.storage, event.entry.namespace
        if storage == PODS and (claims := self._going.get((CLAIMS, namespace))):
            pod = self._core.registry.storage(PODS)
            assert pod is not None
            for name in sorted(claims & set(_claims(from_entry(pod, event.entry)))):
                yield _Key(CLAIMS, namespace, name)
        if storage == CLAIMS and event.type == DELETED:
            for name in sorted(self._going.get((VOLUMES, ""), ())):
                yield _Key(VOLUMES, "", name)
        if storage in (CLAIMS, VOLUMES):
            raw = event.entry.raw + (event.old.raw if event.old is not None else b"")
            for name in sorted(self._going.get((CLASSES, ""), ())):
                if name.encode() in raw:
                    yield _Key(CLASSES, "", name)

    async def _sync(self, key: _Key) -> None:
        obj, finalizer = self._core.get(*key), _FINALIZERS[key.storage]
        if obj is None or "deletionTimestamp" not in obj["metadata"]:
            self._forget(key)
            return
        meta = obj["metadata"]
        finalizers = meta.get("finalizers") or []
        if finalizer not in finalizers:
            self._forget(key)
            return
        await asyncio.sleep(0)  # many that go at a time are not one step of the loop
        if not is_in_use(self._core, key.storage, obj):
            kind = self._core.registry.storage(key.storage)
            assert kind is not None
            kept = [each for each in finalizers if each != finalizer]
            change = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "finalizers": kept or None}
            try:
                where = path_of(kind, key.namespace, key.name)
                await self._askers[key.storage].ask("PATCH", where, {"metadata": change}, MERGE_PATCH)
            except StatusError as error:
                if error.code != 404:
                    raise


def is_in_use(core: Core, storage: str, obj: Json) -> bool:
    """Whether a claim, volume or class is needed by anything."""
    meta = obj["metadata"]
    if storage == CLAIMS:
        return any(_mounts(pod, obj) for pod in _naming(core, PODS, meta["name"], meta["namespace"]))
    if storage == VOLUMES:
        return path(obj, "status", "phase") == "Bound" and _claim_exists(core, path(obj, "spec", "claimRef"))
    users = (each for kind in (CLAIMS, VOLUMES) for each in _naming(core, kind, meta["name"]))
    return any(meta["name"] in _classes(each) for each in users)


def _naming(core: Core, storage: str, name: str, namespace: str = "") -> Iterable[Json]:
    """The objects in which a name stands, or may; the others, nearly all, are not even decoded."""
    kind, wanted = core.registry.storage(storage), name.encode()
    assert kind is not None
    for entry in core.store.entries(storage, namespace):
        if wanted in entry.raw or _EPHEMERAL in entry.raw:
            yield from_entry(kind, entry)


def _claims(pod: Json) -> Iterable[str]:
    """The names of the claims that are volumes of a pod."""
    for volume in path(pod, "spec", "volumes") or ():
        yield path(volume, "persistentVolumeClaim", "claimName") or f"{pod['metadata']['name']}-{volume['name']}"


def _mounts(pod: Json, claim: Json) -> bool:
    if not path(pod, "spec", "nodeName"):
        return False  # no kubelet begins a pod whose claim is being deleted
    name, owners = claim["metadata"]["name"], claim["metadata"].get("ownerReferences") or ()
    for volume in pod["spec"].get("volumes") or ():
        if path(volume, "persistentVolumeClaim", "claimName") == name:
            return True
        if "ephemeral" in volume and f"{pod['metadata']['name']}-{volume['name']}" == name:
            own = any(each.get("controller") and each["uid"] == pod["metadata"]["uid"] for each in owners)
            if own and not _is_shut_down(pod):
                return True
    return False


def _is_shut_down(pod: Json) -> bool:
    meta = pod["metadata"]
    return "deletionTimestamp" in meta and meta.get("deletionGracePeriodSeconds") == 0


def _claim_exists(core: Core, reference: Json | None) -> bool:
    if reference is None:
        return False
    claim = core.get(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
    return claim is not None and reference.get("uid") in (None, claim["metadata"]["uid"])


def _classes(user: Json) -> set[Any]:
    """The classes that a claim or a volume names: that it has, and that it is to have."""
    return {
        path(user, "spec", "volumeAttributesClassName"),
        path(user, "status", "currentVolumeAttributesClassName"),
        path(user, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    }
