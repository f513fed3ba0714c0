"""The Teardowns of an endpoint: one is created for everything that goes, and the endpoint itself goes last.

A Teardown is in the namespace of its endpoint. A namespace that is being deleted accepts no new objects: then the
Teardown is in the operator's own.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence

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
from pilotage.api.teardown import TeardownSummary
from pilotage.controllers.caches import MADE_FROM_OURS, Caches, Seen
from pilotage.controllers.endpoint.status import DELETING, leaving_status
from pilotage.controllers.endpoint.steps import ObservedPart
from pilotage.controllers.proof import Known, uids_of
from pilotage.controllers.seals import Identity
from pilotage.controllers.teardown_targets import BY_TARGET, about, target_of
from pilotage.kube import (
    PODS,
    AlreadyExists,
    ApiError,
    Client,
    Forbidden,
    Json,
    KindNotServed,
    Object,
    ObjectKey,
    Resource,
    Terminating,
    merge_patch,
    without_finalizer,
)
from pilotage.runtime.clock import utc_now
from pilotage.runtime.conditions import find_condition
from pilotage.runtime.events import Recorder
from pilotage.runtime.store import Store
from pilotage.runtime.types import Result

_log = structlog.get_logger(__name__)

UNRECORDED_SECONDS = 10.0
"""Pause before the creation of a Teardown is retried."""
_KEEP_DATA = {"keep": ["Volumes", "ModelCache", "Secrets"]}
"""Policy for an endpoint that has vanished: its own policy is unknown, so no data is deleted."""


class TeardownRecords:
    """Creates the Teardowns of endpoints and reads their progress."""

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
        """`namespace`: the operator's own. `watched`: namespace of the endpoints; empty: all."""
        self._client = client
        self._events = events
        self._caches = caches
        self._records = records
        self._namespace = namespace
        self._watched = watched
        self._ttl_seconds = ttl_seconds

    # The endpoint itself

    async def finalize(self, obj: Object) -> Result | None:
        """Tear down an endpoint that is being deleted; remove its finalizer once everything is proven gone."""
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
        status: Json = record.get("status", default={})
        announced = obj.get("status", "phase") == DELETING
        if status.get("phase") == TEARDOWN_DONE:
            if announced:
                self._events.normal(obj, "Deleted", _summary(status))
            patch = without_finalizer(obj, ENDPOINT_FINALIZER)
            if patch is not None:
                await self._client.patch(ENDPOINTS, obj.key, patch)
        elif status.keys() & {"waits", "conditions"}:  # it has shown progress: what goes at once is not worth a write
            if not announced:
                self._events.normal(obj, "Deleting", f"Tearing down in order: teardown/{record.meta.name}.")
            await self._mirror(obj, record.meta.name, status)
        return None

    async def _unrecorded(self, obj: Object, error: ApiError) -> Result:
        """Report that the teardown cannot begin. A person has to act, and that may not wake us."""
        text = f"Nothing is deleted before its Teardown exists, and that cannot be created: {error.message}"
        if isinstance(error, KindNotServed):
            text += "; install the kinds again: pilotage install --print | kubectl apply --server-side -f -"
        reason = str(error.error_class).capitalize()
        blocked = {"type": "Blocked", "status": "True", "reason": reason, "message": text}
        await self._mirror(obj, "", {"conditions": [blocked], "waitingFor": text})
        return Result(requeue_after=UNRECORDED_SECONDS)

    async def _mirror(self, obj: Object, record: str, teardown: Json) -> None:
        """Copy the progress of the Teardown into the endpoint's status."""
        old: Json = obj.get("status", default={})
        running = sum(
            seen.resource in (PODS, PROCESSES) and not seen.object.meta.terminating
            for seen in self._caches.parts_of(identity(obj))
        )
        wanted = leaving_status(obj, old, record, teardown, running, utc_now())
        if any(old.get(name) != value for name, value in wanted.items()):
            patch = merge_patch({"metadata": {"uid": obj.meta.uid}, "status": wanted})
            await self._client.patch(ENDPOINTS, obj.key, patch, subresource="status")

    # Its parts

    async def tear_down(self, obj: Object, reason: str, parts: Sequence[ObservedPart], deletion: Json) -> None:
        """Begin a Teardown of some parts of an endpoint that stays."""
        listed = [_listed(part.resource, part.name, part.uid) for part in parts]
        await self.begin(_target(obj), reason, listed, deletion=deletion)

    async def sweep(self, key: ObjectKey, live: str) -> None:
        """Begin a Teardown of what former endpoints of this name have left. `live`: uid of the one that exists.

        Only of what is sealed for such an endpoint: a uid in a label is no proof that there ever was one.
        """
        for uid in sorted({_owner(seen) for seen in self._caches.named_for(key)} - {live, ""}):
            await asyncio.sleep(0)  # somebody may have labelled thousands of objects, each with another uid
            whose = Known(key.namespace, uid)
            gone = self.proven_gone(whose)  # a cache may lag behind the receipt
            parts = [
                seen
                for seen in self._caches.parts_of(whose)
                if seen.resource not in MADE_FROM_OURS and seen.object.meta.uid not in gone
            ]
            if not parts or any(self.find(whose, reason, unfinished=True) for reason in ("Deleted", "Vanished")):
                continue
            if await self._exists(uid):
                continue
            _log.warning("an endpoint has vanished; its parts are torn down", endpoint=str(key), parts=len(parts))
            target = {
                "apiVersion": ENDPOINTS.api_version,
                "kind": ENDPOINTS.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
            }
            listed = [_listed(seen.resource, seen.object.meta.name, seen.object.meta.uid) for seen in parts]
            await self.begin(target, "Vanished", listed, deletion=_KEEP_DATA, all_parts=True)

    async def _exists(self, uid: str) -> bool:
        """Whether an endpoint exists after all, under whatever name: only a fresh read counts."""
        found = await self._client.list(ENDPOINTS, self._watched, metadata_only=True)
        return any(each.meta.uid == uid for each in found.items)

    # Records

    def find(self, whose: Identity, reason: str, *, unfinished: bool = False) -> Object | None:
        """The newest Teardown of an endpoint with a reason."""
        found = [
            record
            for record in self._about(whose)
            if (brief := record.decode_as(TeardownSummary)).spec.reason == reason
            and not (unfinished and brief.status.phase == TEARDOWN_DONE)
        ]
        return max(found, key=lambda record: record.meta.creation_timestamp, default=None)

    def under_way(self, whose: Identity) -> int:
        """Number of unfinished Teardowns of an endpoint."""
        return sum(record.decode_as(TeardownSummary).status.phase != TEARDOWN_DONE for record in self._about(whose))

    def waits(self, whose: Identity) -> tuple[str, str]:
        """The wait of the unfinished Teardowns of an endpoint, and why one of them is blocked; empty: none is."""
        waiting, blocked = "", ""
        for record in self._about(whose):
            status: Json = record.get("status", default={})
            if status.get("phase") == TEARDOWN_DONE:
                continue
            waiting = waiting or status.get("waitingFor") or ""
            found = find_condition(status.get("conditions", []), "Blocked") or {}
            blocked = blocked or (found.get("message", "") if found.get("status") == "True" else "")
        return waiting, blocked

    def proven_gone(self, whose: Identity) -> set[str]:
        """The uids of the parts of an endpoint that finished Teardowns have proven gone."""
        return {
            each.get("uid", "")
            for record in self._about(whose)
            for each in record.get("status", "receipt", "objects", default=[])
            if each.get("state") == "gone"
        }

    def leaving(self, whose: Identity) -> frozenset[str]:
        """The uids of the parts that unfinished Teardowns of an endpoint name."""
        return frozenset(
            each.get("uid", "")
            for record in self._about(whose)
            if record.decode_as(TeardownSummary).status.phase != TEARDOWN_DONE
            for each in record.get("spec", "parts", default=[])
        )

    def _about(self, whose: Identity) -> Sequence[Object]:
        """The Teardowns of an endpoint: those in its namespace, or in the operator's own."""
        return self._records.indexed(BY_TARGET, about(whose.namespace, whose.uid))

    async def begin(
        self, target: Json, reason: str, parts: Iterable[Json], *, deletion: Json, all_parts: bool = False
    ) -> Object:
        """Create a Teardown; returns it, or the same one if it exists."""
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
    """Name of a Teardown: the same one for the same parts, so that none is begun twice."""
    what = "\n".join(sorted(f"{part['kind']}/{part['name']}/{part['uid']}" for part in parts))
    if reason == "Deleted":
        return f"{target['name']}-{target['uid'][:8]}"
    mark = hashlib.sha256(f"{target['uid']}\n{reason}\n{what}".encode()).hexdigest()
    return f"{target['name']}-{reason.lower()}-{mark[:8]}"


def identity(obj: Object) -> Known:
    """The identity of an endpoint that exists, with its ledger."""
    return Known(obj.meta.namespace, obj.meta.uid, uids_of(obj.get("status", "ledger", default=[])))


def _target(obj: Object) -> Json:
    return {
        "apiVersion": ENDPOINTS.api_version,
        "kind": ENDPOINTS.kind,
        "namespace": obj.meta.namespace,
        "name": obj.meta.name,
        "uid": obj.meta.uid,
    }


def _listed(resource: Resource, name: str, uid: str) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "resource": resource.plural,
        "name": name,
        "uid": uid,
    }


def _owner(seen: Seen) -> str:
    return seen.object.meta.labels.get(LABEL_ENDPOINT_UID, "")


def _summary(status: Json) -> str:
    gone = status.get("gone", 0)
    return f"{gone} {'object is' if gone == 1 else 'objects are'} proven gone."
