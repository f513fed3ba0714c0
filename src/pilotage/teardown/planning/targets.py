"""The objects of a live cluster that a person means: by words, manifests or a selector, as kubectl would find them."""

import asyncio
from collections.abc import Iterable, Sequence

from pilotage.kube import (
    Absent,
    ApiError,
    ApiResource,
    Client,
    Discovery,
    Json,
    ObjectKey,
    Resource,
    Surface,
    UnknownKind,
)
from pilotage.teardown.planning.arguments import (
    NAME_AND_SELECTOR,
    TargetError,
    Targets,
    missing_name,
    no_names,
    parse,
    parse_selector,
    unknown_kind,
)
from pilotage.teardown.snapshot.dump import Source, manifests
from pilotage.teardown.snapshot.gather import gather, readable
from pilotage.teardown.snapshot.world import Item, Name

AT_ONCE = 8
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


async def resolve(
    client: Client,
    discovery: Discovery,
    words: Sequence[str] = (),
    *,
    namespace: str = "",
    all_namespaces: bool = False,
    files: Iterable[Source] = (),
    selector: str = "",
    absent_ok: bool = False,
) -> Targets:
    """The objects of a live cluster that are meant, read whole.

    Without a namespace, that of the kubeconfig's context. Manifests name objects that may be gone; words must name
    objects that are there, unless `absent_ok`. A selector searches the kinds that the words name, else all of them.
    Raises TargetError, DumpError for manifests that cannot be read, and ApiError where the server refuses.
    """
    parsed = parse(words)
    search = _Live(client, discovery, namespace or client.namespace)
    files = tuple(files)
    if selector:
        if parsed.named or files:
            raise TargetError(NAME_AND_SELECTOR)
        return await search.selected(parsed.kinds, selector, all_namespaces=all_namespaces)
    if parsed.kinds:
        raise TargetError(no_names(parsed.kinds))
    wanted = [(await search.kind(kind), name) for kind, name in parsed.named]
    by_word = await search.get([(each.resource, search.key(each.resource, name)) for each, name in wanted])
    by_file = await search.documents(manifests(files))
    if by_word.absent and not absent_ok:
        raise TargetError(" ".join([await search.missing(name) for name in by_word.absent]))
    found = {item.uid: item for item in (*by_word.found, *by_file.found)}
    return Targets([*found.values()], by_word.absent + by_file.absent)


class _Live:
    def __init__(self, client: Client, discovery: Discovery, namespace: str) -> None:
        self._client = client
        self._discovery = discovery
        self._namespace = namespace

    def key(self, resource: Resource, name: str, namespace: str = "") -> ObjectKey:
        """Name of the object; a cluster-scoped one has no namespace, whatever was given."""
        return ObjectKey((namespace or self._namespace) if resource.namespaced else "", name)

    async def kind(self, word: str) -> ApiResource:
        """The kind a word means."""
        try:
            return await self._discovery.find(word)
        except UnknownKind:
            raise TargetError(unknown_kind(word, await self._discovery.surface())) from None

    async def kinds(self, word: str) -> list[Resource]:
        """The kinds a word means: all of a category, if it is one."""
        surface = await self._discovery.surface()
        members = {
            each.resource.group_kind: each.resource
            for each in reversed(surface.resources)
            if word.lower() in each.categories
        }
        return [*reversed(members.values())] or [(await self.kind(word)).resource]

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

    async def documents(self, documents: list[Json]) -> Targets:
        """The live objects that manifests name. What is of a kind that is not served any more is not there."""
        wanted: list[tuple[Resource, ObjectKey]] = []
        absent: list[Name] = []
        for document in documents:
            meta = document["metadata"]
            group = document["apiVersion"].rpartition("/")[0]
            kind, name = document["kind"], meta.get("name")
            if not name:
                raise TargetError(
                    f"A {kind} in a manifest has generateName and no name, so the object that it created is not known. "
                    "Use its name, or a selector (-l)."
                )
            resource = await self._served(group, kind)
            if resource is None:
                absent.append(Name(group, kind, meta.get("namespace", ""), name))
            else:
                wanted.append((resource, self.key(resource, name, meta.get("namespace", ""))))
        got = await self.get(wanted)
        return Targets(got.found, absent + got.absent)

    async def _served(self, group: str, kind: str) -> Resource | None:
        return await served_kind(self._discovery, group, kind)

    async def selected(self, words: list[str], selector: str, *, all_namespaces: bool) -> Targets:
        """Objects that a selector matches, of these kinds or of all namespaced ones."""
        parse_selector(selector)
        surface = await self._discovery.surface()
        named = [resource for word in words for resource in await self.kinds(word)]
        resources = named or [each for each in readable(surface, None, frozenset()) if each.namespaced]
        kinds = frozenset(each.group_kind for each in resources)
        world = await gather(
            self._client,
            self._discovery,
            namespaces=() if all_namespaces else (self._namespace,),
            full=kinds,
            kinds=kinds,
            labels=selector,
        )
        return Targets([*world], [], tuple(reading for reading in world.kinds.values() if reading.problem))

    async def missing(self, name: Name) -> str:
        """Message for an object that does not exist, with similar names."""
        if name.namespace and await self._is_absent(ObjectKey("", name.namespace)):
            return f"There is no {name}: there is no namespace {name.namespace}. Look in another one with -n."
        resource = await self._served(name.group, name.kind)
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
            await self._client.get(_NAMESPACES, namespace, metadata_only=True)
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
