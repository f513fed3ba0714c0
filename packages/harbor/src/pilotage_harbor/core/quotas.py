"""ResourceQuotas: what the objects of a namespace use, and whether there is room for one more.

Usage is kept up to date with every change of the store, for those namespaces that have a quota, and is never read from
an object: a write is checked against what is stored at that moment, with nothing in between. What a quota's status says
is written later, for whoever reads it (`housekeeping.quota_status`). Pods count until they have ended or are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.builtin.pod_resources import amounts
from pilotage_harbor.builtin.quantity import ZERO
from pilotage_harbor.builtin.quota_usage import CLAIMS, PODS, SERVICES, counts_changes, is_enforced, unsaid, usage_of
from pilotage_harbor.core.objects import from_entry
from pilotage_harbor.storage.store import DELETED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilotage_harbor.builtin.pod_resources import Amounts
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.kinds.registry import Registry
    from pilotage_harbor.storage.store import Event, StoredObject, VersionedStore

QUOTAS = "resourcequotas"


class Quotas:
    """Usage of namespaces, and whether a write fits into their quotas."""

    def __init__(self, store: VersionedStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._hard: dict[str, dict[str, Amounts]] = {}
        """The limits of each quota, by namespace and name."""
        self._used: dict[str, Amounts] = {}
        """Usage of each resource, in the namespaces that have a quota."""
        self.on_change: Callable[[str], None] = lambda _namespace: None
        """Is called with a namespace in which something may have changed."""
        for entry in store.entries(QUOTAS):
            self._see(entry)
        store.listen_to_all(self._observe)

    def status(self, namespace: str, name: str) -> Json | None:
        """Status of a quota as it should be; None for one that is not enforced."""
        hard = self._hard.get(namespace, {}).get(name)
        if hard is None:
            return None
        used = self._used[namespace]
        return {
            "hard": {each: str(hard[each]) for each in sorted(hard)},
            "used": {each: str(used.get(each, ZERO)) for each in sorted(hard)},
        }

    def check(self, kind: Kind, obj: Json, old: Json | None) -> None:
        """403 unless all quotas of its namespace have room for a new object, or for a change of one."""
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"].get("name", "")
        quotas = self._hard.get(namespace)
        if not quotas or (old is not None and not counts_changes(kind.storage)):
            return
        wanted = usage_of(kind.storage, obj)
        before = usage_of(kind.storage, old) if old is not None else {}
        more = {each: amount.minus(before.get(each, ZERO)) for each, amount in wanted.items()}
        for quota, hard in sorted(quotas.items()):
            if kind.storage == PODS and (missing := unsaid(obj, hard)):
                why = f"failed quota: {quota}: must specify {missing}"
                raise errors.forbidden(kind.group, kind.plural, name, why)
            self._check(kind, name, quota, hard, {each: more[each] for each in more.keys() & hard.keys()}, namespace)

    def _check(self, kind: Kind, name: str, quota: str, hard: Amounts, more: Amounts, namespace: str) -> None:
        used = self._used[namespace]
        exceeded = [
            each
            for each, amount in more.items()
            if amount.value > 0 and used.get(each, ZERO).plus(amount).value > hard[each].value
        ]
        if exceeded:
            why = (
                f"exceeded quota: {quota}, requested: {_listed(more, exceeded)}, used: {_listed(used, exceeded)}, "
                f"limited: {_listed(hard, exceeded)}"
            )
            raise errors.forbidden(kind.group, kind.plural, name, why)

    def _observe(self, event: Event) -> None:
        namespace = event.entry.namespace
        if namespace in self._used:
            used = self._used[namespace]
            if event.old is not None:
                _subtract(used, self._usage(event.storage, event.old))
            if event.type != DELETED:
                _add(used, self._usage(event.storage, event.entry))
        if event.storage == QUOTAS:
            if event.type == DELETED:
                self._forget(event.entry)
            else:
                self._see(event.entry)
        if namespace in self._used:
            self.on_change(namespace)

    def _see(self, entry: StoredObject) -> None:
        kind = self._registry.storage(QUOTAS)
        assert kind is not None
        spec = from_entry(kind, entry).get("spec") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):  # from before such were refused
            return
        hard = {name: each for name, each in amounts(spec.get("hard")).items() if is_enforced(name)}
        self._hard.setdefault(entry.namespace, {})[entry.name] = hard
        if entry.namespace not in self._used:
            self._used[entry.namespace] = self._counted(entry.namespace)

    def _forget(self, entry: StoredObject) -> None:
        quotas = self._hard.get(entry.namespace, {})
        quotas.pop(entry.name, None)
        if not quotas:
            self._hard.pop(entry.namespace, None)
            self._used.pop(entry.namespace, None)

    def _counted(self, namespace: str) -> Amounts:
        used: Amounts = {}
        for storage in self._store.storages():
            for entry in self._store.entries(storage, namespace):
                _add(used, self._usage(storage, entry))
        return used

    def _usage(self, storage: str, entry: StoredObject) -> Amounts:
        if storage not in (PODS, SERVICES, CLAIMS):
            return usage_of(storage, {})
        kind = self._registry.storage(storage)
        assert kind is not None
        return usage_of(storage, from_entry(kind, entry))


def _add(used: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        used[name] = used.get(name, ZERO).plus(amount)


def _subtract(used: Amounts, less: Amounts) -> None:
    for name, amount in less.items():
        used[name] = used.get(name, ZERO).minus(amount)


def _listed(values: Mapping[str, object], names: list[str]) -> str:
    return ",".join(f"{name}={values.get(name, ZERO)}" for name in sorted(names))
