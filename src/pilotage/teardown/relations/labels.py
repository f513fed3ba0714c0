"""An index of objects by their labels, so that no selector is tried on every object."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pilotage.kube import LabelSelector
from pilotage.teardown.snapshot.world import Item

Labels = dict[str, str]


class Wish(NamedTuple):
    """A label selector: pairs that must be there, and a slower test for the rest of it."""

    pairs: tuple[tuple[str, str], ...]
    rest: LabelSelector | None = None


def understand(value: object, *, plain: bool) -> Wish | None:
    """The parsed selector of a manifest; None where it selects nothing, or is not valid."""
    if not isinstance(value, dict):
        return None
    if plain:
        pairs = _pairs(value)
        return Wish(pairs) if pairs else None
    pairs = _pairs(value.get("matchLabels") or {})
    if pairs is None or not value.keys() <= {"matchLabels", "matchExpressions"}:
        return None
    if not value.get("matchExpressions"):
        return Wish(pairs)
    from pilotage.kube.selectors import LabelSelector, SelectorError

    try:
        return Wish(pairs, LabelSelector.from_object({"matchExpressions": value["matchExpressions"]}))
    except SelectorError:
        return None


def _pairs(labels: object) -> tuple[tuple[str, str], ...] | None:
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        return None
    return tuple(labels.items())


class LabelIndex:
    """Objects by namespace and by each of their labels."""

    def __init__(self, labelled: Iterable[tuple[Item, Labels]]) -> None:
        self._all: dict[str, list[tuple[Item, Labels]]] = {}
        self._by_label: dict[tuple[str, str, str], list[tuple[Item, Labels]]] = {}
        by_label = self._by_label
        for entry in labelled:
            item, labels = entry
            namespace = item.meta.namespace
            self._all.setdefault(namespace, []).append(entry)
            for key, value in labels.items():
                place = (namespace, key, value)
                if place in by_label:
                    by_label[place].append(entry)
                else:
                    by_label[place] = [entry]

    @property
    def namespaces(self) -> Iterable[str]:
        """Namespaces that have objects."""
        return self._all.keys()

    def select(self, namespace: str, wish: Wish) -> Iterator[Item]:
        """The objects of a namespace that a selector selects."""
        candidates = self._all.get(namespace, [])
        for key, value in wish.pairs:
            rarer = self._by_label.get((namespace, key, value))
            if rarer is None:
                return
            if len(rarer) < len(candidates):
                candidates = rarer
        pairs, rest = wish.pairs, wish.rest
        for item, labels in candidates:
            for key, value in pairs:
                if labels.get(key) != value:
                    break
            else:
                if rest is None or rest.matches(labels):
                    yield item
