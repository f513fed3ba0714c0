"""Which resources the server has, and which one a person means by ``deploy`` or ``widgets.example.com``.

Two requests tell everything (aggregated discovery, Kubernetes 1.26 and up; older servers are asked group by group).
The answer is kept until `refresh`, or until something is looked up that it does not have. Groups that could not be read
are remembered with the reason: their kinds are unknown, which is not the same as absent.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pilotage.kube.errors import ApiError, Unavailable
from pilotage.kube.names import Resource

if TYPE_CHECKING:
    from pilotage.kube.client import Client

_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)


class ApiResource(NamedTuple):
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


class Surface(NamedTuple):
    """What one discovery found, and what could not be read, with why.

    In the server's order of preference: group by group, and of each group the preferred version first.
    """

    resources: tuple[ApiResource, ...]
    unreadable: dict[str, str]


class UnknownKind(LookupError):
    """No resource answers to the name, among the groups that could be read."""


class Discovery:
    """The server's surface, read when first needed and kept."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._surface: Surface | None = None

    async def surface(self) -> Surface:
        """All resources, from the cache."""
        return self._surface or await self.refresh()

    async def refresh(self) -> Surface:
        """All resources, read now."""
        core, named = await asyncio.gather(_read(self._client, "/api"), _read(self._client, "/apis"))
        self._surface = Surface(core.resources + named.resources, core.unreadable | named.unreadable)
        return self._surface

    async def find(self, name: str) -> ApiResource:
        """The resource that kubectl would mean by a plural, singular, kind or short name.

        ``.group`` and ``.version.group`` behind it narrow it.
        Read again once when nothing answers (a CRD may be new). Raises UnknownKind.
        """
        cached = self._surface is not None
        found = _find(await self.surface(), name)
        if found is None and cached:
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


async def _read(client: Client, root: str) -> Surface:
    answer = await _json(client, root, _AGGREGATED)
    if answer.get("kind") == "APIGroupDiscoveryList":
        return _aggregated(answer)
    return await _group_by_group(client, root, answer)


async def _json(client: Client, path: str, accept: str = "application/json") -> dict[str, Any]:
    try:
        return msgspec.json.decode(await client.get_path(path, accept=accept), type=dict[str, Any])
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
    """Before 1.26: one request for each version of each group. One that fails does not hide the others."""
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
            listed = await _json(client, path)
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
