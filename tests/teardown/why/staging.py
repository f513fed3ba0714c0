"""Staged cases: create objects, delete them, ask why, and check the answer."""

import contextlib
import datetime as dt
import signal
from collections.abc import Iterator
from typing import Any

from controlplane import Cluster
from pilotage.catalogue.reading import FOR_FINALIZERS
from pilotage.kube import (
    ApiError,
    Client,
    Discovery,
    Json,
    Object,
    Propagation,
    Resource,
    merge_patch,
)
from pilotage.runtime.clock import utc_now
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation, StuckCause
from pilotage.teardown.relations import full_kinds, relate
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.resolve import until_resolved
from pilotage.teardown.snapshot.world import Item, Name, World


@contextlib.contextmanager
def controllers_paused(cluster: Cluster) -> Iterator[None]:
    """kube-controller-manager is stopped during the block."""
    cluster._supervisor.signal("kube-controller-manager", signal.SIGSTOP)
    try:
        yield
    finally:
        cluster._supervisor.signal("kube-controller-manager", signal.SIGCONT)


def owner(resource: Resource, obj: Object, **more: Any) -> Json:
    """An owner reference that blocks, unless told otherwise."""
    meta = obj.meta
    reference = {"apiVersion": resource.api_version, "kind": resource.kind, "name": meta.name, "uid": meta.uid}
    return {**reference, "blockOwnerDeletion": True, **more}


class Stage:
    """One test's objects. `make`, `delete` and `why` are all that most cases need."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self._made: list[tuple[Resource, Object]] = []

    async def make(self, resource: Resource, body: Json, namespace: str | None = None, **metadata: Any) -> Object:
        """Create an object, in the test's namespace unless another is named; `metadata` overrides the body's."""
        body = {**body, "metadata": {**body.get("metadata", {}), **metadata}}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        place = (self.namespace if namespace is None else namespace) if resource.namespaced else ""
        created = await self.client.create(resource, body, namespace=place)
        self._made.append((resource, created))
        return created

    async def status(self, resource: Resource, obj: Object, status: Json) -> Object:
        """Write a status, as a controller does."""
        return await self.client.patch(resource, obj.key, merge_patch({"status": status}), subresource="status")

    async def delete(
        self, resource: Resource, obj: Object, propagation: Propagation = Propagation.BACKGROUND
    ) -> Object | None:
        """Delete just this object."""
        return await self.client.delete(resource, obj.key, uid=obj.meta.uid, propagation=propagation)

    async def world(self, *, seconds_later: float = 0, in_namespace: bool = False) -> World:
        """All objects, or those of the stage's namespace; as if read some seconds later than now."""
        now = utc_now() + dt.timedelta(seconds=seconds_later)
        full = full_kinds() | FOR_FINALIZERS
        namespaces = (self.namespace,) if in_namespace else ()
        return await gather(self.client, Discovery(self.client), namespaces=namespaces, full=full, now=now)

    async def why(
        self, resource: Resource, obj: Object, *, seconds_later: float = 0, in_namespace: bool = False
    ) -> Explanation:
        """Answer of `pilotage why` for it, as if asked some seconds later than now."""
        world = await self.world(seconds_later=seconds_later, in_namespace=in_namespace)
        item = world.get(obj.meta.uid) or Item(resource, obj, full=True)
        return await until_resolved(self.client, world, lambda known: explain(known, relate(known), item))

    async def clear(self) -> None:
        """Remove everything that a test has created, whatever holds it."""
        for resource, obj in reversed(self._made):
            with contextlib.suppress(ApiError):
                if obj.meta.uid == (current := await self.client.get(resource, obj.key)).meta.uid:
                    if current.meta.finalizers:
                        await self.client.patch(resource, obj.key, merge_patch({"metadata": {"finalizers": None}}))
                    await self.delete(resource, obj)


def all_causes(explanation: Explanation) -> Iterator[StuckCause]:
    """Every cause of the tree, from the top down."""
    open_ = list(reversed(explanation.causes))
    while open_:
        cause = open_.pop()
        open_ += reversed(cause.because)
        yield cause


def the(explanation: Explanation, code: str) -> StuckCause:
    """The cause of this code, which must be there, once."""
    found = list(
        {(str(cause.subject), cause.text): cause for cause in all_causes(explanation) if cause.code == code}.values()
    )
    codes = [(cause.code, cause.text) for cause in all_causes(explanation)]
    assert len(found) == 1, f"{len(found)} of {code} in {explanation.headline!r}: {codes}"
    return found[0]


def root_codes(explanation: Explanation) -> set[str]:
    """The codes of the root causes."""
    return {str(root.code) for root in explanation.roots}


def name_of(subject: Item | Name) -> Name:
    """Name of the object of a cause."""
    return subject.name if isinstance(subject, Item) else subject
