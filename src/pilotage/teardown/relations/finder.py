"""Objects that a value of a row's field means, whether they exist or not."""

import re
from collections.abc import Callable, Iterable, Iterator

from pilotage.catalogue.relation import (
    ANY_NAMESPACE,
    OWN_GROUP,
    ByName,
    ByReference,
    BySelector,
    NameForm,
    Target,
    TargetKind,
)
from pilotage.kube import GroupKind, Json
from pilotage.teardown.relations.compiled import below
from pilotage.teardown.relations.labels import LabelIndex, Labels, understand
from pilotage.teardown.snapshot.world import Item, Name, World

Meant = tuple[Name, "Item | None"]
_VOLUME_URI = re.compile(r"pvc://([^/]+)")
_NUMBERED = re.compile(r"(.+)-[0-9]+")
_POD = TargetKind("", "Pod")


class Finder:
    """Finds targets in one world. What it needs to look up is indexed when first needed."""

    def __init__(self, world: World, templates: Iterable[tuple[Item, Labels]], *, among: Item | None = None) -> None:
        """`templates` are the labels that workloads give their pods. `among`: selectors are tried on this one alone."""
        self._world = world
        self._among = among
        self._templates = list(templates)
        self._labels: dict[tuple[TargetKind, ...], LabelIndex] = {}
        self._numbered: dict[GroupKind, dict[tuple[str, str], list[Item]]] = {}

    def meant(self, source: Item, target: Target, value: object, parts: Callable[[], Json]) -> Iterable[Meant]:
        """All that a value means. `parts` gives the top of the source, for what stands elsewhere in it."""
        if type(target) is ByName:
            return self._named(source, target, value)
        if type(target) is ByReference:
            return self._referred(source, target, value)
        assert type(target) is BySelector
        return self._selected(source, target, value, parts)

    # Names of a fixed kind

    def _named(self, source: Item, target: ByName, value: object) -> list[Meant]:
        namespace = source.meta.namespace
        if isinstance(value, dict):
            elsewhere = below(value, target.namespace) if target.namespace else None
            if isinstance(elsewhere, str) and elsewhere:
                namespace = elsewhere
            value = below(value, target.name)
        if not isinstance(value, str) or not value:
            return []
        if target.form is not NameForm.PLAIN:
            if target.form is NameForm.NUMBERED:
                stem = f"{value}-{source.meta.name}"
                return [each for kind in target.kinds for each in self._numbers(kind, namespace, stem)]
            place = _place(target.form, namespace, value)
            if place is None:
                return []
            namespace, value = place
        first: Name | None = None
        for kind in target.kinds:
            if kind.namespaced and not namespace:
                continue  # a namespaced object, named from outside of all namespaces: nobody can say which
            name = self._name(source, kind, namespace, value)
            item = self._world.find(*name)
            if item is not None:
                return [(name, item)]
            first = first or name
        return [(first, None)] if first else []

    def _name(self, source: Item, kind: TargetKind, namespace: str, name: str) -> Name:
        group = self._own_group(source, kind.kind) if kind.group == OWN_GROUP else kind.group
        return Name(group, kind.kind, namespace if kind.namespaced else "", name)

    def _own_group(self, source: Item, kind: str) -> str:
        group = source.resource.group
        while "." in group:
            if GroupKind(group, kind) in self._world.kinds or self._world.of(group, kind):
                return group
            group = group.partition(".")[2]
        return source.resource.group

    def _numbers(self, kind: TargetKind, namespace: str, stem: str) -> Iterator[Meant]:
        group_kind = GroupKind(kind.group, kind.kind)
        index = self._numbered.get(group_kind)
        if index is None:
            index = self._numbered[group_kind] = {}
            for item in self._world.of(kind.group, kind.kind):
                if match := _NUMBERED.fullmatch(item.meta.name):
                    index.setdefault((item.meta.namespace, match[1]), []).append(item)
        for item in index.get((namespace, stem), ()):
            yield item.name, item

    # References that say their kind

    def _kind(self, source: Item, target: ByReference, value: Json) -> GroupKind | None:
        kind = below(value, target.kind)
        group = below(value, target.group) if target.group else None
        if group is not None and not isinstance(group, str):
            return None
        if target.group.endswith("apiVersion") and isinstance(group, str):
            # A version without a group is of the core; a reference without a version is of the default's group.
            group = group.rpartition("/")[0] if group else None
        if not kind:
            kind = target.default.kind if target.default else None
        if not isinstance(kind, str):
            return None
        if group is None:
            group = target.default.group if target.default else ""
        if group == OWN_GROUP:
            group = self._own_group(source, kind)
        return GroupKind(group, kind)

    def _referred(self, source: Item, target: ByReference, value: object) -> list[Meant]:
        if not isinstance(value, dict):
            return []
        kind, name = self._kind(source, target, value), below(value, target.name)
        if kind is None or not isinstance(name, str) or not name:
            return []
        namespace = below(value, target.namespace) if target.namespace else None
        if not isinstance(namespace, str) or not namespace:
            namespace = source.meta.namespace
        namespaced = self._namespaced(kind, target.default)
        if namespaced is None:  # nobody knows its scope: wherever it is, or else where it would be if it had one
            item = self._world.find(*kind, namespace, name) or self._world.find(*kind, "", name)
            return [(item.name if item else Name(*kind, namespace, name), item)]
        if namespaced and not namespace:
            return []
        meant = Name(kind.group, kind.kind, namespace if namespaced else "", name)
        return [(meant, self._world.find(*meant))]

    def _namespaced(self, kind: GroupKind, default: TargetKind | None) -> bool | None:
        reading = self._world.kinds.get(kind)
        if reading is not None:
            return reading.resource.namespaced
        if default is not None and (default.group, default.kind) == kind:
            return default.namespaced
        return None

    # Selectors

    def _selected(self, source: Item, target: BySelector, value: object, parts: Callable[[], Json]) -> list[Meant]:
        kinds = target.kinds
        if target.reference is not None:
            kind = self._kind(source, target.reference, value) if isinstance(value, dict) else None
            if kind is None:
                return []
            kinds, value = (TargetKind(*kind),), below(value, target.selector)
        wish = understand(value, plain=target.plain)
        if wish is None:
            return []
        index = self._index(kinds)
        places = self._namespaces(source, target, index, parts)
        return [(item.name, item) for place in places for item in index.select(place, wish) if item is not source]

    def _namespaces(
        self, source: Item, target: BySelector, index: LabelIndex, parts: Callable[[], Json]
    ) -> Iterable[str]:
        own = source.meta.namespace
        if target.reference is not None:  # of a kind with whatever scope
            return dict.fromkeys((own, "")) if own else index.namespaces
        if not target.namespaces:
            return [own]
        if target.namespaces == ANY_NAMESPACE:
            return index.namespaces
        chosen = below(parts(), target.namespaces)
        if not isinstance(chosen, dict):
            return [own]
        if chosen.get("any") is True:
            return index.namespaces
        names = chosen.get("matchNames")
        listed = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        return list(dict.fromkeys(listed)) or [own]

    def _index(self, kinds: tuple[TargetKind, ...]) -> LabelIndex:
        index = self._labels.get(kinds)
        if index is None:
            labelled = [(item, item.meta.labels) for kind in kinds for item in self._of(kind)]
            if _POD in kinds:
                labelled += self._templates
            index = self._labels[kinds] = LabelIndex(labelled)
        return index

    def _of(self, kind: TargetKind) -> list[Item]:
        if self._among is None:
            return self._world.of(kind.group, kind.kind)
        return [self._among] if self._among.group_kind == (kind.group, kind.kind) else []


def _place(form: NameForm, namespace: str, text: str) -> tuple[str, str] | None:
    """Namespace and name of a name that is written in some form; None where it means nothing in the cluster."""
    match form:
        case NameForm.SLASHED:
            before, slash, name = text.rpartition("/")
            return (before if slash else namespace, name) if name and "/" not in before else None
        case NameForm.HOST:
            return _service(namespace, text)
        case NameForm.VOLUME_URI:
            match = _VOLUME_URI.match(text)
            return (namespace, match[1]) if match else None
        case _:
            return namespace, text


def _service(namespace: str, host: str) -> tuple[str, str] | None:
    """The Service that a host name means. With dots it means one only where it says ``svc`` behind the namespace."""
    host = host.rpartition("://")[2].partition("/")[0].partition(":")[0]
    parts = host.split(".")
    if not host or "*" in host:
        return None
    if len(parts) == 1:
        return namespace, host
    return (parts[1], parts[0]) if len(parts) > 2 and parts[2] == "svc" else None
