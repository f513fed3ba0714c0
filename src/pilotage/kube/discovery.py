"""Discovery of the server's resources, and of the one that a user means by ``deploy`` or ``widgets.example.com``.

Two requests tell everything (aggregated discovery, Kubernetes 1.26 and up; older servers are asked group by group).
The answer is kept until `refresh`, or until something is looked up that it does not have. Groups that could not be read
are remembered with the reason: their kinds are unknown, which is not the same as absent.

With a `discovery_memory` the first answer is that of the last time. The server is asked at the same time whether it
still holds (`confirm`), so that reading can begin at once; `as_served` is the way to use it.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pilotage.kube.errors import ApiError, Unavailable
from pilotage.kube.names import Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pilotage.kube.client import Client
    from pilotage.kube.discovery_memory import DiscoveryMemory, Remembered

T = TypeVar("T")

_ROOTS = ("/api", "/apis")
_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)


class ApiResource(msgspec.Struct, frozen=True, array_like=True):
    """One resource with all its names, verbs and subresources. `preferred`: its version is the group's first choice."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    verbs: frozenset[str]
    subresources: frozenset[str]
    preferred: bool

    def answers_to(self, name: str) -> bool:
        """Whether the name, in any case, is its plural, singular, kind or a short name."""
        names = (self.resource.plural, self.singular, self.resource.kind.lower(), *self.short_names)
        return name.lower() in names


class Surface(msgspec.Struct, frozen=True, array_like=True):
    """Result of one discovery: the resources, and the groups that could not be read, with the reason.

    In the server's order of preference: group by group, and of each group the preferred version first.
    """

    resources: tuple[ApiResource, ...]
    unreadable: dict[str, str]


class UnknownKind(LookupError):
    """No resource answers to the name, among the groups that could be read."""


class Discovery:
    """The server's surface, read when first needed and kept."""

    def __init__(self, client: Client, memory: DiscoveryMemory | None = None) -> None:
        """Discovery of a server. With a `memory`, the first answer of `surface` has to be confirmed (see there)."""
        self._client = client
        self._memory = memory
        self._surface: Surface | None = None
        self._guess: Surface | None = None
        self._check: asyncio.Task[Surface] | None = None

    async def surface(self) -> Surface:
        """All resources, from the cache. From the memory, if there is one, they are a guess until `confirm`."""
        if self._surface is None and self._memory is not None and (known := self._memory.recall()) is not None:
            self._surface = self._guess = known.surface
            self._check = asyncio.create_task(self._read(known))
            self._check.add_done_callback(lambda check: check.cancelled() or check.exception())  # nobody may ask
        return self._surface or await self.refresh()

    async def confirm(self) -> bool:
        """Whether the server still serves what `surface` has said so far. If not, it says the new from now on.

        Raises the ApiError of asking.
        """
        guess, self._guess = self._guess, None
        check, self._check = self._check, None
        if check is not None:
            self._surface = await check
        return guess is None or self._surface is guess

    async def refresh(self) -> Surface:
        """All resources, read now."""
        if self._check is not None:
            self._check.cancel()
            self._check = None
        self._surface = await self._read(None)
        return self._surface

    async def _read(self, known: Remembered | None) -> Surface:
        """The resources that are served now: `known.surface` itself, if nothing has changed."""
        etags = known.etags if known is not None else ("", "")
        core, named = await asyncio.gather(*(_read(self._client, *each) for each in zip(_ROOTS, etags, strict=True)))
        if core.surface is None and named.surface is None and known is not None:
            return known.surface
        if core.surface is None or named.surface is None:  # what is kept does not tell the two apart
            return await self._read(None)
        surface = Surface(
            core.surface.resources + named.surface.resources, core.surface.unreadable | named.surface.unreadable
        )
        if self._memory is not None and core.etag and named.etag:
            self._memory.keep((core.etag, named.etag), surface)
        return surface

    async def find(self, name: str) -> ApiResource:
        """The resource that kubectl would mean by a plural, singular, kind or short name.

        ``.group`` and ``.version.group`` behind it narrow it.
        Read again once when nothing answers (a CRD may be new). Raises UnknownKind.
        """
        cached = self._surface is not None
        found = _find(await self.surface(), name)
        if found is None and (cached or self._check is not None):
            found = _find(await self.refresh(), name)
        if found is None:
            surface = await self.surface()
            unread = "; ".join(f"{group}: {why}" for group, why in sorted(surface.unreadable.items()))
            raise UnknownKind(f"the server has no resource {name!r}" + (f" (not readable: {unread})" if unread else ""))
        return found


def _find(surface: Surface, name: str) -> ApiResource | None:
    word, _, rest = name.partition(".")
    named = [candidate for candidate in surface.resources if candidate.answers_to(word)]
    exact = (each for each in named if rest == f"{each.resource.version}.{each.resource.group}")
    by_group = (each for each in named if rest in ("", each.resource.group))
    return next(itertools.chain(exact, by_group), None)


async def as_served(discovery: Discovery, read: Callable[[], Awaitable[T]]) -> T:
    """Result of `read`, which changes nothing, among the kinds that are served now.

    It may begin with those of the last time, and is called again where the server has others by now. What it raises
    counts only if it knew the right ones.
    """
    try:
        found = await read()
    except Exception:
        if await discovery.confirm():
            raise
    else:
        if await discovery.confirm():
            return found
    return await read()


class _Root(msgspec.Struct, frozen=True):
    """One of the two answers, with its ETag. No surface: it is still what it was."""

    surface: Surface | None
    etag: str


async def _read(client: Client, root: str, known: str) -> _Root:
    raw, etag = await client.get_changed(root, known, accept=_AGGREGATED)
    if raw is None:
        return _Root(None, etag)
    answer = _decoded(root, raw)
    if answer.get("kind") == "APIGroupDiscoveryList":
        return _Root(_aggregated(answer), etag)
    return _Root(await _group_by_group(client, root, answer), "")


def _decoded(path: str, raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except ValueError as error:
        raise Unavailable(f"what came back is not from a Kubernetes API ({error})", request=f"GET {path}") from error


def _aggregated(answer: dict[str, Any]) -> Surface:
    resources: list[ApiResource] = []
    unreadable: dict[str, str] = {}
    for group in answer.get("items", ()):
        name = group.get("metadata", {}).get("name", "")
        for rank, version in enumerate(group.get("versions", ())):
            if version.get("freshness") == "Stale":
                unreadable[f"{name}/{version['version']}"] = (
                    "its API service does not answer; what is listed may be old"
                )
            resources += (
                _aggregated_resource(name, version["version"], entry, preferred=rank == 0)
                for entry in version.get("resources", ())
                if entry.get("responseKind")
            )
    return Surface(tuple(resources), unreadable)


def _aggregated_resource(group: str, version: str, entry: dict[str, Any], *, preferred: bool) -> ApiResource:
    kind = entry["responseKind"]["kind"]
    return ApiResource(
        Resource(group, version, entry["resource"], kind, entry.get("scope") == "Namespaced"),
        entry.get("singularResource") or kind.lower(),
        tuple(entry.get("shortNames") or ()),
        tuple(entry.get("categories") or ()),
        frozenset(entry.get("verbs") or ()),
        frozenset(sub["subresource"] for sub in entry.get("subresources") or ()),
        preferred,
    )


async def _group_by_group(client: Client, root: str, answer: dict[str, Any]) -> Surface:
    """Discover before 1.26: one request for each version of each group. One that fails does not hide the others."""
    if root == "/api":
        versions = [("", version, rank == 0) for rank, version in enumerate(answer.get("versions", ()))]
    else:
        versions = [
            (group["name"], version, version == group["preferredVersion"]["version"])
            for group in answer.get("groups", ())
            for version in _preferred_first(group)
        ]
    resources: list[ApiResource] = []
    unreadable: dict[str, str] = {}
    for group, version, preferred in versions:
        path = f"{root}/{group}/{version}" if group else f"{root}/{version}"
        try:
            listed = _decoded(path, await client.get_path(path))
        except ApiError as error:
            unreadable[f"{group}/{version}"] = error.message
            continue
        resources += _legacy_resources(group, version, listed.get("resources", ()), preferred=preferred)
    return Surface(tuple(resources), unreadable)


def _preferred_first(group: dict[str, Any]) -> list[str]:
    preferred = group["preferredVersion"]["version"]
    return sorted((served["version"] for served in group["versions"]), key=lambda version: version != preferred)


def _legacy_resources(group: str, version: str, entries: list[dict[str, Any]], *, preferred: bool) -> list[ApiResource]:
    subresources: dict[str, set[str]] = {}
    for entry in entries:
        plural, slash, sub = entry["name"].partition("/")
        if slash:
            subresources.setdefault(plural, set()).add(sub)
    return [
        ApiResource(
            Resource(group, version, entry["name"], entry["kind"], entry["namespaced"]),
            entry.get("singularName") or entry["kind"].lower(),
            tuple(entry.get("shortNames") or ()),
            tuple(entry.get("categories") or ()),
            frozenset(entry.get("verbs") or ()),
            frozenset(subresources.get(entry["name"], ())),
            preferred,
        )
        for entry in entries
        if "/" not in entry["name"]
    ]
