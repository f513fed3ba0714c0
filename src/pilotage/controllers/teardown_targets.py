"""Which Teardowns are about which endpoint. One counts in the endpoint's namespace, or in the operator's own.

Everywhere else a record is somebody's attempt to act on what is not theirs: it wakes nobody and releases nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pilotage.api.names import LABEL_ENDPOINT_UID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pilotage.kube import Object, ObjectKey
    from pilotage.runtime.store import Store

BY_TARGET = "target"


class _Target(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Spec(msgspec.Struct):
    target: _Target = msgspec.field(default_factory=_Target)


class _Brief(msgspec.Struct):
    """Of a record what the index and the mappers need: they are asked at every change."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


def target_of(record: Object, home: str) -> _Target | None:
    """Whose parts go; None where the record must not act for it. `home`: the operator's own namespace."""
    target = record.decode_as(_Brief).spec.target
    return target if record.meta.namespace in (target.namespace, home) else None


def by_target(home: str) -> Callable[[Object], Iterable[str]]:
    """An indexer: whose parts go, by namespace and uid."""

    def index(record: Object) -> Iterable[str]:
        target = target_of(record, home)
        return (about(target.namespace, target.uid),) if target is not None else ()

    return index


def about(namespace: str, uid: str) -> str:
    """An endpoint, as `by_target` has it."""
    return f"{namespace}/{uid}"


def keys_for_part(store: Store, obj: Object) -> list[ObjectKey]:
    """A mapper: the Teardowns that a part, or what was made of it, may belong to."""
    value = about(obj.meta.namespace, obj.meta.labels.get(LABEL_ENDPOINT_UID, ""))
    return [each.key for each in store.indexed(BY_TARGET, value)]
