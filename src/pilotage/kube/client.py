"""The client: every verb of the Kubernetes API, with nothing left implicit that a teardown depends on.

- Reads say which version they accept (`MOST_RECENT`, `ANY`, `not_older_than`, `exactly`): see `reading`.
- Deletes say the uid they mean and how they propagate. There is no default for either.
- `replace` takes a whole dict with a resourceVersion; a partly decoded or metadata-only object is refused.
- Errors are those of `pilotage.kube.errors`; a write without an answer is `Uncertain`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Protocol, Self

from pilotage import __version__
from pilotage.kube.exchange import Exchange
from pilotage.kube.names import ACCOUNTS, PODS, ObjectKey, Resource
from pilotage.kube.options import Propagation, delete_options
from pilotage.kube.patches import Patch, apply_patch
from pilotage.kube.paths import check_uid, object_path, with_query
from pilotage.kube.reading import JSON, ReadClient, decoder
from pilotage.kube.transport import REQUEST_SECONDS_MAX, Request, Transport
from pilotage.kube.wire import Json, Object, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.kube.config import ClusterConfig
    from pilotage.kube.ratelimit import TokenBucket


class WriteGuard(Protocol):
    """Observer of every write of a client, before it is sent and after it is answered (`Client.guarded_by`).

    For those who hold a Lease, or keep a cache.
    """

    def before(self, resource: Resource, key: ObjectKey) -> None:
        """A write to this key is about to be sent; raises to forbid it."""

    def allowed(self) -> None:
        """All waiting is over, and it will be sent now; raises to forbid it. May be called more than once."""

    def after(self, resource: Resource, key: ObjectKey, written: Object | None) -> None:
        """It was answered: with the object as it is now, or None when it failed or left no object to see."""


class Client(ReadClient):
    """One cluster, spoken to as one user. Cheap to copy; copies share connections and limits."""

    def __init__(
        self,
        transport: Transport,
        *,
        namespace: str = "default",
        limiter: TokenBucket | None = None,
        name: str = "pilotage",
        timeout: float = REQUEST_SECONDS_MAX,
    ) -> None:
        """`limiter` holds every request back to a rate of ours; `name` is field manager and user agent.

        `timeout`, in seconds, is for one request and its whole answer; a watch has a bound of its own.
        """
        super().__init__(Exchange(transport, limiter, f"{name}/{__version__}", timeout))
        self._guard: WriteGuard | None = None
        self.namespace = namespace
        self.name = name

    @classmethod
    def connect(
        cls,
        config: ClusterConfig,
        *,
        limiter: TokenBucket | None = None,
        name: str = "pilotage",
        timeout: float = REQUEST_SECONDS_MAX,
    ) -> Self:
        """A client over HTTP. No connection is made before the first request."""
        from pilotage.kube.http import HttpTransport

        transport = HttpTransport(config)
        return cls(transport, namespace=config.namespace, limiter=limiter, name=name, timeout=timeout)

    async def close(self) -> None:
        """Close the connections, those of all copies too."""
        await self._exchange.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def guarded_by(self, guard: WriteGuard, *, name: str | None = None) -> Self:
        """A copy whose writes pass the guard, under another name if one is given."""
        client = copy.copy(self)
        client._guard = guard
        if name is not None:
            client.name = name
            client._exchange = self._exchange.named(f"{name}/{__version__}")
        return client

    def named(self, name: str) -> Self:
        """A copy that writes under another name: that of the field manager."""
        client = copy.copy(self)
        client.name = name
        return client

    def urgent(self, timeout: float) -> Self:
        """A copy for what cannot wait: no limiter holds it back, and it gives up after `timeout` seconds."""
        client = copy.copy(self)
        client._exchange = self._exchange.urgent(timeout)
        return client

    def through(self, wrap: Callable[[Transport], Transport]) -> Self:
        """A copy whose requests go through a wrapper around its transport: to count them, or to disturb them."""
        client = copy.copy(self)
        client._exchange = self._exchange.through(wrap)
        return client

    async def create(
        self, resource: Resource, body: Json, *, namespace: str = "", dry_run: bool = False, strict: bool = False
    ) -> Object:
        """A new object, in the body's namespace unless one is given. `strict`: unknown fields are refused.

        AlreadyExists if the name is taken; Terminating if it is taken by something that is being deleted.
        """
        meta = body.get("metadata", {})
        key = ObjectKey(namespace or meta.get("namespace", ""), meta.get("name", ""))
        if resource.namespaced and not key.namespace:
            raise ValueError(f"{resource.kind}/{key.name}: no namespace is given, and its metadata has none")
        path = resource.path(key.namespace)
        return await self._write_object(
            "POST", resource, key, path, body, dry_run=dry_run, strict=strict, shows_it=not dry_run
        )

    async def replace(
        self, resource: Resource, body: Json, *, subresource: str = "", dry_run: bool = False, strict: bool = False
    ) -> Object:
        """PUT of a whole object (from `Object.to_dict`); Conflict unless it is still at the body's resourceVersion.

        `strict`: unknown fields are refused.
        """
        meta = body.get("metadata", {})
        key = ObjectKey(meta.get("namespace", ""), meta.get("name", ""))
        if body.get("kind", "").startswith("PartialObjectMetadata"):
            raise ValueError(f"{key}: only its metadata was read; a replace would erase the rest of it")
        if not meta.get("resourceVersion"):
            raise ValueError(f"{key}: a replace without metadata.resourceVersion would overwrite unseen changes")
        path = object_path(resource, key, subresource)
        shows_it = _is_shown(subresource, dry_run=dry_run)
        return await self._write_object(
            "PUT", resource, key, path, body, dry_run=dry_run, strict=strict, shows_it=shows_it
        )

    async def patch(
        self,
        resource: Resource,
        key: ObjectKey,
        patch: Patch,
        *,
        subresource: str = "",
        dry_run: bool = False,
        force: bool = False,
    ) -> Object:
        """Apply a patch of `pilotage.kube.patches`. `force`, for server-side apply: take fields from other managers."""
        query = {
            "fieldManager": self.name,
            "dryRun": "All" if dry_run else "",
            "force": "true" if force else "",
        }
        target = with_query(object_path(resource, key, subresource), query)
        request = Request("PATCH", target, body=patch.body, content_type=patch.content_type)
        return await self._write(resource, key, request, shows_it=_is_shown(subresource, dry_run=dry_run))

    async def apply(
        self,
        resource: Resource,
        body: Json,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply under this client's name. Conflict, with a cause for each field, if others own them."""
        meta = body["metadata"]
        key = ObjectKey(meta.get("namespace", ""), meta["name"])
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | body
        return await self.patch(
            resource, key, apply_patch(whole), subresource=subresource, force=force, dry_run=dry_run
        )

    async def scale(self, resource: Resource, key: ObjectKey, replicas: int) -> None:
        """Set the replicas through the scale subresource."""
        patch = Patch("application/merge-patch+json", encode({"spec": {"replicas": replicas}}))
        await self.patch(resource, key, patch, subresource="scale")

    async def evict(self, key: ObjectKey, *, uid: str, grace_seconds: int | None = None) -> None:
        """Ask for a pod's eviction. Throttled, with cause DisruptionBudget, while a budget does not allow it."""
        check_uid(PODS, key, uid)
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": key.namespace, "name": key.name},
            "deleteOptions": delete_options(uid=uid, grace_seconds=grace_seconds),
        }
        request = Request("POST", object_path(PODS, key, "eviction"), body=encode(body), content_type=JSON)
        await self._write(PODS, key, request, shows_it=False)

    async def token(self, account: ObjectKey, seconds: int) -> str:
        """A new token of a service account, good for about that long."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        request = Request("POST", object_path(ACCOUNTS, account, "token"), body=encode(body), content_type=JSON)
        answer = await self._write(ACCOUNTS, account, request, shows_it=False)
        return str(answer.get("status", "token"))

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str,
        propagation: Propagation,
        resource_version: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object | None:
        """Delete exactly this uid (Foreign if the name is another's by now), and at this version if one is given.

        Returns the object if it stays for now (finalizers, a grace period), None if it is gone. Absent if it was gone.
        A dry run returns the same, as it would be.
        """
        check_uid(resource, key, uid)
        options = delete_options(
            uid=uid,
            propagation=propagation,
            resource_version=resource_version,
            grace_seconds=grace_seconds,
            dry_run=dry_run,
        )
        request = Request("DELETE", object_path(resource, key), body=encode(options), content_type=JSON)
        answer = await self._write(resource, key, request, shows_it=not dry_run)
        return None if _is_gone(answer, request.method) else answer

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        propagation: Propagation,
        labels: str = "",
        fields: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete all that match, as the server finds them: no uid can be said. Prefer `delete` for what you know."""
        target = with_query(resource.path(namespace), {"labelSelector": labels, "fieldSelector": fields})
        options = delete_options(propagation=propagation, dry_run=dry_run)
        request = Request("DELETE", target, body=encode(options), content_type=JSON)
        await self._write(resource, ObjectKey(namespace, ""), request, shows_it=False)

    async def _write_object(
        self,
        method: str,
        resource: Resource,
        key: ObjectKey,
        path: str,
        body: Json,
        *,
        dry_run: bool,
        strict: bool,
        shows_it: bool,
    ) -> Object:
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | body
        query = {
            "fieldManager": self.name,
            "dryRun": "All" if dry_run else "",
            "fieldValidation": "Strict" if strict else "",
        }
        target = with_query(path, query)
        request = Request(method, target, body=encode(whole), content_type=JSON)
        return await self._write(resource, key, request, shows_it=shows_it)

    async def _write(self, resource: Resource, key: ObjectKey, request: Request, *, shows_it: bool) -> Object:
        """Send a write past the guard. `shows_it`: the answer is the object as it is now, if there still is one."""
        guard = self._guard
        if guard is None:
            return await self._exchange.call(request, decoder(resource))
        guard.before(resource, key)
        written: Object | None = None
        try:
            answer = await self._exchange.call(request, decoder(resource), guard.allowed)
            if shows_it and not _is_gone(answer, request.method):
                written = answer
        finally:
            guard.after(resource, key, written)
        return answer


def _is_shown(subresource: str, *, dry_run: bool) -> bool:
    """Whether a write is answered with the object itself as it is now, and not with a Scale, or with what would be."""
    return not dry_run and subresource in ("", "status")


def _is_gone(answer: Object, method: str) -> bool:
    """Whether the answer to a write proves that the object is no more.

    A delete of most kinds is answered with a Status then, that of some (Pods, Services, ServiceAccounts) with the last
    state of the object. What stays is marked as being deleted, and waits for something: finalizers, which a Namespace
    has in its spec too, or a grace period.
    """
    meta = answer.meta
    if not meta.terminating:
        return method == "DELETE"
    return not (meta.finalizers or meta.deletion_grace_period_seconds or answer.get("spec", "finalizers"))
