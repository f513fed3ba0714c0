"""The heart of harbor: what is stored, what is served, who decides, what time it is. No I/O, no waiting."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from typing import TYPE_CHECKING

from pilotage_harbor.access.rbac import STORAGES, Authorizer
from pilotage_harbor.access.tokens import Tokens
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.metadata_rules import metadata_problems, metadata_update_problems
from pilotage_harbor.builtin import builtin_kinds
from pilotage_harbor.builtin.crd_conditions import mark_pending
from pilotage_harbor.core.admission import NoAdmission
from pilotage_harbor.core.deletion import format_time_of, mark
from pilotage_harbor.core.objects import from_entry, to_entry
from pilotage_harbor.core.offload import at_once
from pilotage_harbor.core.quotas import Quotas
from pilotage_harbor.kinds.registry import Registry
from pilotage_harbor.storage.store import VersionedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.core.admission import Admission, Post
    from pilotage_harbor.core.offload import Offload
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import Event, Journal, StoredObject

NAMESPACES = "namespaces"
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
LASTING_NAMESPACES = ("default", "kube-system", "kube-public")

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, no digits that look like letters
_LOOKED_AT_AGAIN = ("metadata.labels", "metadata.annotations", "metadata.ownerReferences")
_GENERATED_BASE_MAX = 58

OBJECT_BYTES_MAX = 1536 * 1024
"""Maximum size of an object's JSON, as it is stored: etcd's limit."""
_DELETION_BYTES = 64 * 1024
"""Bytes that a deletion may add to that: its time, finalizers, conditions."""


class Core:
    """Store, registry, authorizer, admission and clock. It is also the `View` of strategies and of the authorizer."""

    def __init__(
        self, journal: Journal | None = None, *, now: Callable[[], float] = time.time, seed: int | None = None
    ) -> None:
        self.store = VersionedStore(journal)
        self.registry = Registry(builtin_kinds())
        self.quotas = Quotas(self.store, self.registry)
        self.admission: Admission = NoAdmission()
        self.post: Post | None = None
        """The client of webhooks, while there is one."""
        self.now = now
        self.offload: Offload = at_once
        """Runs long work."""
        self.tokens = Tokens(now)
        """Those that authentication knows: accounts get theirs from here."""
        self._rng = secrets.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311 - repeatable, if asked
        self._rules_version = 0
        self._allocation = asyncio.Lock()
        self.authorizer = Authorizer(self, lambda: self._rules_version)
        for storage in STORAGES:
            self.store.listen(storage, self._rules_changed)
        self._second = (0, "")

    # What a strategy sees

    def get(self, storage: str, namespace: str, name: str) -> Json | None:
        """The object as it is stored now, or None."""
        entry = self.store.get(storage, namespace, name)
        kind = self.registry.storage(storage)
        return from_entry(kind, entry) if entry is not None and kind is not None else None

    def objects(self, storage: str, namespace: str = "") -> Iterator[Json]:
        """The objects of a storage, of one namespace or of all."""
        kind = self.registry.storage(storage)
        if kind is not None:
            for entry in self.store.entries(storage, namespace):
                yield from_entry(kind, entry)

    # Writing

    def put(self, kind: Kind, obj: Json) -> StoredObject:
        """Store an object that has passed everything; 500 for one that grows beyond OBJECT_BYTES_MAX."""
        entry = to_entry(kind, obj, self.store.next_version())
        if len(entry.raw) > OBJECT_BYTES_MAX:
            self._check_size(kind, entry, deleting="deletionTimestamp" in obj["metadata"])
        self.store.put(kind.storage, entry)
        return entry

    def _check_size(self, kind: Kind, entry: StoredObject, *, deleting: bool) -> None:
        """Refuse what is too large, but never the mark of a deletion, nor what shrinks an object that was larger."""
        most = OBJECT_BYTES_MAX + (_DELETION_BYTES if deleting else 0)
        stored = self.store.get(kind.storage, entry.namespace, entry.name)
        if stored is not None:
            begins = deleting and b'"deletionTimestamp"' not in stored.raw
            most = max(most, len(stored.raw) + (_DELETION_BYTES if begins else 0))
        if len(entry.raw) > most:
            raise errors.too_large_to_store()

    def remove(self, kind: Kind, last: Json) -> StoredObject:
        """Take an object away; `last` is how it was last seen."""
        entry = to_entry(kind, last, self.store.next_version())
        self.store.remove(kind.storage, entry)
        return entry

    # Time and chance

    def now_text(self) -> str:
        """The time as metadata has it."""
        second, (known, text) = int(self.now()), self._second
        if second != known:
            text = format_time_of(second)
            self._second = (second, text)
        return text

    def uid(self) -> str:
        """A new uid (a version 4 UUID). Nobody can tell it in advance, unless the core was given a seed."""
        bits = self._rng.getrandbits(128)
        text = f"{bits & ~(0xF << 76) & ~(0x3 << 62) | (4 << 76) | (2 << 62):032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def generated_name(self, prefix: str) -> str:
        """A name that begins like this."""
        return prefix[:_GENERATED_BASE_MAX] + "".join(self._rng.choice(_NAME_LETTERS) for _ in range(5))

    # What every kind has to pass

    def metadata_problems(self, kind: Kind, obj: Json) -> list[StatusCause]:
        """Problems of the metadata of a new object."""
        return metadata_problems(obj["metadata"], namespaced=kind.namespaced, name_problems=kind.strategy.name_problems)

    def metadata_update_problems(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of the metadata of a changed object. kube-apiserver looks several times, and says so."""
        problems = metadata_update_problems(obj["metadata"], old["metadata"])
        again = [problem for problem in problems if problem.field.startswith(_LOOKED_AT_AGAIN)]
        return problems * 2 + again * 2

    def check_namespace(self, scope: Scope, name: str) -> None:
        """Nothing is created in a namespace that is not there (404), or that is going (403)."""
        if not scope.kind.namespaced:
            return
        entry = self.store.get(NAMESPACES, "", scope.namespace)
        if entry is None:
            raise errors.not_found("", NAMESPACES, scope.namespace)
        if b'"deletionTimestamp"' not in entry.raw:  # nearly all of them: not even decoded
            return
        if "deletionTimestamp" in self._namespace(entry)["metadata"]:
            error = errors.forbidden(
                scope.kind.group,
                scope.kind.plural,
                name,
                f"unable to create new content in namespace {scope.namespace} because it is being terminated",
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {scope.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error

    def check_served(self, kind: Kind) -> None:
        """Nothing is stored as a kind that has gone while somebody was asked about it (404), or is going (405)."""
        if not kind.custom:
            return
        if self.registry.kind(kind.group, kind.version, kind.plural) is None:
            raise errors.PageNotFound
        entry = self.store.get(CRDS, "", kind.qualified)
        if entry is not None and b'"deletionTimestamp"' in entry.raw:
            words = "create not allowed while custom resource definition is terminating"
            raise errors.StatusError(405, "MethodNotAllowed", words, details={})

    def allocating(self, kind: Kind) -> AbstractAsyncContextManager[None]:
        """Lock for kinds that allocate something: one at a time, from the choice of an address to its being stored."""
        return self._allocation if kind.strategy.allocates else contextlib.nullcontext()

    def mark_for_deletion(self, kind: Kind, obj: Json) -> bool:
        """Do what a delete means for the kinds that go in steps of their own; False for all others."""
        if kind.storage == NAMESPACES:
            if obj["metadata"]["name"] in LASTING_NAMESPACES:
                raise errors.forbidden("", NAMESPACES, obj["metadata"]["name"], "this namespace may not be deleted")
            if (obj.get("spec") or {}).get("finalizers"):
                mark(obj, self.now())
                obj["metadata"].pop("deletionGracePeriodSeconds", None)
                obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
            return True
        if kind.storage == CRDS and "deletionTimestamp" not in obj["metadata"]:
            finalizers = obj["metadata"].setdefault("finalizers", [])
            if CRD_FINALIZER not in finalizers:
                finalizers.append(CRD_FINALIZER)
            obj["metadata"]["deletionTimestamp"] = self.now_text()
            mark_pending(obj, self.now_text())
            return True
        return False

    def _namespace(self, entry: StoredObject) -> Json:
        kind = self.registry.storage(NAMESPACES)
        assert kind is not None
        return from_entry(kind, entry)

    def _rules_changed(self, _event: Event) -> None:
        self._rules_version += 1
