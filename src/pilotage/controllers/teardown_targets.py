"""The endpoint that a Teardown is about. A Teardown counts in the endpoint's namespace, or in the operator's own.

Anywhere else it is an attempt to act on another tenant's endpoint: it wakes no controller and releases nothing.
"""

from collections.abc import Callable, Iterable

from pilotage.api.names import LABEL_ENDPOINT_UID
from pilotage.api.teardown import Target, TeardownSummary
from pilotage.kube import Object, ObjectKey
from pilotage.runtime.store import Store

BY_TARGET = "target"


def target_of(record: Object, home: str) -> Target | None:
    """The endpoint that a Teardown is about; None where it does not count. `home`: the operator's own namespace."""
    target = record.decode_as(TeardownSummary).spec.target
    return target if record.meta.namespace in (target.namespace, home) else None


def by_target(home: str) -> Callable[[Object], Iterable[str]]:
    """Index Teardowns by namespace and uid of their endpoint."""

    def index(record: Object) -> Iterable[str]:
        target = target_of(record, home)
        return (about(target.namespace, target.uid),) if target is not None else ()

    return index


def about(namespace: str, uid: str) -> str:
    """The key of an endpoint in that index."""
    return f"{namespace}/{uid}"


def keys_for_part(store: Store, obj: Object) -> list[ObjectKey]:
    """Map a part, or what was made from it, to the Teardowns that may be about it."""
    value = about(obj.meta.namespace, obj.meta.labels.get(LABEL_ENDPOINT_UID, ""))
    return [each.key for each in store.indexed(BY_TARGET, value)]
