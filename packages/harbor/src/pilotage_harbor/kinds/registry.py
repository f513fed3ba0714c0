"""Registry of the served kinds: the built-in ones, and those of the CustomResourceDefinitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pilotage_harbor.kinds import Kind

_VERSION = re.compile(r"v(?P<major>[1-9]\d*)((?P<stage>alpha|beta)(?P<minor>[1-9]\d*))?")


class Registry:
    """Kinds by where they are served, and by what objects call themselves."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.changes = 0
        """Grows with every change: what is made from the registry can be kept until then."""
        self._served: dict[tuple[str, str], dict[str, Kind]] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self._custom: dict[str, list[Kind]] = {}
        self._storages: dict[str, Kind] | None = None
        self._ended: list[Callable[[Kind], None]] = []
        for kind in kinds:
            self._add(kind)
        self._builtin_groups = frozenset(group for group, _ in self._served)

    def __iter__(self) -> Iterator[Kind]:
        for served in self._served.values():
            yield from served.values()

    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, the preferred one first."""
        groups: dict[str, list[str]] = {}
        for group, version in self._served:
            groups.setdefault(group, []).append(version)
        for versions in groups.values():
            versions.sort(key=_precedence, reverse=True)
        return groups

    def version(self, group: str, version: str) -> dict[str, Kind] | None:
        """All that one version of a group serves, by plural; None if it serves nothing."""
        return self._served.get((group, version))

    def is_builtin(self, group: str) -> bool:
        """Whether Kubernetes itself has kinds in this group."""
        return group in self._builtin_groups

    def kind(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind that is served under a path."""
        served = self._served.get((group, version))
        return served.get(plural) if served is not None else None

    def of(self, api_version: str, kind: str) -> Kind | None:
        """The kind of objects with this apiVersion and kind."""
        return self._by_kind.get((api_version, kind))

    def storage(self, storage: str) -> Kind | None:
        """One kind of a storage: the one whose objects it holds, where several versions share it."""
        if self._storages is None:
            self._storages = {}
            for kind in self:
                if kind.to_storage is None or kind.storage not in self._storages:
                    self._storages[kind.storage] = kind
        return self._storages.get(storage)

    def on_end(self, listener: Callable[[Kind], None]) -> None:
        """Call this for every kind that is no longer served, or served otherwise from now on."""
        self._ended.append(listener)

    def serve_custom(self, name: str, kinds: list[Kind]) -> None:
        """Serve these for a CustomResourceDefinition, instead of what it served before."""
        before = self._custom.pop(name, [])
        self._storages = None
        for kind in before:
            served = self._served[kind.group, kind.version]
            del served[kind.plural]
            if not served:
                del self._served[kind.group, kind.version]
            self._by_kind.pop((kind.api_version, kind.kind), None)
        for kind in kinds:
            self._add(kind)
        if kinds:
            self._custom[name] = kinds
        self.changes += 1
        for kind in before:
            for listener in self._ended:
                listener(kind)

    def custom(self, name: str) -> list[Kind]:
        """The kinds that a CustomResourceDefinition serves at the moment."""
        return self._custom.get(name, [])

    def _add(self, kind: Kind) -> None:
        self._storages = None
        self._served.setdefault((kind.group, kind.version), {})[kind.plural] = kind
        self._by_kind[kind.api_version, kind.kind] = kind


def _precedence(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order: v2 before v1 before v1beta2 before v1alpha1, then the rest by its name."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return 0, 0, 0, version
    rank = {None: 3, "beta": 2, "alpha": 1}[parts["stage"]]
    return rank, int(parts["major"]), int(parts["minor"] or 0), ""
