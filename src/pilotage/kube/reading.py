"""The reading verbs of the API: objects, lists, watches, logs, and any path. `Client` adds the writing ones.

A read of objects says which version it accepts (`MOST_RECENT`, `ANY`, `not_older_than`, `exactly`).
"""

from collections.abc import AsyncIterator, Callable

from pilotage.kube.exchange import Changed, Exchange
from pilotage.kube.names import PODS, ObjectKey, Resource
from pilotage.kube.options import MOST_RECENT, ReadVersion
from pilotage.kube.paths import object_path, with_query
from pilotage.kube.transport import Request
from pilotage.kube.watch import IDLE_SECONDS_MAX, Watch
from pilotage.kube.wire import Object, ObjectList, decode_list

CHUNK = 500
"""Number of objects in one chunk of a list."""
JSON = "application/json"

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class ReadClient:
    """The verbs that read. Errors are those of `pilotage.kube.errors`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def get(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        version: ReadVersion = MOST_RECENT,
        metadata_only: bool = False,
        subresource: str = "",
    ) -> Object:
        """One object, or Absent."""
        if version.match == "Exact":
            raise ValueError(f"{key}: a get is not available at exactly one version (the server would ignore it); list")
        target = with_query(object_path(resource, key, subresource), version.query())
        request = Request("GET", target, accept=_METADATA if metadata_only else JSON)
        return await self._exchange.call(request, decoder(resource))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: ReadVersion = MOST_RECENT,
        metadata_only: bool = False,
        chunk: int = CHUNK,
    ) -> ObjectList:
        """All objects of one namespace, or of all, read in chunks of one consistent version."""
        items: list[Object] = []
        resource_version = ""
        async for page in self.pages(
            resource,
            namespace,
            labels=labels,
            fields=fields,
            version=version,
            metadata_only=metadata_only,
            chunk=chunk,
        ):
            items += page.items
            resource_version = page.resource_version
        return ObjectList(resource_version, items)

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: ReadVersion = MOST_RECENT,
        metadata_only: bool = False,
        chunk: int = CHUNK,
    ) -> AsyncIterator[ObjectList]:
        """The list, chunk by chunk. Expired in the middle of it means: start again (the version was compacted)."""
        accept = _METADATA_LIST if metadata_only else JSON
        query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(chunk) if chunk else ""}
        paging = version.query()
        while True:
            target = with_query(resource.path(namespace), query | paging)
            page = await self._exchange.call(Request("GET", target, accept=accept), decode_list)
            yield page
            if not page.continue_token:
                return
            paging = {"continue": page.continue_token}

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        seconds: int = 300,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
    ) -> Watch:
        """The changes after a version, for some seconds (the server ends it then). Use it with ``async with``."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": labels,
            "fieldSelector": fields,
            "timeoutSeconds": str(seconds),
        }
        accept = _METADATA if metadata_only else JSON
        request = Request("GET", with_query(resource.path(namespace), query), accept=accept)
        return Watch(lambda: self._exchange.open(request), f"WATCH {resource.path(namespace)}", idle_seconds_max)

    async def get_path(self, path: str, *, accept: str = JSON) -> bytes:
        """Any path of the server: /version, /readyz, /openapi/v3, discovery."""
        return await self._exchange.call(Request("GET", path, accept=accept), bytes)

    async def get_changed(self, path: str, etag: str, *, accept: str = JSON) -> Changed:
        """The same, unless it is still what it was when the server gave it this ETag."""
        return await self._exchange.changed(Request("GET", path, accept=accept, if_none_match=etag))

    async def logs(
        self, key: ObjectKey, *, container: str = "", tail_lines: int | None = None, previous: bool = False
    ) -> bytes:
        """A pod's log so far."""
        request = _log_request(key, container, tail_lines, previous=previous)
        return await self._exchange.call(request, bytes)

    async def log_lines(
        self,
        key: ObjectKey,
        *,
        container: str = "",
        tail_lines: int | None = None,
        previous: bool = False,
        follow: bool = False,
    ) -> AsyncIterator[bytes]:
        """A pod's log, line by line as it comes. `follow`: until the container ends, and not just what there is."""
        request = _log_request(key, container, tail_lines, previous=previous, follow=follow)
        async for line in self._exchange.lines(request):
            yield line


def decoder(resource: Resource) -> Callable[[bytes], Object]:
    """Makes an object of an answer. What the answer does not say of its kind is that of the resource."""
    return lambda raw: Object.decode(raw, resource.api_version, resource.kind)


def _log_request(
    key: ObjectKey, container: str, tail_lines: int | None, *, previous: bool, follow: bool = False
) -> Request:
    query = {
        "container": container,
        "tailLines": "" if tail_lines is None else str(tail_lines),
        "previous": "true" if previous else "",
        "follow": "true" if follow else "",
    }
    return Request("GET", with_query(object_path(PODS, key, "log"), query), accept="*/*")
