"""How what was made for an endpoint goes: by a `Teardown`, whatever the reason, and the endpoint itself goes last.

A record belongs into the namespace of its endpoint. A namespace that is itself being deleted takes no new objects:
then the record is kept in the operator's.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import msgspec
import structlog

from pilotage.api.names import (
    ENDPOINT_FINALIZER,
    ENDPOINTS,
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    PROCESSES,
    TEARDOWN_DONE,
    TEARDOWNS,
)
from pilotage.controllers.caches import MADE_FROM_OURS, PODS
from pilotage.controllers.endpoint.status import leaving_status
from pilotage.controllers.proof import Known, uids_of
from pilotage.controllers.teardown_targets import BY_TARGET, about, target_of
from pilotage.kube import (
    AlreadyExists,
    Forbidden,
    KindNotServed,
    ObjectKey,
    Terminating,
    merge_patch,
    without_finalizer,
)
from pilotage.runtime import Result
from pilotage.runtime.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pilotage.controllers.caches import Caches, Seen
    from pilotage.controllers.seals import Identity
    from pilotage.kube import ApiError, Client, Json, Object
    from pilotage.runtime.events import Recorder
    from pilotage.runtime.store import Store

_log = structlog.get_logger(__name__)

UNRECORDED_SECONDS = 10.0
"""How often it is tried again to write down what cannot be."""
_NOTHING_LOST = {"keep": ["Volumes", "ModelCache", "Secrets"]}
"""Nobody knows any more what was to become of the data of an endpoint that has vanished."""


class _Reason(msgspec.Struct):
    reason: str = ""


class _Phase(msgspec.Struct):
    phase: str | None = None


class _Brief(msgspec.Struct):
    """As much of a record as is looked at often: the ledger and the receipt, which are long, are not decoded."""

    spec: _Reason
    status: _Phase = msgspec.field(default_factory=_Phase)


class TeardownRecords:
    """See the module."""

    def __init__(
        self,
        client: Client,
        events: Recorder,
        caches: Caches,
        records: Store,
        namespace: str,
        watched: str,
        ttl_seconds: int,
    ) -> None:
        """`namespace`: the operator's own. `watched`: where endpoints are looked for; empty: everywhere."""
        self._client = client
        self._events = events
        self._caches = caches
        self._records = records
        self._namespace = namespace
        self._watched = watched
        self._ttl_seconds = ttl_seconds

    # The endpoint itself

    async def depart(self, obj: Object) -> Result | None:
        """Take an endpoint down that somebody deletes; let go of it when everything is proven gone."""
        if ENDPOINT_FINALIZER not in obj.meta.finalizers:
            return None
        record = self.find(identity(obj), "Deleted")
        if record is None:
            body = obj.to_dict()
            parts = body.get("status", {}).get("ledger", [])
            deletion = body.get("spec", {}).get("deletion", {})
            try:
                record = await self.begin(_target(obj), "Deleted", parts, deletion=deletion, all_parts=True)
            except (Terminating, KindNotServed, Forbidden) as error:
                return await self._unrecorded(obj, error)
            self._events.normal(obj, "Deleting", f"It is taken down in order: teardown/{record.meta.name}.")
        status: Json = record.get("status", default={})
        if not status:
            return None  # its change wakes us
        if status.get("phase") == TEARDOWN_DONE:
            self._events.normal(obj, "Deleted", _summary(status))
            patch = without_finalizer(obj, ENDPOINT_FINALIZER)
            if patch is not None:
                await self._client.patch(ENDPOINTS, obj.key, patch)
            return None
        await self._mirror(obj, record.meta.name, status)
        return None

    async def _unrecorded(self, obj: Object, error: ApiError) -> Result:
        """Say that it cannot begin. Somebody has to do something about it, and nothing wakes us then."""
        text = f"Nothing is deleted before it is written down, and that cannot be: {error.message}"
        if isinstance(error, KindNotServed):
            text += "; install the kinds again: pilotage install --print | kubectl apply -f -"
        reason = str(error.error_class).capitalize()
        blocked = {"type": "Blocked", "status": "True", "reason": reason, "message": text}
        await self._mirror(obj, "", {"conditions": [blocked], "waitingFor": text})
        return Result(requeue_after=UNRECORDED_SECONDS)

    async def _mirror(self, obj: Object, record: str, teardown: Json) -> None:
        """The endpoint's own status says how far it is."""
        old: Json = obj.get("status", default={})
        running = sum(
            seen.resource in (PODS, PROCESSES) and not seen.object.meta.terminating
            for seen in self._caches.parts_of(identity(obj))
        )
        wanted = leaving_status(obj, old, record, teardown, running, utc_now())
        if any(old.get(name) != value for name, value in wanted.items()):
            patch = merge_patch({"metadata": {"uid": obj.meta.uid}, "status": wanted})
            await self._client.patch(ENDPOINTS, obj.key, patch, subresource="status")

    # What it was made of

    async def replace(self, obj: Object, reason: str, parts: Sequence[Seen], deletion: Json) -> bool:
        """Take some parts of an endpoint down; returns whether all are proven gone. Nothing is begun twice."""
        whose = identity(obj)
        waiting = [seen for seen in parts if not self._takes(whose, seen.object.meta.uid)]
        if waiting:
            await self.begin(_target(obj), reason, [_doomed(seen) for seen in waiting], deletion=deletion)
        return not parts and not self.under_way(whose)

    async def sweep(self, key: ObjectKey, live: str) -> None:
        """Take down what endpoints of this name have left that are not there any more. `live`: the one that is.

        Only what is sealed for such an endpoint: a uid in a label is no proof that there ever was one.
        """
        for uid in sorted({_owner(seen) for seen in self._caches.named_for(key)} - {live, ""}):
            await asyncio.sleep(0)  # somebody may have labelled thousands of objects, each with another uid
            whose = Known(key.namespace, uid)
            parts = [seen for seen in self._caches.parts_of(whose) if seen.resource not in MADE_FROM_OURS]
            if not parts or any(self.find(whose, reason, unfinished=True) for reason in ("Deleted", "Vanished")):
                continue
            if await self._exists(uid):
                continue
            _log.warning("an endpoint has vanished; what it left is taken down", endpoint=str(key), parts=len(parts))
            target = {
                "apiVersion": ENDPOINTS.api_version,
                "kind": ENDPOINTS.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
            }
            await self.begin(
                target, "Vanished", [_doomed(seen) for seen in parts], deletion=_NOTHING_LOST, all_parts=True
            )

    async def _exists(self, uid: str) -> bool:
        """Whether an endpoint is there after all, wherever and under whatever name: only a fresh read counts."""
        found = await self._client.list(ENDPOINTS, self._watched, metadata_only=True)
        return any(each.meta.uid == uid for each in found.items)

    # Records

    def find(self, whose: Identity, reason: str, *, unfinished: bool = False) -> Object | None:
        """The newest record of a teardown of an endpoint's parts."""
        found = [
            record
            for record in self._about(whose)
            if (brief := record.decode_as(_Brief)).spec.reason == reason
            and not (unfinished and brief.status.phase == TEARDOWN_DONE)
        ]
        return max(found, key=lambda record: record.meta.creation_timestamp, default=None)

    def under_way(self, whose: Identity) -> int:
        """How many teardowns of an endpoint's parts are not finished."""
        return sum(record.decode_as(_Brief).status.phase != TEARDOWN_DONE for record in self._about(whose))

    def proven_gone(self, whose: Identity) -> set[str]:
        """The uids of those parts of an endpoint that finished teardowns have proven gone."""
        return {
            each.get("uid", "")
            for record in self._about(whose)
            for each in record.get("status", "receipt", "objects", default=[])
            if each.get("state") == "gone"
        }

    def _takes(self, whose: Identity, part: str) -> bool:
        return any(
            part in {each.get("uid") for each in record.get("spec", "parts", default=[])}
            for record in self._about(whose)
            if record.get("status", "phase") != TEARDOWN_DONE
        )

    def _about(self, whose: Identity) -> Sequence[Object]:
        """The records of an endpoint's teardowns: those in its namespace, or in the operator's own."""
        return self._records.indexed(BY_TARGET, about(whose.namespace, whose.uid))

    async def begin(
        self, target: Json, reason: str, parts: Iterable[Json], *, deletion: Json, all_parts: bool = False
    ) -> Object:
        """Create a record; returns it, or the one that was there already."""
        doomed = [
            {name: each.get(name, "") for name in ("apiVersion", "kind", "resource", "name", "uid")} for each in parts
        ]
        name = record_name(target, reason, doomed)
        body: Json = {
            "metadata": {
                "name": name,
                "labels": {LABEL_ENDPOINT: target["name"], LABEL_ENDPOINT_UID: target["uid"]},
            },
            "spec": {
                "target": target,
                "reason": reason,
                "allParts": all_parts,
                "parts": doomed,
                "deletion": deletion,
                "ttlSecondsAfterFinished": self._ttl_seconds,
            },
        }
        try:
            return await self._create(body, target["namespace"])
        except (Terminating, Forbidden) as error:
            if not isinstance(error, Terminating) and "because it is being terminated" not in error.message:
                raise
            return await self._create(body, self._namespace)

    async def _create(self, body: Json, namespace: str) -> Object:
        try:
            return await self._client.create(TEARDOWNS, body, namespace=namespace)
        except AlreadyExists as error:
            found = await self._client.get(TEARDOWNS, ObjectKey(namespace, body["metadata"]["name"]))
            target, wanted = target_of(found, self._namespace), body["spec"]
            same = target is not None and target.uid == wanted["target"]["uid"]
            if not same or found.get("spec", "reason") != wanted["reason"]:
                raise Forbidden(
                    f"teardown/{found.meta.name} -n {namespace} exists and is about something else: delete it"
                ) from error
            return found


def record_name(target: Json, reason: str, parts: Sequence[Json]) -> str:
    """The same for the same teardown, so that none is begun twice."""
    what = "\n".join(sorted(f"{part['kind']}/{part['name']}/{part['uid']}" for part in parts))
    if reason == "Deleted":
        return f"{target['name']}-{target['uid'][:8]}"
    mark = hashlib.sha256(f"{target['uid']}\n{reason}\n{what}".encode()).hexdigest()
    return f"{target['name']}-{reason.lower()}-{mark[:8]}"


def identity(obj: Object) -> Known:
    """An endpoint that is there, with its ledger."""
    return Known(obj.meta.namespace, obj.meta.uid, uids_of(obj.get("status", "ledger", default=[])))


def _target(obj: Object) -> Json:
    return {
        "apiVersion": ENDPOINTS.api_version,
        "kind": ENDPOINTS.kind,
        "namespace": obj.meta.namespace,
        "name": obj.meta.name,
        "uid": obj.meta.uid,
    }


def _doomed(seen: Seen) -> Json:
    return {
        "apiVersion": seen.resource.api_version,
        "kind": seen.resource.kind,
        "resource": seen.resource.plural,
        "name": seen.object.meta.name,
        "uid": seen.object.meta.uid,
    }


def _owner(seen: Seen) -> str:
    return seen.object.meta.labels.get(LABEL_ENDPOINT_UID, "")


def _summary(status: Json) -> str:
    return f"{status.get('gone', 0)} objects are proven gone."
