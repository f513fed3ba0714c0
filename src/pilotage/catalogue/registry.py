"""Lookups in the catalogue. The ecosystems are found and imported when the first of these is called."""

import functools
import importlib
import os
from fnmatch import fnmatchcase

import msgspec

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import RelationRow
from pilotage.kube import GroupKind


@functools.cache
def ecosystems() -> tuple[Ecosystem, ...]:
    """All files of the catalogue, by name."""
    from pilotage.catalogue import ecosystems as package

    files = sorted(file.name for folder in package.__path__ for file in os.scandir(folder))
    names = [file.removesuffix(".py") for file in files if file.endswith(".py") and not file.startswith("_")]
    return tuple(importlib.import_module(f"{package.__name__}.{name}").ECOSYSTEM for name in names)


@functools.cache
def kinds() -> dict[GroupKind, KnownKind]:
    """All kinds that have a row of their own. Rows for many kinds at once are not among them."""
    return {each.group_kind: each for known in ecosystems() for each in known.kinds if each.group != "*"}


def known(kind: GroupKind) -> KnownKind:
    """The row of a kind; for one that has none, a row that says that nothing is known."""
    return kinds().get(kind) or KnownKind(kind.group, kind.kind)


def phase_of(kind: GroupKind) -> Phase:
    """The phase in which objects of a kind go, unless what they own says otherwise."""
    return known(kind).phase


@functools.cache
def workloads() -> frozenset[GroupKind]:
    """The kinds that run pods."""
    return frozenset(kind for kind, row in kinds().items() if row.workload)


@functools.cache
def guards() -> tuple[KnownKind, ...]:
    """The kinds that protect pods and do not forbid their deletion."""
    return tuple(row for row in kinds().values() if row.guard is not None)


@functools.cache
def pod_labels() -> dict[GroupKind, str]:
    """Paths of the labels of a workload's pods, by kind."""
    return {kind: row.pod_labels for kind, row in kinds().items() if row.pod_labels}


@functools.cache
def defined_groups() -> frozenset[str]:
    """The groups whose kinds are known to be defined by CustomResourceDefinitions."""
    return frozenset(row.group for known in ecosystems() if known.defined for row in known.kinds)


def relation_rows(ecosystem: Ecosystem) -> tuple[RelationRow, ...]:
    """The relations of an ecosystem's kinds, with their kinds."""
    return tuple(
        RelationRow(
            *msgspec.structs.astuple(field),
            group=row.group,
            kind=row.kind,
            demand=row.needs_body,
            category=row.category,
        )
        for row in ecosystem.kinds
        for field in row.relations
    )


@functools.cache
def all_relation_rows() -> tuple[RelationRow, ...]:
    """The relations of all kinds."""
    return tuple(row for ecosystem in ecosystems() for row in relation_rows(ecosystem))


@functools.lru_cache(maxsize=256)
def find_finalizer(name: str) -> KnownFinalizer | None:
    """The row of a finalizer. Of several patterns that match, the one without ``*`` counts, or else the longest."""
    matches = [
        ("*" not in pattern, len(pattern), row)
        for ecosystem in ecosystems()
        for row in ecosystem.finalizers
        for pattern in row.patterns
        if fnmatchcase(name, pattern)
    ]
    return max(matches, key=lambda match: match[:2])[2] if matches else None
