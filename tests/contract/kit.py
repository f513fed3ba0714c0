"""Client of a case: requests to one server in one namespace, each answer noted in the case's transcript.

The methods that change how requests are made (`quiet`, `as_user`, `accepting`, …) return a changed copy.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from tests.contract.normal import Normaliser

if TYPE_CHECKING:
    from tests.contract.case import Case
    from tests.contract.server import Connected

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

COMPARED_HEADERS = ("content-type", "warning", "retry-after", "location", "allow")
POLL_SECONDS = 0.05

UNLIKE = "not like what the case expects"
"""The key of a body of which a case could not pick what it compares. The real server must never give one."""

_VERSION = re.compile(r"\b(resourceVersion)=\d{2,}")
_TOKEN = re.compile(r"\bcontinue=[^&]{24,}")

Step = dict[str, Any]
Pick = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came. `body` is decoded if it was JSON, else text."""

    status: int
    headers: Mapping[str, str]
    body: Any
    raw: bytes = b""

    @property
    def uid(self) -> str:
        """Uid of the object."""
        return str(self.body["metadata"]["uid"])

    @property
    def rv(self) -> str:
        """The resourceVersion of the object or list."""
        return str(self.body["metadata"]["resourceVersion"])


class Kit:
    """One case's view of a server."""

    def __init__(self, server: Connected, case: Case) -> None:
        self.server = server
        self.ns = case.namespace
        self.steps: list[Step] = []
        self.normal = Normaliser(managed=case.managed)
        self._recording = True
        self._strict = False
        self._headers: dict[str, str] = {"Accept": JSON, "User-Agent": "contract/1"}
        self._anonymous = False
        self._pick: Pick | None = None

    # Copies that ask differently.

    @property
    def quiet(self) -> Self:
        """The same, but its requests are not noted, and its writes must succeed: for preparations."""
        return self._changed(_recording=False, _strict=True)

    @property
    def probing(self) -> Self:
        """The same, but its requests are not noted, and may be refused."""
        return self._changed(_recording=False, _strict=False)

    def as_user(self, name: str, *groups: str, **extra: str) -> Self:
        """Impersonating a user."""
        headers = {"Impersonate-User": name, **extra}
        if groups:
            headers["Impersonate-Group"] = "\n".join(groups)
        return self.with_headers(headers)

    def anonymous(self, token: str = "") -> Self:
        """Client without the administrator's credentials, but with a token if one is given."""
        changed = self._changed(_anonymous=True)
        return changed.with_headers({"Authorization": f"Bearer {token}"}) if token else changed

    def accepting(self, accept: str) -> Self:
        """Asking for another representation."""
        return self.with_headers({"Accept": accept})

    def with_headers(self, headers: Mapping[str, str]) -> Self:
        """Client with more headers. Lines in a value become headers of the same name."""
        return self._changed(_headers={**self._headers, **headers})

    def picking(self, pick: Pick) -> Self:
        """Client that notes only the part of the body that `pick` returns."""
        return self._changed(_pick=pick)

    def in_namespace(self, namespace: str) -> Self:
        """Client in another namespace."""
        return self._changed(ns=namespace)

    def _changed(self, **attributes: Any) -> Self:
        changed = copy.copy(self)
        for name, value in attributes.items():
            setattr(changed, name, value)
        return changed

    # Requests

    def path(self, resource: str, name: str = "", sub: str = "") -> str:
        """The path of `configmaps`, `apps/v1/deployments`, or with a leading slash one that is in no namespace."""
        *api, plural = resource.strip("/").split("/")
        parts = ["/apis", *api] if api else ["/api", "v1"]
        if not resource.startswith("/"):
            parts += ["namespaces", self.ns]
        return "/".join([*parts, *filter(None, (plural, name, sub))])

    async def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        type: str = JSON,  # noqa: A002 (as it is called in HTTP)
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Any request at all. `body` is encoded unless it is bytes."""
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = dict(self._headers) | dict(headers or {})
        if raw is not None and type:
            sent["Content-Type"] = type
        answer = await self.server.request(method, target, raw, sent, anonymous=self._anonymous)
        if self._strict and method != "GET" and answer.status >= 400:
            raise RuntimeError(f"a preparation failed: {method} {target}: {answer.status} {answer.body}")
        self._note(method, target, answer)
        return answer

    async def create(self, resource: str, body: Any, name: str = "", sub: str = "", **query: Any) -> Answer:
        """POST."""
        return await self.send("POST", self._target(resource, name, sub, query), body)

    async def get(self, resource: str, name: str, sub: str = "", **query: Any) -> Answer:
        """GET of one object."""
        return await self.send("GET", self._target(resource, name, sub, query))

    async def list(self, resource: str, **query: Any) -> Answer:
        """GET of a list. A query's value of None leaves it away."""
        return await self.send("GET", self._target(resource, "", "", query))

    async def put(self, resource: str, name: str, body: Any, sub: str = "", **query: Any) -> Answer:
        """PUT."""
        return await self.send("PUT", self._target(resource, name, sub, query), body)

    async def patch(
        self,
        resource: str,
        name: str,
        patch: Any,
        sub: str = "",
        *,
        type: str = MERGE,  # noqa: A002
        **query: Any,
    ) -> Answer:
        """PATCH: a merge patch, unless its type says otherwise."""
        return await self.send("PATCH", self._target(resource, name, sub, query), patch, type=type)

    async def json_patch(self, resource: str, name: str, operations: Any, sub: str = "", **query: Any) -> Answer:
        """PATCH by RFC 6902."""
        return await self.patch(resource, name, operations, sub, type=JSON_PATCH, **query)

    async def strategic(self, resource: str, name: str, patch: Any, sub: str = "", **query: Any) -> Answer:
        """PATCH by a strategic merge."""
        return await self.patch(resource, name, patch, sub, type=STRATEGIC, **query)

    async def apply(
        self, resource: str, name: str, body: Any, sub: str = "", *, manager: str = "alice", **query: Any
    ) -> Answer:
        """Server-side apply."""
        query = {"fieldManager": manager, **query}
        return await self.patch(resource, name, body, sub, type=APPLY, **query)

    async def delete(self, resource: str, name: str = "", options: Any = None, **query: Any) -> Answer:
        """DELETE of an object, or of a collection."""
        return await self.send("DELETE", self._target(resource, name, "", query), options)

    @contextlib.asynccontextmanager
    async def watch(self, resource: str, **query: Any) -> AsyncIterator[Stream]:
        """A watch, open for the time of the block. What was taken from it is noted at its end."""
        target = self._target(resource, "", "", {"watch": 1, **query})
        async with self.server.stream(target, self._headers) as response:
            stream = Stream(response.stream)
            yield stream
            if self._recording:
                shown = [self._picked(event) for event in stream.taken]
                self.steps.append(
                    {
                        "request": self.normal.text(f"WATCH {_short(target)}"),
                        "status": response.status,
                        "headers": _compared(response.headers),
                        "events": self.normal.value(shown),
                    }
                )

    # Everything else

    def note(self, what: str, value: Any) -> None:
        """Note something that the case found out, to be compared as well."""
        if self._recording:
            self.steps.append({"note": what, "value": self.normal.value(value)})

    async def until(self, what: str, probe: Callable[[], Awaitable[Any]], seconds: float = 60) -> Any:
        """Ask again and again until the answer is true, and return it."""
        try:
            async with asyncio.timeout(seconds):
                while not (answer := await probe()):  # noqa: ASYNC110 (the server cannot set an event of ours)
                    await asyncio.sleep(POLL_SECONDS)
                return answer
        except TimeoutError:
            raise TimeoutError(f"after {seconds:.0f} s still not so: {what}") from None

    async def until_gone(self, resource: str, name: str, seconds: float = 60) -> None:
        """Wait until an object no longer exists."""

        async def gone() -> bool:
            return (await self.quiet.get(resource, name)).status == 404

        await self.until(f"{resource}/{name} is gone", gone, seconds)
        self.note("gone", f"{resource}/{name}")

    def _target(self, resource: str, name: str, sub: str, query: Mapping[str, Any]) -> str:
        words = urlencode({key: value for key, value in query.items() if value is not None})
        return self.path(resource, name, sub) + (f"?{words}" if words else "")

    def _picked(self, body: Any) -> Any:
        if self._pick is None:
            return body
        try:
            return self._pick(body)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return {UNLIKE: body}

    def _note(self, method: str, target: str, answer: Answer) -> None:
        if self._recording:
            self.steps.append(
                {
                    "request": self.normal.text(f"{method} {_short(target)}"),
                    "status": answer.status,
                    "headers": _compared(answer.headers),
                    "body": self.normal.value(self._picked(answer.body)),
                }
            )


class Stream:
    """The events of a watch, one JSON document on each line."""

    def __init__(self, content: Any) -> None:
        self._content = content
        self.taken: list[Any] = []

    async def take(self, count: int = 1, *, bookmarks: bool = False, seconds: float = 60) -> list[Any]:
        """The next events. Bookmarks come when the server likes, so they are left out unless asked for."""
        found: list[Any] = []
        async with asyncio.timeout(seconds):
            while len(found) < count and (line := await self._content.readline()):
                event = json.loads(line)
                if bookmarks or event["type"] != "BOOKMARK":
                    found.append(event)
        self.taken += found
        return found

    async def rest(self, seconds: float = 60) -> list[Any]:
        """All events until the server ends the watch."""
        return await self.take(10**6, seconds=seconds)


def _compared(headers: Mapping[str, str]) -> dict[str, str]:
    found = {name: headers[name] for name in COMPARED_HEADERS if headers.get(name)}
    if found.get("content-type") == JSON:
        del found["content-type"]  # the usual one is left out
    return found


def _short(target: str) -> str:
    target = _TOKEN.sub("continue=CONTINUE", _VERSION.sub(r"\1=RV", target))
    return target if len(target) < 300 else f"{target[:300]}…"
