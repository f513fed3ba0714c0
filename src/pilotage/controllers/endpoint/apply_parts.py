"""Creates and changes parts: created only where nothing has the name, changed only where they are proven ours.

A part is created with POST, which never changes an object that exists: one of the same name that is not proven to be
this endpoint's is somebody else's, and is left alone. A part that exists is brought to its desired state with
server-side apply under our name, with its uid as a precondition. Every part is sealed.
"""

from pilotage.api.names import ANNOTATION_SEAL, LABEL_ENDPOINT_UID, LABEL_KEPT
from pilotage.controllers.caches import Caches
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.seals import kept_for
from pilotage.kube import (
    AlreadyExists,
    ApiError,
    Client,
    Forbidden,
    Invalid,
    KindNotServed,
    Object,
    ObjectKey,
    Terminating,
    merge_patch,
)
from pilotage.serving.drift import apply_body, same
from pilotage.serving.parts import DesiredObject, EndpointRef
from pilotage.serving.resources import CLAIMS

TAKEN_SECONDS = 15.0
"""Interval at which a name is tried again that somebody else has: no cache tells when it is free."""
SOON_SECONDS = 2.0
"""Pause while an object that has the name of a part terminates."""


class PartApplier:
    """Creates and changes the parts of endpoints."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._seals = caches.seals

    def sealed(self, subject: EndpointRef, wanted: DesiredObject) -> DesiredObject:
        """A part as it is sent, with its seal."""
        return self._seals.sealed(subject, wanted)

    async def check(self, subject: EndpointRef, wanted: DesiredObject) -> None:
        """Ask the API server, by a dry run, whether it accepts a new part. EndpointProblem if not."""
        try:
            await self._client.create(wanted.resource, wanted.body, namespace=subject.namespace, dry_run=True)
        except AlreadyExists:
            await self._ours(subject, wanted)
        except ApiError as error:
            raise problem_of(wanted, error) from error

    async def apply(self, subject: EndpointRef, wanted: DesiredObject) -> Object:
        """Create a part or bring it to what it should be; returns it. EndpointProblem if that is impossible now."""
        wanted = self.sealed(subject, wanted)
        found = self._caches.get(wanted.resource, ObjectKey(subject.namespace, wanted.name))
        if found is not None and not self._seals.is_part(subject, wanted.resource, found):
            found = None  # a former endpoint's, or somebody else's: the name is not free yet, or never will be
        try:
            if found is None:
                try:
                    return await self._client.create(wanted.resource, wanted.body, namespace=subject.namespace)
                except AlreadyExists:
                    found = await self._ours(subject, wanted)
            if found.meta.terminating:
                raise EndpointProblem(
                    "PartTerminating",
                    f"{name(wanted)} is being deleted; it is created again once it is gone.",
                    retry_after=SOON_SECONDS,
                    waits=True,
                )
            if same(wanted, found):
                return found
            body = apply_body(wanted, found)
            body["metadata"]["namespace"] = subject.namespace
            return await self._client.apply(wanted.resource, body, force=True)
        except ApiError as error:
            raise problem_of(wanted, error) from error

    async def _ours(self, subject: EndpointRef, wanted: DesiredObject) -> Object:
        """The object that has the name, if it is this endpoint's or was kept for it. EndpointProblem if it is not."""
        found = await self._client.get(wanted.resource, ObjectKey(subject.namespace, wanted.name))
        if self._seals.is_part(subject, wanted.resource, found):
            return found
        if self._seals.fits(wanted.resource, found, kept_for(subject.name)):
            metadata = {
                "uid": found.meta.uid,
                "labels": {LABEL_ENDPOINT_UID: subject.uid, LABEL_KEPT: None},
                "annotations": {ANNOTATION_SEAL: self._seals.seal(wanted.resource, found.key, subject.uid)},
            }
            patch = merge_patch({"metadata": metadata}, resource_version=found.meta.resource_version)
            return await self._client.patch(wanted.resource, found.key, patch)
        whose, way_out = "was not made for this endpoint", "Delete it or rename it, or rename the endpoint."
        if LABEL_ENDPOINT_UID in found.meta.labels or LABEL_KEPT in found.meta.labels:
            whose = "carries Pilotage's labels, but not the operator's seal for this endpoint"
        if wanted.resource == CLAIMS:
            way_out = f"Serve what is on it (pvc://{wanted.name}/PATH), or delete it, or rename the endpoint."
        raise EndpointProblem(
            "NameTaken",
            f"{name(wanted)} -n {subject.namespace} exists and {whose}, so it is not touched. {way_out}",
            retry_after=TAKEN_SECONDS,
        )


def name(wanted: DesiredObject) -> str:
    """Name of a part as kubectl takes it."""
    return f"{wanted.resource.kind.lower()}/{wanted.name}"


def problem_of(wanted: DesiredObject, error: ApiError) -> ApiError | EndpointProblem:
    """The problem that an error of the API is for the endpoint; an error that a retry may solve stays as it is."""
    if isinstance(error, Terminating):
        return EndpointProblem(
            "NameTerminating", f"{name(wanted)}: {error.message}", retry_after=SOON_SECONDS, waits=True
        )
    if isinstance(error, KindNotServed):
        kind = f"{wanted.resource.kind}.{wanted.resource.group}"
        return EndpointProblem(
            "KindNotServed", f"the cluster has no {kind}: install it, or choose something else.", retry_after=30.0
        )
    if isinstance(error, Forbidden):
        text = f"{error.message.rstrip('. ')} ({name(wanted)} could not be created)."
        return EndpointProblem("Forbidden", text, retry_after=60.0)
    if isinstance(error, Invalid):
        return EndpointProblem("Rejected", f"{error.message.rstrip('. ')} (the API server rejects {name(wanted)}).")
    return error
