"""Kinds that are read in full, first, or only when asked for.

Reading a cluster begins while the rest of a command is still imported, so nothing here imports the ecosystems:
`reading_table` is generated from them (`make manifests`), and a test sees that it is current.
"""

from collections.abc import Iterable

from pilotage.catalogue import reading_table
from pilotage.catalogue.groups import is_custom
from pilotage.kube import ApiResource, GroupKind

CORE = "core"
"""The group without a name, as the table writes it."""
REACHES = "+"
"""Suffix of a kind or category in the table: its objects can point into another namespace."""


def _parse(table: str) -> frozenset[GroupKind]:
    return frozenset(
        GroupKind("" if group == CORE else group, kind)
        for group, *kinds in map(str.split, table.strip().splitlines())
        for kind in kinds
    )


FOR_FINALIZERS = _parse(reading_table.FOR_FINALIZERS)
"""Read in full to tell which controller takes a finalizer off, and whether it runs."""
FOR_HAZARDS = FOR_FINALIZERS | _parse(reading_table.FOR_HAZARDS)
"""Read in full to predict what will block a teardown."""
FOR_LEAKS = _parse(reading_table.FOR_LEAKS)
"""Read in full to find what was left behind."""
ONLY_IF_ASKED = _parse(reading_table.ONLY_IF_ASKED)
"""Many objects, often written, and nobody's to take down: read only where somebody asks for them."""
COMPUTED = _parse(reading_table.COMPUTED)
COMPUTED_GROUPS = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})
"""Objects that a server makes up when it is asked: there is nothing behind them."""
MADE = _parse(reading_table.MADE)
"""Kinds that the controllers of Kubernetes create. They are read first: the proof of a teardown lists them once more,
and kube-apiserver delays such a list until 100 ms have passed since the one before."""

_IN_FULL = _parse(reading_table.IN_FULL)
_CATEGORIES = frozenset(reading_table.CATEGORIES.split())
_OF_ANY_GROUP = frozenset(reading_table.OF_ANY_GROUP.split())


def in_full(served: Iterable[ApiResource]) -> frozenset[GroupKind]:
    """The kinds that are read in full for their relations: those with a row, and of `served` those of a category."""
    kinds = frozenset(GroupKind(each.group, each.kind.removesuffix(REACHES)) for each in _IN_FULL)
    return kinds | _by_pattern(served, _unmarked(_CATEGORIES), _unmarked(_OF_ANY_GROUP))


def reaching(served: Iterable[ApiResource]) -> frozenset[GroupKind]:
    """Those of them whose objects can point into another namespace than their own."""
    kinds = frozenset(GroupKind(each.group, each.kind[:-1]) for each in _IN_FULL if each.kind.endswith(REACHES))
    return kinds | _by_pattern(served, _marked(_CATEGORIES), _marked(_OF_ANY_GROUP))


def _unmarked(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word.removesuffix(REACHES) for word in words)


def _marked(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word[:-1] for word in words if word.endswith(REACHES))


def _by_pattern(
    served: Iterable[ApiResource], categories: frozenset[str], names: frozenset[str]
) -> frozenset[GroupKind]:
    return frozenset(
        api.resource.group_kind
        for api in served
        if is_custom(api.resource.group) and (api.resource.kind in names or categories & {*api.categories})
    )
