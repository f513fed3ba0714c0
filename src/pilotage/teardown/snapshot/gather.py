"""A world, read from a live cluster: all its kinds side by side, most of them by their metadata alone.

Each kind is read or it is not, with the reason: a kind that is forbidden, being removed, or served by an API that is
dead never hides the others, and never holds them up. Every read is consistent (the most recent state), because only
such a read proves that something is not there.

Some kinds matter wherever their objects are: they refer to others across namespaces, or wait for a controller. They are
read `everywhere`, also where the rest is read in a few namespaces.
"""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Collection, Iterable
from typing import NamedTuple

from pilotage.catalogue.names import NAMESPACE
from pilotage.catalogue.reading import COMPUTED, COMPUTED_GROUPS, MADE, ONLY_IF_ASKED
from pilotage.kube import (
    ApiError,
    Client,
    Discovery,
    ErrorClass,
    Expired,
    Forbidden,
    GroupKind,
    Invalid,
    Object,
    ObjectKey,
    Resource,
    Surface,
)
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.teardown.snapshot.questions import Answer, MayI
from pilotage.teardown.snapshot.world import KindReading, World

AT_ONCE = 6
"""Kinds that are read at the same time. More connections cost more than they bring: each is a TLS handshake."""
PATIENCE_SECONDS = 0.5
"""A kind that takes longer than this makes room for the next: those of a dead API must not use up the connections."""
ANSWER_SECONDS_MAX = 5.0
"""Timeout of one chunk of a list, so that a large kind may take its time."""
METADATA_CHUNK = 5000
FULL_CHUNK = 1000
"""Fewer round trips than the usual 500, and still a bound on what is in memory at once."""
STARTS_MAX = 3
"""Attempts for a list that expires on the way."""
NAMESPACES_ONE_BY_ONE_MAX = 4
"""More than these are read by one list of all namespaces."""

_MIRRORS = {
    "events.k8s.io": ("",),
    "extensions": ("apps", "networking.k8s.io", "policy"),
    "authorization.openshift.io": ("rbac.authorization.k8s.io",),
}
"""Groups whose kinds show the objects of another group's kind of the same name, and those groups."""


class Listed(NamedTuple):
    """Result of listing one kind in one place."""

    items: list[Object]
    resource_version: str = ""
    error: ApiError | None = None
    narrowed: ApiError | None = None
    """Why it was not listed in all namespaces, where it was to be, and those that were asked for were read instead."""


async def gather(
    client: Client,
    discovery: Discovery,
    *,
    namespaces: Iterable[str] = (),
    full: Collection[GroupKind] = frozenset(),
    kinds: Collection[GroupKind] | None = None,
    everywhere: Collection[GroupKind] = frozenset(),
    cluster_scoped: bool = True,
    labels: str = "",
    now: dt.datetime | None = None,
) -> World:
    """Read what there is: of these namespaces (else of all) and, unless told otherwise, of kinds without a namespace.

    All kinds that can be listed, or just `kinds`; those in `full` with all of each object, the others their metadata.
    Those of them in `everywhere` are read in all namespaces; where that is refused, in these: see `narrowed_kinds`.
    `labels` narrows it to objects that match this selector: such a world proves nothing about others.
    What cannot be read is noted in the world, and so never raises; an ApiError is that of the discovery.
    """
    asked = tuple(dict.fromkeys(namespaces))
    surface = await discovery.surface()
    wanted = frozenset(kinds) if kinds is not None else None
    if wanted is not None and not wanted <= _served(surface):
        surface = await discovery.refresh()  # a definition may be new
    world = World(now or utc_now(), live=True, namespaces=asked)
    world.unreadable_groups = dict(surface.unreadable)
    resources = [each for each in readable(surface, wanted, frozenset(full)) if cluster_scoped or each.namespaced]
    resources.sort(key=lambda each: each.group_kind not in MADE)
    slots = asyncio.Semaphore(AT_ONCE)
    reader = _Reader(client, asked, frozenset(everywhere), labels)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_paced(slots, reader, each, full=each.group_kind in full)) for each in resources]
        for resource, task in zip(resources, tasks, strict=True):  # in this order, while others are still under way
            _take_in(world, resource, await task, full=resource.group_kind in full)
    return world


def readable(surface: Surface, kinds: frozenset[GroupKind] | None, full: frozenset[GroupKind]) -> list[Resource]:
    """The resources to list: each kind once, in the version that its group prefers, and no object under two names."""
    chosen: dict[GroupKind, Resource] = {}
    for each in surface.resources:
        kind = each.resource.group_kind
        if "list" in each.verbs and kind not in chosen and _is_meant(kind, kinds, full):
            chosen[kind] = each.resource
    return [
        resource
        for kind, resource in chosen.items()
        if kinds is not None or not any(GroupKind(group, kind.kind) in chosen for group in _MIRRORS.get(kind.group, ()))
    ]


def _is_meant(kind: GroupKind, kinds: frozenset[GroupKind] | None, full: frozenset[GroupKind]) -> bool:
    if kinds is not None:
        return kind in kinds
    if kind in COMPUTED or kind.group in COMPUTED_GROUPS:
        return False
    return kind not in ONLY_IF_ASKED or kind in full


def _served(surface: Surface) -> frozenset[GroupKind]:
    return frozenset(each.resource.group_kind for each in surface.resources)


async def _paced(slots: asyncio.Semaphore, reader: "_Reader", resource: Resource, *, full: bool) -> Listed:
    """Read one kind when it is its turn. The turn ends after a while, the reading goes on."""
    its_turn = True

    def make_room() -> None:
        nonlocal its_turn
        if its_turn:
            its_turn = False
            slots.release()

    await slots.acquire()
    timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, make_room)
    try:
        return await reader.read(resource, full=full)
    finally:
        timer.cancel()
        make_room()


def _take_in(world: World, resource: Resource, listed: Listed, *, full: bool) -> None:
    error = listed.error
    world.read_kind(
        KindReading(resource, listed.resource_version)
        if error is None
        else KindReading(resource, problem=error.message, error_class=error.error_class)
    )
    world.add_all(resource, listed.items, full=full)
    if listed.narrowed is not None:
        refused = listed.narrowed
        world.answers[_everywhere(resource)] = Answer(
            allowed=False, error_class=refused.error_class, message=refused.message
        )


def narrowed_kinds(world: World) -> list[GroupKind]:
    """The kinds that were to be read in all namespaces, and could be read in those of this world alone."""
    return [kind for kind, reading in world.kinds.items() if _everywhere(reading.resource) in world.answers]


def _everywhere(resource: Resource) -> MayI:
    """The question that a refused list of all namespaces has answered."""
    return MayI("list", resource.group, resource.plural, "")


class _Reader:
    """Reads one kind after the other. Errors of the API are part of what it returns."""

    def __init__(
        self, client: Client, namespaces: tuple[str, ...], everywhere: frozenset[GroupKind], labels: str
    ) -> None:
        self._client = client
        self._namespaces = namespaces
        self._everywhere = everywhere
        self._labels = labels

    async def read(self, resource: Resource, *, full: bool) -> Listed:
        """One kind, in all the places that were asked for."""
        if not resource.namespaced or not self._namespaces:
            listed = await self._list(resource, "", full=full)
            if isinstance(listed.error, Forbidden) and resource.group_kind == NAMESPACE:
                return await self._named_namespaces(resource, listed, full=full)
            return listed
        if resource.group_kind in self._everywhere:
            listed = await self._list(resource, "", full=full)
            if listed.error is None:
                return listed
            # Not allowed; or one object somewhere that nobody can convert: what was asked for may be read all the same.
            here = _together([await self._list(resource, each, full=full) for each in self._namespaces])
            return here._replace(narrowed=listed.error if here.error is None else None)
        if len(self._namespaces) > NAMESPACES_ONE_BY_ONE_MAX:
            listed = await self._list(resource, "", full=full)
            if not isinstance(listed.error, Forbidden):
                return listed._replace(items=[obj for obj in listed.items if obj.meta.namespace in self._namespaces])
        return _together([await self._list(resource, each, full=full) for each in self._namespaces])

    async def _list(self, resource: Resource, namespace: str, *, full: bool) -> Listed:
        """One kind in one place, begun anew where it expired on the way."""
        error: ApiError | None = None
        for _ in range(STARTS_MAX):
            try:
                return await self._pages(resource, namespace, full=full)
            except Expired as expired:
                error = expired
            except ApiError as refused:
                return Listed([], error=refused)
            except ValueError as nonsense:  # a namespace that could not be one
                return Listed([], error=Invalid(str(nonsense)))
        return Listed([], error=error)

    async def _pages(self, resource: Resource, namespace: str, *, full: bool) -> Listed:
        items: list[Object] = []
        version = ""
        pages = self._client.pages(
            resource,
            namespace,
            labels=self._labels,
            metadata_only=not full,
            chunk=FULL_CHUNK if full else METADATA_CHUNK,
        )
        async with in_time() as deadline:
            async for page in pages:
                items += page.items
                version = page.resource_version
                if page.continue_token:
                    deadline.reschedule(monotonic() + ANSWER_SECONDS_MAX)
        return Listed(items, version)

    async def _named_namespaces(self, resource: Resource, listed: Listed, *, full: bool) -> Listed:
        """Get the named namespaces: a user who may not list them may often get one. The kind stays unread."""
        for name in self._namespaces:
            try:
                async with in_time():
                    got = await self._client.get(resource, ObjectKey("", name), metadata_only=not full)
            except ApiError:
                continue
            listed.items.append(got)
        return listed


def _together(parts: list[Listed]) -> Listed:
    """One kind from several places: what one of them refused makes the kind unread; what was seen stays seen."""
    items = [obj for part in parts for obj in part.items]
    errors = [part.error for part in parts if part.error is not None]
    return Listed(items, parts[0].resource_version, errors[0] if errors else None)


@contextlib.asynccontextmanager
async def in_time() -> AsyncIterator[asyncio.Timeout]:
    """NoAnswerInTime when what is inside takes too long."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX) as deadline:
            yield deadline
    except TimeoutError:
        raise NoAnswerInTime(f"it did not answer within {ANSWER_SECONDS_MAX:.0f} s") from None


class NoAnswerInTime(ApiError):
    """Whoever serves the kind takes too long."""

    error_class = ErrorClass.UNAVAILABLE
