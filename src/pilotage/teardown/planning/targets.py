"""The objects that a person means by words: on a live cluster, as kubectl would find them, or in a dump."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pilotage.catalogue.registry import known
from pilotage.kube import (
    NAMESPACES,
    Absent,
    ApiError,
    Client,
    Discovery,
    GroupKind,
    ObjectKey,
    Resource,
    Surface,
)
from pilotage.teardown.planning.arguments import (
    TargetError,
    find_kind,
    listed,
    missing_name,
    near_kinds,
    no_names,
    parse,
)
from pilotage.teardown.snapshot.dump import definitions
from pilotage.teardown.snapshot.world import Item, Name, World

AT_ONCE = 8


class Targets(NamedTuple):
    """The objects that are meant, each once and whole, and the names under which there was nothing."""

    found: list[Item]
    absent: list[Name]


async def resolve(
    client: Client, discovery: Discovery, words: Sequence[str], *, namespace: str = "", absent_ok: bool = False
) -> Targets:
    """The objects of a live cluster that are meant, read whole.

    Without a namespace, that of the kubeconfig's context. Words must name objects that are there, unless `absent_ok`.
    Raises TargetError, and ApiError where the server refuses.
    """
    search = _Live(client, discovery, namespace or client.namespace)
    wanted = [(await find_kind(discovery, kind), name) for kind, name in _named(words)]
    targets = await search.get([(resource, search.key(resource, name)) for resource, name in wanted])
    if targets.absent and not absent_ok:
        raise TargetError(" ".join([await search.missing(name) for name in targets.absent]))
    return targets


def _named(words: Sequence[str]) -> list[tuple[str, str]]:
    """Kinds and names. TargetError for kinds alone."""
    parsed = parse(words)
    if parsed.kinds:
        raise TargetError(no_names(parsed.kinds))
    return parsed.named


class _Live:
    def __init__(self, client: Client, discovery: Discovery, namespace: str) -> None:
        self._client = client
        self._discovery = discovery
        self._namespace = namespace

    def key(self, resource: Resource, name: str) -> ObjectKey:
        """Name of the object; a cluster-scoped one has no namespace, whatever was given."""
        return ObjectKey(self._namespace if resource.namespaced else "", name)

    async def get(self, wanted: Iterable[tuple[Resource, ObjectKey]]) -> Targets:
        """All of these objects, side by side."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(resource: Resource, key: ObjectKey) -> Item | Name:
            async with slots:
                try:
                    return Item(resource, await self._client.get(resource, key), full=True)
                except Absent:
                    return Name(resource.group, resource.kind, key.namespace, key.name)
                except ValueError as error:  # it could not even be a name
                    raise TargetError(f"{resource.kind.lower()}/{key.name}: {error}.") from error

        results = await asyncio.gather(*(one(*each) for each in dict.fromkeys(wanted)))
        return Targets(
            [each for each in results if isinstance(each, Item)], [each for each in results if isinstance(each, Name)]
        )

    async def missing(self, name: Name) -> str:
        """Message for an object that does not exist, with similar names."""
        if name.namespace and await self._is_absent(ObjectKey("", name.namespace)):
            return f"There is no {name}: there is no namespace {name.namespace}. Look in another one with -n."
        resource = await served_kind(self._discovery, name.group, name.kind)
        names: list[str] = []
        if resource is not None:
            try:
                listed = await self._client.list(resource, name.namespace, metadata_only=True)
                names = [obj.meta.name for obj in listed.items]
            except ApiError:
                pass  # a suggestion less
        return missing_name(name, names)

    async def _is_absent(self, namespace: ObjectKey) -> bool:
        """Whether there certainly is no such namespace."""
        try:
            await self._client.get(NAMESPACES, namespace, metadata_only=True)
        except Absent:
            return True
        except ApiError:
            pass  # who may not look does not know
        return False


async def served_kind(discovery: Discovery, group: str, kind: str) -> Resource | None:
    """The resource of a kind in the version its group prefers, or None if the server has no such kind."""
    served = _kind_of(await discovery.surface(), group, kind)
    return served or _kind_of(await discovery.refresh(), group, kind)


def _kind_of(surface: Surface, group: str, kind: str) -> Resource | None:
    for each in surface.resources:
        if (each.resource.group, each.resource.kind) == (group, kind):
            return each.resource
    for version, why in surface.unreadable.items():
        if version.rpartition("/")[0] == group:
            raise TargetError(f"{kind}.{group} cannot be read ({version}: {why}). Repair that APIService first.")
    return None


KINDS_NAMED_MAX = 12


def resolve_in(world: World, words: Sequence[str], *, namespace: str = "") -> Targets:
    """The objects of a dump that are meant, through the kinds that are in it.

    A name without a namespace is looked for in all of them, and must be in one only. Raises TargetError.
    """
    dump = _Dump(world)
    found = [dump.named(kind, name, namespace) for kind, name in _named(words)]
    return Targets([*dict.fromkeys(found)], [])


class _Dump:
    """The kinds of a dump, which has no discovery: they are known by what is in it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._names: dict[GroupKind, set[str]] = {}
        defined = definitions(world)
        for kind, reading in world.kinds.items():
            names = {reading.resource.plural, kind.kind.lower(), *known(kind).short_names}
            if kind in defined:
                names |= {defined[kind].singular, *defined[kind].short_names}
            self._names[kind] = names

    def named(self, word: str, name: str, namespace: str) -> Item:
        """The one object of this kind and name."""
        kind = self._kind(word)
        there = self._world.of(*kind)
        found = [
            item
            for item in there
            if item.meta.name == name and (not namespace or item.meta.namespace in ("", namespace))
        ]
        if not found:
            nearby = {item.meta.name for item in there if not namespace or item.meta.namespace in ("", namespace)}
            raise TargetError(missing_name(Name(*kind, namespace, name), sorted(nearby)))
        if len(found) > 1:
            raise TargetError(f"There are several: {listed([str(item) for item in found])}. Say which with -n.")
        return found[0]

    def _kind(self, word: str) -> GroupKind:
        plain, _, rest = word.partition(".")
        for kind in sorted(self._names, key=_foreignness):
            resource = self._world.kinds[kind].resource
            narrowed = rest.lower() in ("", kind.group, f"{resource.version}.{kind.group}")
            if plain.lower() in self._names[kind] and narrowed:
                return kind
        near = near_kinds(word, map(sorted, self._names.values()))
        there = sorted({kind.kind.lower() for kind in self._names})
        hint = f"Did you mean {listed(near)}?" if near else f"It has {', '.join(there[:KINDS_NAMED_MAX])}"
        hint += "" if near else ", ..." if len(there) > KINDS_NAMED_MAX else "."
        raise TargetError(f"The dump has no kind {word!r}. {hint}")


def _foreignness(kind: GroupKind) -> int:
    """The kinds of Kubernetes itself come first, as in its own order."""
    if "." not in kind.group:
        return 1 if kind.group else 0
    return 2 if kind.group.endswith(".k8s.io") else 3
