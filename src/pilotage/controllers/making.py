"""How parts come to be: written down first, created only where nothing is, changed only where they are ours.

A part is created with POST, which never changes what is there already: an object of the same name that does not carry
the endpoint's uid is somebody else's, and is left alone. A part that is there is brought to what it should be with
server-side apply under our name, and with its uid as a precondition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kinds.names import LABEL_ENDPOINT_UID, LABEL_KEPT, LABEL_MANAGED_BY, MANAGED_BY
from pilotage.kube import (
    AlreadyExists,
    ApiError,
    Forbidden,
    Invalid,
    KindNotServed,
    ObjectKey,
    Terminating,
    merge_patch,
)
from pilotage.serving.sameness import apply_body, same

if TYPE_CHECKING:
    from pilotage.controllers.caches import Caches
    from pilotage.kube import Client, Json, Object
    from pilotage.serving.parts import Subject, Wanted

RECHECK_SECONDS = 300.0
SOON_SECONDS = 2.0


class Trouble(Exception):
    """Why an endpoint does not come further; for its condition. Trying again at once does not help."""

    def __init__(self, reason: str, message: str, *, again: float = RECHECK_SECONDS, waits: bool = False) -> None:
        """`waits`: nothing is wrong, it just takes its time."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.again = again
        self.waits = waits


class Maker:
    """See the module."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches

    async def check(self, subject: Subject, wanted: Wanted) -> None:
        """Ask the server whether it would take a part that does not exist yet. Trouble if not."""
        try:
            await self._client.create(wanted.resource, wanted.body, namespace=subject.namespace, dry_run=True)
        except AlreadyExists:
            await self._ours(subject, wanted)
        except ApiError as error:
            raise trouble(wanted, error) from error

    async def make(self, subject: Subject, wanted: Wanted) -> Object:
        """See to it that a part is there, and as it should be; returns it. Trouble if that cannot be had now."""
        found = self._caches.get(wanted.resource, ObjectKey(subject.namespace, wanted.name))
        if found is not None and not _is_ours(subject, found):
            found = None  # of an endpoint of the same name that went: its name is not free yet, or never will be
        try:
            if found is None:
                try:
                    return await self._client.create(wanted.resource, wanted.body, namespace=subject.namespace)
                except AlreadyExists:
                    found = await self._ours(subject, wanted)
            if found.meta.terminating:
                raise Trouble(
                    "PartTerminating",
                    f"{name(wanted)} is being deleted; it is made anew then.",
                    again=SOON_SECONDS,
                    waits=True,
                )
            if same(wanted, found):
                return found
            body = apply_body(wanted, found)
            body["metadata"]["namespace"] = subject.namespace
            return await self._client.apply(wanted.resource, body, force=True)
        except ApiError as error:
            raise trouble(wanted, error) from error

    async def _ours(self, subject: Subject, wanted: Wanted) -> Object:
        """What has the name already, if we made it: and never heard of it, or kept it. Trouble if somebody else did."""
        found = await self._client.get(wanted.resource, ObjectKey(subject.namespace, wanted.name))
        if _is_ours(subject, found):
            return found
        if found.meta.labels.get(LABEL_KEPT) == subject.name and found.meta.labels.get(LABEL_MANAGED_BY) == MANAGED_BY:
            labels = {LABEL_ENDPOINT_UID: subject.uid, LABEL_KEPT: None}
            version = found.meta.resource_version
            patch = merge_patch({"metadata": {"uid": found.meta.uid, "labels": labels}}, resource_version=version)
            return await self._client.patch(wanted.resource, found.key, patch)
        raise Trouble(
            "NameTaken",
            f"{name(wanted)} -n {subject.namespace} exists and was not made for this endpoint, so it is not touched. "
            "Delete it or rename it, or rename the endpoint.",
        )


def _is_ours(subject: Subject, found: Object) -> bool:
    return found.meta.labels.get(LABEL_ENDPOINT_UID) == subject.uid


def name(wanted: Wanted) -> str:
    """As a person reads it."""
    return f"{wanted.resource.kind.lower()}/{wanted.name}"


def trouble(wanted: Wanted, error: ApiError) -> ApiError | Trouble:
    """What an error means for the endpoint: one that time may mend is raised as it is."""
    if isinstance(error, Terminating):
        return Trouble("NameTerminating", f"{name(wanted)}: {error.message}", again=SOON_SECONDS, waits=True)
    if isinstance(error, KindNotServed):
        kind = f"{wanted.resource.kind}.{wanted.resource.group}"
        return Trouble("KindNotServed", f"the cluster has no {kind}: install it, or choose something else.", again=30.0)
    if isinstance(error, Forbidden):
        return Trouble("Forbidden", f"{name(wanted)} could not be made: {error.message}", again=60.0)
    if isinstance(error, Invalid):
        return Trouble("Rejected", f"the API server rejects {name(wanted)}: {error.message}")
    return error


def ledger_entry(wanted: Wanted, uid: str = "") -> Json:
    """How a part stands in an endpoint's status."""
    entry: Json = {
        "apiVersion": wanted.resource.api_version,
        "kind": wanted.resource.kind,
        "resource": wanted.resource.plural,
        "name": wanted.name,
        "uid": uid,
    }
    return entry if wanted.revision is None else entry | {"revision": wanted.revision}
