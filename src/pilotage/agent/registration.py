"""The address of a server in the cluster: one EndpointSlice, called like its HostProcess, owned by its Service.

The slice is ready while the server is healthy, and not ready as soon as it should get no more requests. Only slices of
ours are changed or deleted, by uid: the one whose uid was recorded, whatever became of its labels, and those of this
name whose labels say that they belong to this process. A name that another object has is refused and reported. An
object that is already gone is gone; any other answer is an error.
"""

import enum
import sqlite3
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import structlog

from pilotage.agent.journal import AgentJournal, JournalEntry
from pilotage.api.names import (
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    LABEL_HOST,
    LABEL_KEEP_ALIVE,
    LABEL_MANAGED_BY,
    LABEL_PROCESS_UID,
    LABEL_REVISION,
    MANAGED_BY,
)
from pilotage.kube import (
    Absent,
    AlreadyExists,
    Client,
    Foreign,
    Json,
    Object,
    ObjectKey,
    Propagation,
    Terminating,
    merge_patch,
)
from pilotage.runtime.store import Store
from pilotage.serving.resources import SERVICES, SLICES

_log = structlog.get_logger(__name__)

LABEL_SERVICE = "kubernetes.io/service-name"
LABEL_SLICE_MANAGER = "endpointslice.kubernetes.io/managed-by"
SLICE_MANAGER = "pilotage.dev"
PORT_NAME = "http"
_COPIED = (LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_REVISION)


class SliceState(enum.Enum):
    """States of the endpoint in a slice."""

    READY = "ready"
    UNHEALTHY = "unhealthy"
    """It gets no requests."""
    LEAVING = "leaving"
    """It finishes its requests, and gets no new ones."""


class RegistrationRefused(Exception):
    """A server cannot be registered until something is changed; the message says what."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def conditions(shown: SliceState) -> Json:
    """The conditions of the endpoint in a slice."""
    return {
        "ready": shown is SliceState.READY,
        "serving": shown is not SliceState.UNHEALTHY,
        "terminating": shown is SliceState.LEAVING,
    }


def contents(host: str, address: str, port: int, shown: SliceState) -> Json:
    """The fields of a slice that may change."""
    return {
        "endpoints": [{"addresses": [address], "conditions": conditions(shown), "hostname": _hostname(host)}],
        "ports": [{"name": PORT_NAME, "port": port, "protocol": "TCP"}],
    }


def manifest(process: Object, entry: JournalEntry, service: Object, host: str, address: str, shown: SliceState) -> Json:
    """The slice of a process."""
    labels = {
        LABEL_SERVICE: entry.service,
        LABEL_SLICE_MANAGER: SLICE_MANAGER,
        LABEL_MANAGED_BY: MANAGED_BY,
        LABEL_HOST: host,
        LABEL_PROCESS_UID: entry.uid,
        **{name: process.meta.labels[name] for name in _COPIED if name in process.meta.labels},
        # As Kubernetes copies the labels of Services.
        **{name: value for name, value in service.meta.labels.items() if name == LABEL_KEEP_ALIVE},
    }
    owner = {"apiVersion": "v1", "kind": "Service", "name": entry.service, "uid": service.meta.uid}
    return {
        "metadata": {
            "name": entry.name,
            "namespace": entry.namespace,
            "labels": labels,
            "ownerReferences": [owner | {"controller": False, "blockOwnerDeletion": False}],
        },
        "addressType": f"IPv{ip_address(address).version}",
        **contents(host, address, entry.port, shown),
    }


def differs(found: Object, wanted: Json) -> bool:
    """Whether a slice differs from what it should be; fields that others added do not count."""
    body = found.to_dict()
    return not _covers(body.get("endpoints"), wanted["endpoints"]) or not _covers(body.get("ports"), wanted["ports"])


class Registrar:
    """Writes slices. `slices` is a cache of those that have this host's label.

    `sure` raises LeaseLost unless this host's Lease is ours. Without it the operator may have withdrawn the slice, and
    nobody would withdraw it a second time: so no endpoint is made ready.
    """

    def __init__(
        self,
        client: Client,
        slices: Store,
        journal: AgentJournal,
        host: str,
        address: str,
        require_lease: Callable[[], None],
    ) -> None:
        self._client = client
        self._slices = slices
        self._journal = journal
        self._host = host
        self._require_lease = require_lease
        self.address = address

    async def show(self, process: Object, entry: JournalEntry, shown: SliceState) -> JournalEntry:
        """Create or update the slice. Raises RegistrationRefused, LeaseLost or an ApiError."""
        found = self._slices.get(entry.key)
        if found is None or found.meta.labels.get(LABEL_PROCESS_UID) != entry.uid:  # or it has lost its labels
            return await self._register(process, entry, found, shown)
        if found.meta.uid != entry.slice_uid:
            entry = self._journal.note(entry.but(slice_uid=found.meta.uid, registered=True), "the slice")
        await self._say(found, entry, shown)
        return entry

    async def withdraw(self, entry: JournalEntry) -> None:
        """Make the endpoint terminating: it gets no new requests. Nothing to do where there is no slice."""
        found = await self._find(entry) if entry.registered else None
        if found is None:
            _log.debug("there is no slice to withdraw", slice=str(entry.key))
            return
        await self._say(found, entry, SliceState.LEAVING)

    async def unregister(self, entry: JournalEntry) -> None:
        """Delete the slice of this process, and prove that it is gone. Idempotent."""
        found = await self._find(entry) if entry.registered else None
        if found is None:
            return
        await self._delete(found)
        if await self._find(entry) is not None:
            raise RegistrationRefused("NotUnregistered", f"EndpointSlice {found.key} is still there")

    async def sweep(self, found: Object) -> None:
        """Delete a slice of this host whose process is gone, if an agent made it."""
        if not _is_made_by_agents(found):
            _log.debug("a slice with this host's label was not made by an agent", slice=str(found.key))
            return
        _log.info("deleted a slice of an earlier process", slice=str(found.key))
        await self._delete(found)

    async def _register(
        self, process: Object, entry: JournalEntry, found: Object | None, shown: SliceState
    ) -> JournalEntry:
        if shown is SliceState.READY:
            self._require_lease()
        service = await self._service(entry)
        # Recorded before it is made: an agent that finds the record looks for the slice.
        try:
            entry = self._journal.put(entry.but(registered=True), "that a slice is made")
        except sqlite3.Error as error:
            raise RegistrationRefused("JournalNotWritten", self._journal.unwritable(error)) from error
        if found is not None and found.meta.uid != entry.slice_uid:
            await self._make_room(found, entry)
        body = manifest(process, entry, service, self._host, self.address, shown)
        try:
            made = await self._client.create(SLICES, body)
        except AlreadyExists:
            made = await self._client.get(SLICES, entry.key)
            if _belongs(made, entry):
                await self._relabel(made, body)
            else:
                await self._make_room(made, entry)
                made = await self._client.create(SLICES, body)
        except Terminating as error:
            raise RegistrationRefused(
                "NameTaken", f"EndpointSlice {entry.name} of another owner is still being deleted"
            ) from error
        return self._journal.note(entry.but(slice_uid=made.meta.uid), "the slice")

    async def _relabel(self, found: Object, body: Json) -> None:
        """Write a slice of ours again, with the labels by which it is found."""
        _log.warning("wrote a slice again that had lost its labels", slice=str(found.key))
        fields = {name: body[name] for name in ("endpoints", "ports")}
        patch = {"metadata": {"labels": body["metadata"]["labels"]}, **fields}
        await self._client.patch(SLICES, found.key, merge_patch(patch, resource_version=found.meta.resource_version))

    async def _make_room(self, found: Object, entry: JournalEntry) -> None:
        """Delete the slice of an earlier process of this name and host; any other is not ours."""
        labels = found.meta.labels
        ours = labels.get(LABEL_HOST) == self._host and _is_made_by_agents(found)
        owner = labels.get(LABEL_PROCESS_UID, "")
        if not ours or (owner != entry.uid and self._journal.get(owner) is not None):
            raise RegistrationRefused(
                "NameTaken", f"EndpointSlice {entry.name} is there already, and it is not this server's"
            )
        await self._delete(found)

    async def _service(self, entry: JournalEntry) -> Object:
        key = ObjectKey(entry.namespace, entry.service)
        try:
            service = await self._client.get(SERVICES, key)
        except Absent:
            raise RegistrationRefused("NoService", f"Service {entry.service} is not there yet") from None
        if service.meta.labels.get(LABEL_ENDPOINT_UID, "") != entry.endpoint_uid:
            raise RegistrationRefused(
                "NameTaken", f"Service {entry.service} is there, and it is not a part of this endpoint"
            )
        return service

    async def _say(self, found: Object, entry: JournalEntry, shown: SliceState) -> None:
        wanted = contents(self._host, self.address, entry.port, shown)
        if not differs(found, wanted):
            return
        if shown is SliceState.READY:
            self._require_lease()
        self._journal.at(f"before the slice is {shown.value}")
        patch = merge_patch(wanted, resource_version=found.meta.resource_version)
        try:
            await self._client.patch(SLICES, found.key, patch)
        except Absent:
            _log.debug("the slice is gone already", slice=str(found.key))
        self._journal.at(f"after the slice is {shown.value}")

    async def _find(self, entry: JournalEntry) -> Object | None:
        """The slice of a process, by a fresh read: only that is a proof. Labels find it no more once they are lost."""
        try:
            found = await self._client.get(SLICES, entry.key)
        except Absent:
            return None
        return found if _belongs(found, entry) else None

    async def _delete(self, found: Object) -> None:
        self._journal.at("before the slice is deleted")
        try:
            await self._client.delete(SLICES, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        except (Absent, Foreign):
            _log.debug("the slice is gone already", slice=str(found.key))
        self._journal.at("after the slice is deleted")


def _belongs(found: Object, entry: JournalEntry) -> bool:
    """Whether a slice with the name of a process is its own: by the uid that was recorded, or by its label."""
    return found.meta.uid == entry.slice_uid or found.meta.labels.get(LABEL_PROCESS_UID) == entry.uid


def _is_made_by_agents(found: Object) -> bool:
    labels = found.meta.labels
    return labels.get(LABEL_SLICE_MANAGER) == SLICE_MANAGER and bool(labels.get(LABEL_PROCESS_UID))


def _hostname(host: str) -> str:
    """A DNS label; it is for people."""
    return host.replace(".", "-")[:63].strip("-")


def _covers(found: Any, wanted: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether `found` has all of `wanted`."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_covers(found.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(_covers(*each) for each in zip(found, wanted, strict=True))
    return bool(found == wanted)
