"""What a person types, and the objects that are meant by it: as kubectl would understand it, live or in a dump.

Words are ``KIND/NAME`` (any number of them) or ``KIND[,KIND…] [NAME…]``. A kind is a plural, a singular, a short name,
in any case, with ``.group`` or ``.version.group`` behind it where it must be told from another, or a category such as
``all``. Beside words there are manifests (``-f``) and label selectors (``-l``).
"""

from __future__ import annotations

import asyncio
import difflib
from typing import TYPE_CHECKING, NamedTuple

from pilotage.kube import Absent, ApiError, LabelSelector, ObjectKey, SelectorError, UnknownKind
from pilotage.teardown.dump import definitions, manifests
from pilotage.teardown.gather import gather, readable
from pilotage.teardown.world import GroupKind, Item, KindReading, Name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pilotage.kube import ApiResource, Client, Discovery, Json, Resource, Surface
    from pilotage.teardown.dump import Source
    from pilotage.teardown.world import World

AT_ONCE = 8
NEAR_MAX = 3


class TargetError(ValueError):
    """What was typed means nothing here. The message says what was wrong, and what would be right."""


class Targets(NamedTuple):
    """The objects that are meant, each once and whole, and the names under which there was nothing."""

    found: list[Item]
    absent: list[Name]
    unread: tuple[KindReading, ...] = ()
    """Kinds that a selector was to search, and that could not be read: they may hold more."""


class Words(NamedTuple):
    """Words, taken apart: pairs of kind and name; or kinds alone, where a selector chooses."""

    named: list[tuple[str, str]]
    kinds: list[str]


def parse(words: Sequence[str]) -> Words:
    """Take words apart, as kubectl does. TargetError where they are of neither form."""
    words = [word for word in words if word]
    if not words:
        return Words([], [])
    if any("/" in word for word in words):
        return Words([_pair(word, words) for word in words], [])
    kinds = [kind for kind in words[0].split(",") if kind]
    names = words[1:]
    return Words([(kind, name) for kind in kinds for name in names], [] if names else kinds)


def _pair(word: str, words: Sequence[str]) -> tuple[str, str]:
    kind, slash, name = word.partition("/")
    if not slash:
        example = f"{words[0].partition('/')[0]}/{word}"
        raise TargetError(f"{word!r} has no kind, while the other words have one: write KIND/NAME, such as {example}.")
    if not kind or not name or "/" in name:
        raise TargetError(f"{word!r} is not KIND/NAME: write it as in deployment/web.")
    return kind, name


# Live


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
            raise TargetError(_NAME_AND_SELECTOR)
        return await search.selected(parsed.kinds, selector, all_namespaces=all_namespaces)
    if parsed.kinds:
        raise TargetError(_no_names(parsed.kinds))
    wanted = [(await search.kind(kind), name) for kind, name in parsed.named]
    by_word = await search.get([(each.resource, search.key(each.resource, name)) for each, name in wanted])
    by_file = await search.documents(manifests(files))
    if by_word.absent and not absent_ok:
        raise TargetError("\n".join([await search.missing(name) for name in by_word.absent]))
    found = {item.uid: item for item in (*by_word.found, *by_file.found)}
    return Targets([*found.values()], by_word.absent + by_file.absent)


class _Live:
    def __init__(self, client: Client, discovery: Discovery, namespace: str) -> None:
        self._client = client
        self._discovery = discovery
        self._namespace = namespace

    def key(self, resource: Resource, name: str, namespace: str = "") -> ObjectKey:
        """Where the object is; one without a namespace is where it is, whatever was given."""
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
            GroupKind(each.resource.group, each.resource.kind): each.resource
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
                    f"A {kind} in a manifest has generateName and no name: what was made of it cannot be told by it. "
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
        """What a selector matches, of these kinds or of all that have a namespace."""
        parse_selector(selector)
        surface = await self._discovery.surface()
        named = [resource for word in words for resource in await self.kinds(word)]
        resources = named or [each for each in readable(surface, None, frozenset()) if each.namespaced]
        kinds = frozenset(GroupKind(each.group, each.kind) for each in resources)
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
        """That there is no such object, and what there is of a similar name."""
        resource = await self._served(name.group, name.kind)
        names: list[str] = []
        if resource is not None:
            try:
                listed = await self._client.list(resource, name.namespace, metadata_only=True)
                names = [obj.meta.name for obj in listed.items]
            except ApiError:
                pass  # a suggestion less
        return _missing(name, names)


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
            raise TargetError(f"{kind}.{group} cannot be read ({version}: {why}). Mend that API service first.")
    return None


# In a dump


def resolve_in(
    world: World,
    words: Sequence[str],
    *,
    namespace: str = "",
    all_namespaces: bool = False,
    selector: str = "",
) -> Targets:
    """The objects of a dump that are meant, through the kinds that are in it.

    A name without a namespace is looked for in all of them, and must be in one only. Raises TargetError.
    """
    parsed = parse(words)
    dump = _Dump(world)
    if selector:
        if parsed.named:
            raise TargetError(_NAME_AND_SELECTOR)
        matches = parse_selector(selector).matches
        kinds = {kind for word in parsed.kinds for kind in dump.kinds(word)} or set(world.kinds)
        place = "" if all_namespaces else namespace
        return Targets(
            [
                item
                for item in world
                if item.group_kind in kinds
                and matches(item.meta.labels)
                and (not place or item.meta.namespace in ("", place))
            ],
            [],
        )
    if parsed.kinds:
        raise TargetError(_no_names(parsed.kinds))
    found = [dump.named(kind, name, namespace) for kind, name in parsed.named]
    return Targets([*dict.fromkeys(found)], [])


class _Dump:
    def __init__(self, world: World) -> None:
        self._world = world
        self._names: dict[GroupKind, set[str]] = {}
        self._categories: dict[str, list[GroupKind]] = {"all": [kind for kind in _ALL if kind in world.kinds]}
        defined = definitions(world)
        for kind, reading in world.kinds.items():
            names = {reading.resource.plural, kind.kind.lower(), *_SHORT_NAMES.get(kind, "").split()}
            if kind in defined:
                names |= {defined[kind].singular, *defined[kind].short_names}
                for category in defined[kind].categories:
                    self._categories.setdefault(category, []).append(kind)
            self._names[kind] = names

    def kinds(self, word: str) -> list[GroupKind]:
        """The kinds a word means: all of a category, if it is one."""
        return self._categories.get(word.lower()) or [self._kind(word)]

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
            raise TargetError(_missing(Name(*kind, namespace, name), sorted(nearby)))
        if len(found) > 1:
            raise TargetError(f"There are several: {_listed([str(item) for item in found])}. Say which with -n.")
        return found[0]

    def _kind(self, word: str) -> GroupKind:
        plain, _, rest = word.partition(".")
        for kind in sorted(self._names, key=_foreignness):
            resource = self._world.kinds[kind].resource
            narrowed = rest.lower() in ("", kind.group, f"{resource.version}.{kind.group}")
            if plain.lower() in self._names[kind] and narrowed:
                return kind
        near = _near_kinds(word, map(sorted, self._names.values()))
        hint = f"Did you mean {_listed(near)}?" if near else "It can be explained only if it is in the dump."
        raise TargetError(f"The dump has no kind {word!r}. {hint}")


def _foreignness(kind: GroupKind) -> int:
    """The kinds of Kubernetes itself come first, as in its own order."""
    if "." not in kind.group:
        return 1 if kind.group else 0
    return 2 if kind.group.endswith(".k8s.io") else 3


_SHORT_NAMES = {
    GroupKind(*kind): names
    for kind, names in {
        ("", "ConfigMap"): "cm",
        ("", "Endpoints"): "ep",
        ("", "Event"): "ev",
        ("", "LimitRange"): "limits",
        ("", "Namespace"): "ns",
        ("", "Node"): "no",
        ("", "PersistentVolume"): "pv",
        ("", "PersistentVolumeClaim"): "pvc",
        ("", "Pod"): "po",
        ("", "ReplicationController"): "rc",
        ("", "ResourceQuota"): "quota",
        ("", "Service"): "svc",
        ("", "ServiceAccount"): "sa",
        ("apiextensions.k8s.io", "CustomResourceDefinition"): "crd crds",
        ("apps", "DaemonSet"): "ds",
        ("apps", "Deployment"): "deploy",
        ("apps", "ReplicaSet"): "rs",
        ("apps", "StatefulSet"): "sts",
        ("autoscaling", "HorizontalPodAutoscaler"): "hpa",
        ("batch", "CronJob"): "cj",
        ("certificates.k8s.io", "CertificateSigningRequest"): "csr",
        ("networking.k8s.io", "Ingress"): "ing",
        ("networking.k8s.io", "NetworkPolicy"): "netpol",
        ("policy", "PodDisruptionBudget"): "pdb",
        ("scheduling.k8s.io", "PriorityClass"): "pc",
        ("storage.k8s.io", "StorageClass"): "sc",
    }.items()
}
"""A dump does not say them; for kinds of one's own, its CustomResourceDefinitions do."""
_ALL = tuple(
    GroupKind(group, kind)
    for group, kinds in {
        "": "Pod ReplicationController Service",
        "apps": "DaemonSet Deployment ReplicaSet StatefulSet",
        "autoscaling": "HorizontalPodAutoscaler",
        "batch": "CronJob Job",
    }.items()
    for kind in kinds.split()
)


# What both say

_NAME_AND_SELECTOR = "Names and a selector exclude each other: leave out -l, or the names and files."


def _no_names(kinds: list[str]) -> str:
    return f"Which {', '.join(kinds)}? Add a name ({kinds[0]}/NAME), or a selector (-l)."


def _missing(name: Name, names: Iterable[str]) -> str:
    text = f"There is no {name}."
    near = difflib.get_close_matches(name.name, list(names), NEAR_MAX)
    if near:
        return f"{text} There is {_listed(near)}."
    return f"{text} Look in another namespace with -n." if name.namespace else text


def unknown_kind(word: str, surface: Surface) -> str:
    """That no kind is called so, and what is called similarly."""
    text = f"The server has no kind {word!r}."
    near = _near_kinds(word, ([each.resource.plural, each.singular, *each.short_names] for each in surface.resources))
    if near:
        text += f" Did you mean {_listed(near)}?"
    if surface.unreadable:
        text += f" (These could not be asked: {', '.join(sorted(surface.unreadable))}.)"
    elif not near:
        text += " `kubectl api-resources` lists those it has."
    return text


def _near_kinds(word: str, names: Iterable[list[str]]) -> list[str]:
    known = sorted({name for each in names for name in each})
    return difflib.get_close_matches(word.partition(".")[0].lower(), known, NEAR_MAX)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def parse_selector(selector: str) -> LabelSelector:
    """A selector as it is typed. TargetError where it is none."""
    try:
        return LabelSelector.parse(selector)
    except SelectorError as error:
        raise TargetError(f"-l {selector}: {error}.") from error
