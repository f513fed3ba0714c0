"""Namespace deletion: pods first, then everything else, then the namespace itself.

It is done in passes, as kube-controller-manager does it: each deletes all that is there, kind by kind, and writes into
the namespace's status what remains and why. The next pass comes as soon as something in the namespace has changed, or
else when the time is up that what remains was given. While pods remain, nothing else is deleted, and the conditions say
nothing about what remains: that is how it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube.wire import parse_time
from pilotage_harbor.apimachinery.errors import StatusError, internal
from pilotage_harbor.core.objects import metadata_of
from pilotage_harbor.housekeeping.client import Asker, controller, path_of
from pilotage_harbor.housekeeping.controller import StoreController
from pilotage_harbor.storage.store import DELETED

if TYPE_CHECKING:
    from pilotage_harbor.core import Core
    from pilotage_harbor.housekeeping.client import Handle
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import Event, StoredObject

NAMESPACES, PODS = "namespaces", "pods"
FINALIZER = "kubernetes"

GRACE_SECONDS = 5.0
"""Delay of the first pass after the delete."""
FINALIZERS_SECONDS = 15
"""Time that finalizers are expected to take."""
BACKOFF_SECONDS_MAX = 60.0
WORKERS = 4

_DELETING = b'"deletionTimestamp"'
_FINE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


class _Findings:
    """Findings of one pass."""

    def __init__(self) -> None:
        self.estimate = 0
        """Seconds until the rest could be gone; 0 if nothing remains, or nobody knows."""
        self.remaining: dict[str, int] = {}
        self.finalizers: dict[str, int] = {}
        self.problems: list[str] = []

    def conditions(self, *, pods_remain: bool) -> list[tuple[str, str, str, str]]:
        """Type, status, reason and message of all five conditions."""
        found: dict[str, tuple[str, str]] = {}
        if self.problems:
            words = f"Failed to delete all resource types, {len(self.problems)} remaining: "
            words += ", ".join(sorted(self.problems))
            found["NamespaceDeletionContentFailure"] = "ContentDeletionFailed", words
        if self.remaining and not pods_remain:
            each = sorted(f"{what} has {count} resource instances" for what, count in self.remaining.items())
            words = f"Some resources are remaining: {', '.join(each)}"
            found["NamespaceContentRemaining"] = "SomeResourcesRemain", words
        if self.finalizers and not pods_remain:
            each = sorted(f"{name} in {count} resource instances" for name, count in self.finalizers.items())
            words = f"Some content in the namespace has finalizers remaining: {', '.join(each)}"
            found["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", words
        return [
            (type_, "True", *found[type_]) if type_ in found else (type_, "False", reason, message)
            for type_, reason, message in _FINE
        ]


class Namespaces(StoreController[str]):
    """The controller of namespaces that are being deleted; its keys are their names."""

    def __init__(self, core: Core, handle: Handle, *, grace_seconds: float = GRACE_SECONDS) -> None:
        super().__init__(workers=WORKERS, backoff_seconds_max=BACKOFF_SECONDS_MAX)
        self._core = core
        self._grace_seconds = grace_seconds
        self._asker = Asker(handle, controller("namespace-controller"), "kube-controller-manager")
        self._going: dict[str, bool] = {}
        """The namespaces that are being deleted, and whether their grace period is over."""

    def begin(self) -> None:
        """Take in what is stored, and listen from now on."""
        for entry in self._core.store.entries(NAMESPACES):
            self._see(entry)
        self._stop_listening = self._core.store.listen_to_all(self._observe)

    # Being told

    def _observe(self, event: Event) -> None:
        if event.storage == NAMESPACES:
            if event.type == DELETED:
                self._going.pop(event.entry.name, None)
            else:
                self._see(event.entry)
        elif self._going and self._going.get(event.entry.namespace):
            self._queue.add(event.entry.namespace)

    def _see(self, entry: StoredObject) -> None:
        if entry.name not in self._going and _DELETING in entry.raw:
            self._going[entry.name] = False
            self._queue.add_after(entry.name, self._grace_seconds)

    # Deleting

    async def _sync(self, name: str) -> None:
        namespace = self._core.get(NAMESPACES, "", name)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            self._going.pop(name, None)
            return
        self._going[name] = True
        if not (namespace.get("spec") or {}).get("finalizers"):
            return  # what still holds it is not ours
        findings = _Findings()
        pods_remain = await self._delete_content(namespace, findings)
        await self._write_conditions(namespace, findings.conditions(pods_remain=pods_remain))
        if self._current(namespace) is None:
            return
        if findings.problems:
            raise internal("; ".join(findings.problems))
        if findings.estimate:
            self._queue.add_after(name, findings.estimate // 2 + 1)
        else:
            await self._finalize(namespace)

    def _current(self, namespace: Json) -> Json | None:
        """Current state; None if it is gone, though there may be another of its name. To be asked after waiting."""
        current = self._core.get(NAMESPACES, "", namespace["metadata"]["name"])
        return current if current is not None and current["metadata"]["uid"] == namespace["metadata"]["uid"] else None

    async def _delete_content(self, namespace: Json, findings: _Findings) -> bool:
        """Delete what there is; True if it got no further than the pods."""
        kinds = self._kinds()
        pods = next((kind for kind in kinds if kind.storage == PODS), None)
        if pods is not None:
            await self._delete_kind(namespace, pods, findings)
            if findings.remaining:
                return True
        for kind in kinds:
            if kind is not pods:
                await self._delete_kind(namespace, kind, findings)
        return False

    def _kinds(self) -> list[Kind]:
        """One kind of each storage whose objects live in namespaces and can be deleted, in a fixed order."""
        found: dict[str, Kind] = {}
        for kind in self._core.registry:
            if kind.namespaced and "delete" in kind.verbs and kind.storage not in found:
                served = self._core.registry.storage(kind.storage)
                found[kind.storage] = served if served is not None else kind
        return [found[storage] for storage in sorted(found)]

    async def _delete_kind(self, namespace: Json, kind: Kind, findings: _Findings) -> None:
        name = namespace["metadata"]["name"]
        if not self._entries(kind, name) or self._current(namespace) is None:
            return
        begun = parse_time(namespace["metadata"]["deletionTimestamp"]).timestamp()
        estimate = self._estimate(kind, name, begun)
        problem = ""
        try:
            await self._delete_collection(name, kind)
        except StatusError as error:
            problem = error.message
        else:
            problem = self._count(name, kind, estimate, findings)
        if problem:
            findings.problems.append(problem)
        if problem or findings.remaining.get(_gvr(kind)):
            findings.estimate = max(findings.estimate, estimate)

    def _count(self, name: str, kind: Kind, estimate: int, findings: _Findings) -> str:
        """Note what remains; returns what is wrong about it."""
        remaining = self._entries(kind, name)
        if not remaining:
            return ""
        findings.remaining[_gvr(kind)] = len(remaining)
        finalizers = [each for entry in remaining for each in _finalizers(entry)]
        for finalizer in finalizers:
            findings.finalizers[finalizer] = findings.finalizers.get(finalizer, 0) + 1
        if estimate:
            return ""
        if finalizers:
            findings.estimate = max(findings.estimate, FINALIZERS_SECONDS)
            return ""
        where = f"{kind.group}/{kind.version}, Resource={kind.plural}"
        return f"unexpected items still remain in namespace: {name} for gvr: {where}"

    async def _delete_collection(self, name: str, kind: Kind) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if "deletecollection" in kind.verbs:
            await self._asker.ask("DELETE", path_of(kind, name), options)
            return
        for entry in self._entries(kind, name):
            try:
                exactly = {**options, "preconditions": {"uid": entry.uid}}
                await self._asker.ask("DELETE", path_of(kind, name, entry.name), exactly)
            except StatusError as error:
                if error.code not in (404, 405, 409):
                    raise

    def _entries(self, kind: Kind, namespace: str) -> list[StoredObject]:
        return list(self._core.store.entries(kind.storage, namespace))

    def _estimate(self, kind: Kind, namespace: str, begun: float) -> int:
        """Seconds that its pods may take; 0 for other kinds, and once that time is over."""
        if kind.storage != PODS:
            return 0
        longest = 0
        for pod in self._core.objects(PODS, namespace):
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                longest = max(longest, (pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 0)
        return longest if self._core.now() - begun < longest else 0

    # Writing

    async def _write_conditions(self, namespace: Json, wanted: list[tuple[str, str, str, str]]) -> None:
        current = self._current(namespace)
        if current is None:
            return
        status = current.setdefault("status", {})
        conditions: list[Json] = status.get("conditions") or []
        status["conditions"] = conditions
        before = [dict(condition) for condition in conditions]
        for type_, value, reason, message in wanted:
            condition = next((each for each in conditions if each["type"] == type_), None)
            if condition is None:
                condition = {"type": type_, "status": "", "lastTransitionTime": ""}
                conditions.append(condition)
            if condition["status"] != value:
                condition["lastTransitionTime"] = self._core.now_text()
            condition.update(status=value, reason=reason, message=message)
        if conditions != before:
            try:
                await self._put("status", current)
            except StatusError as error:
                if error.code not in (404, 409):
                    raise

    async def _finalize(self, namespace: Json) -> None:
        while True:
            current = self._current(namespace)
            if current is None:
                return
            current["spec"]["finalizers"] = sorted({*current["spec"].get("finalizers", ())} - {FINALIZER})
            current.pop("status", None)
            try:
                await self._put("finalize", current)
            except StatusError as error:
                if error.code != 409:
                    if error.code == 404:
                        return
                    raise
            else:
                return

    async def _put(self, subresource: str, namespace: Json) -> None:
        kind = self._core.registry.storage(NAMESPACES)
        assert kind is not None
        await self._asker.ask("PUT", path_of(kind, "", namespace["metadata"]["name"], subresource), namespace)


def _gvr(kind: Kind) -> str:
    """The resource as the conditions name it: the core group leaves just its dot."""
    return f"{kind.plural}.{kind.group}"


def _finalizers(entry: StoredObject) -> list[str]:
    finalizers: list[str] = metadata_of(entry).get("finalizers") or []
    return finalizers
