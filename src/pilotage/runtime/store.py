"""The objects that an informer knows, with indexes. No I/O; one writer (the informer), many readers."""

from collections.abc import Callable, Iterable, Sequence

from pilotage.kube import Object, ObjectKey

Indexer = Callable[[Object], Iterable[str]]


class Store:
    """Objects by key, and keys by index value."""

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, Object] = {}
        self._indexers: dict[str, Indexer] = {}
        self._indexes: dict[str, dict[str, set[ObjectKey]]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects

    def get(self, key: ObjectKey) -> Object | None:
        """The object as last seen."""
        return self._objects.get(key)

    def list(self, namespace: str = "") -> Sequence[Object]:
        """All, or those of one namespace."""
        return [obj for obj in self._objects.values() if not namespace or obj.meta.namespace == namespace]

    def items(self) -> Sequence[tuple[ObjectKey, Object]]:
        """All keys and objects, as they are now."""
        return [*self._objects.items()]

    def indexed(self, index: str, value: str) -> Sequence[Object]:
        """Those for which the indexer gave this value. KeyError if there is no such index."""
        return [self._objects[key] for key in self._indexes[index].get(value, ())]

    def add_index(self, name: str, indexer: Indexer) -> None:
        """Index everything, now and later, by what `indexer` gives. Adding the same index again changes nothing."""
        if self._indexers.get(name) is indexer:
            return
        if name in self._indexers:
            raise ValueError(f"there is another index named {name!r}")
        self._indexers[name] = indexer
        self._indexes[name] = {}
        for key, obj in self._objects.items():
            self._index(name, key, obj)

    def put(self, obj: Object) -> Object | None:
        """Add or replace; returns what was there."""
        key = obj.key
        old = self._objects.get(key)
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        for name in self._indexers:
            self._index(name, key, obj)
        return old

    def remove(self, key: ObjectKey) -> Object | None:
        """Take out; returns what was there."""
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
        return old

    def _index(self, name: str, key: ObjectKey, obj: Object) -> None:
        index = self._indexes[name]
        for value in self._indexers[name](obj):
            index.setdefault(value, set()).add(key)

    def _unindex(self, key: ObjectKey, obj: Object) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(obj):
                keys = index.get(value)
                if keys is not None:
                    keys.discard(key)
                    if not keys:
                        del index[value]
