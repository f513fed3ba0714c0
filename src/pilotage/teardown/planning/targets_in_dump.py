"""The objects of a dump that a person means. A dump has no discovery: kinds are known by what is in it."""

from collections.abc import Sequence

from pilotage.catalogue.registry import known
from pilotage.kube import GroupKind
from pilotage.teardown.planning.arguments import (
    NAME_AND_SELECTOR,
    TargetError,
    Targets,
    listed,
    missing_name,
    near_kinds,
    no_names,
    parse,
    parse_selector,
)
from pilotage.teardown.snapshot.dump import definitions
from pilotage.teardown.snapshot.world import Item, Name, World

KINDS_NAMED_MAX = 12


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
            raise TargetError(NAME_AND_SELECTOR)
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
        raise TargetError(no_names(parsed.kinds))
    found = [dump.named(kind, name, namespace) for kind, name in parsed.named]
    return Targets([*dict.fromkeys(found)], [])


class _Dump:
    def __init__(self, world: World) -> None:
        self._world = world
        self._names: dict[GroupKind, set[str]] = {}
        self._categories: dict[str, list[GroupKind]] = {"all": [kind for kind in world.kinds if known(kind).in_all]}
        defined = definitions(world)
        for kind, reading in world.kinds.items():
            names = {reading.resource.plural, kind.kind.lower(), *known(kind).short_names}
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
