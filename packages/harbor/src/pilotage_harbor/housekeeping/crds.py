"""The controller of CustomResourceDefinitions: accepts names, establishes and serves them, and deletes the objects of a
definition before it goes itself.

What is established is served in the moment in which it is stored. The rest is done by a task: conditions are written
through the API; the objects of a definition that is being deleted go through the store, where no webhook is asked (but
their finalizers hold them, and the definition waits for them).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.calls import pause
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_harbor.builtin.crd_conditions import approval, condition_of, has, is_true, set_condition
from pilotage_harbor.core import CRD_FINALIZER, CRDS
from pilotage_harbor.core.deletion import mark
from pilotage_harbor.core.objects import as_stored, from_entry
from pilotage_harbor.housekeeping.client import Asker, path_of
from pilotage_harbor.housekeeping.controller import StoreController
from pilotage_harbor.housekeeping.crd_names import judge_names
from pilotage_harbor.housekeeping.custom_kinds import custom_kinds
from pilotage_harbor.storage.store import DELETED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.core import Core
    from pilotage_harbor.housekeeping.client import Handle
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import Event

CHECK_SECONDS = 60.0
"""Seconds after which the condition says that instances are still there."""

_DELETED_AT_ONCE = 20
_DELETING = ("InstanceDeletionInProgress", "InstanceDeletionCheck")

_log = logging.getLogger(__name__)


class Definitions(StoreController[str]):
    """The controller of CustomResourceDefinitions. `begin` serves the established ones; then `tasks` do the work."""

    def __init__(self, core: Core, handle: Handle, served: Callable[[], None]) -> None:
        super().__init__()
        self._core = core
        self._tell = served
        self._asker = Asker(handle, LOOPBACK, "kube-apiserver")
        self.terminating: set[str] = set()
        """Definitions that are being deleted: nothing is created in the storage of that name any more."""
        self._served: dict[str, Json] = {}
        """Fields of each definition that decide how it is served, as they were last."""
        self._emptying: dict[str, Callable[[], None]] = {}
        """Definitions whose instances are watched on their way out, and how to end that."""
        self._begun: dict[str, float] = {}

    def begin(self) -> None:
        """Serve what is established, look at all there is, and listen from now on."""
        for entry in self._core.store.entries(CRDS):
            definition = self._core.get(CRDS, "", entry.name)
            assert definition is not None
            self._serve(entry.name, definition, entry.version)
            self._queue.add(entry.name)
        self._stop_listening = self._core.store.listen(CRDS, self._observe)

    def end(self) -> None:
        """Listen no more."""
        super().end()
        for name in [*self._emptying]:
            self._emptied(name)

    # Serving

    def _observe(self, event: Event) -> None:
        name = event.entry.name
        try:
            if event.type == DELETED:
                self._stop_serving(name)
            else:
                definition = from_entry(self._kind(), event.entry)
                self._serve(name, definition, event.version)
        except Exception:  # noqa: BLE001 (whoever wrote it must get an answer: it is stored)
            _log.exception("%s cannot be served", name)
        self._queue.add(name)

    def _serve(self, name: str, definition: Json, as_of: int) -> None:
        """Serve it as it is now, if it is established, or about to be."""
        if "deletionTimestamp" in definition["metadata"]:
            self.terminating.add(name)
        if not is_true(definition, "Established") and not is_true(definition, "NamesAccepted"):
            return
        decisive = {"spec": definition["spec"], "names": definition["status"]["acceptedNames"]}
        if self._served.get(name) != decisive:
            self._served[name] = decisive
            self._core.registry.serve_custom(name, custom_kinds(definition, as_of))
            self._tell()

    def _stop_serving(self, name: str) -> None:
        self._emptied(name)
        self._begun.pop(name, None)
        self.terminating.discard(name)
        if self._served.pop(name, None) is not None:
            self._core.registry.serve_custom(name, [])
            self._tell()

    # Conditions

    async def _sync(self, name: str) -> None:
        definition = self._core.get(CRDS, "", name)
        if definition is None:
            self._requeue_group(name, name.partition(".")[2])
            return
        try:
            await self._accept_names(name, definition)
            await self._judge_approval(name, definition)
            await self._establish(name)
            await self._finalize(name)
        except StatusError as error:
            if error.code not in (404, 409):  # it has changed, or is gone: it comes again by itself
                raise

    async def _accept_names(self, name: str, definition: Json) -> None:
        group = definition["spec"]["group"]
        others = [other for other in self._core.objects(CRDS) if other["spec"]["group"] == group]
        judged = judge_names(definition, others)
        if judged is None:
            return
        names, conditions = judged
        definition.setdefault("status", {})["acceptedNames"] = names
        for condition in conditions:
            self._set(definition, *condition)
        definition.update(await self._put_status(name, definition))
        self._requeue_group(name, group)

    async def _judge_approval(self, name: str, definition: Json) -> None:
        condition = approval(definition)
        if condition is not None and not has(definition, *condition):
            self._set(definition, *condition)
            await self._put_status(name, definition)

    async def _establish(self, name: str) -> None:
        definition = self._core.get(CRDS, "", name)
        if definition is None or not is_true(definition, "NamesAccepted") or is_true(definition, "Established"):
            return
        words = "the initial names have been accepted"
        self._set(definition, "Established", "True", "InitialNamesAccepted", words)
        await self._put_status(name, definition)

    def _requeue_group(self, name: str, group: str) -> None:
        """Names may have become free for the others of the group."""
        for entry in self._core.store.entries(CRDS):
            if entry.name != name and entry.name.partition(".")[2] == group:
                self._queue.add(entry.name)

    def _set(self, definition: Json, type_: str, value: str, reason: str, message: str) -> None:
        set_condition(definition, type_, value, reason, message, self._core.now_text())

    async def _put_status(self, name: str, definition: Json) -> Json:
        return await self._asker.ask("PUT", path_of(self._kind(), "", name, "status"), definition)

    def _kind(self) -> Kind:
        kind = self._core.registry.storage(CRDS)
        assert kind is not None
        return kind

    # The end

    async def _finalize(self, name: str) -> None:
        """Delete the instances; when there are none left, let the definition go."""
        definition = self._core.get(CRDS, "", name)
        if definition is None or "deletionTimestamp" not in definition["metadata"]:
            return
        if CRD_FINALIZER not in (definition["metadata"].get("finalizers") or ()):
            return
        self._begun.setdefault(name, self._core.now())
        if condition_of(definition, "Terminating").get("reason") not in _DELETING:
            words = "CustomResource deletion is in progress"
            self._set(definition, "Terminating", "True", "InstanceDeletionInProgress", words)
            definition = await self._put_status(name, definition)
        if not is_true(definition, "Established"):
            self._release(name, "NeverEstablished", "resource was never established")
            return
        remaining = await self._delete_instances(name, definition)
        if remaining:
            await self._note_remaining(name, definition)
            return
        self._release(name, "InstanceDeletionCompleted", "removed all instances")

    async def _delete_instances(self, name: str, definition: Json) -> int:
        """Delete the instances from the store, without admission; return how many remain. None can be created."""
        core = self._core
        kind = _stored_kind(definition)
        for at, listed in enumerate(core.store.entries(kind.storage).first(), 1):
            if not at % _DELETED_AT_ONCE:
                await pause()
            entry = core.store.get(kind.storage, listed.namespace, listed.name)
            if entry is None:
                continue
            obj = as_stored(entry)
            if not obj["metadata"].get("finalizers"):
                core.remove(kind, obj)
            elif "deletionTimestamp" not in obj["metadata"]:
                mark(obj, core.now())
                core.put(kind, obj)
        remaining = core.store.count(kind.storage)
        if remaining and name not in self._emptying:

            def observe(event: Event) -> None:
                if event.type == DELETED and not core.store.count(event.storage):
                    self._queue.add(name)

            self._emptying[name] = core.store.listen(kind.storage, observe)
        return remaining

    async def _note_remaining(self, name: str, definition: Json) -> None:
        """Write into the condition that objects remain, once a minute has passed."""
        left = self._begun[name] + CHECK_SECONDS - self._core.now()
        if left > 0:
            self._queue.add_after(name, left)
            return
        words = "could not confirm zero CustomResources remaining: context deadline exceeded"
        condition = ("Terminating", "True", "InstanceDeletionCheck", words)
        if not has(definition, *condition):
            self._set(definition, *condition)
            await self._put_status(name, definition)

    def _release(self, name: str, reason: str, message: str) -> None:
        """Take the finalizer away, in one step with the last condition."""
        definition = self._core.get(CRDS, "", name)
        if definition is None:
            return
        self._emptied(name)
        self._set(definition, "Terminating", "False", reason, message)
        meta = definition["metadata"]
        meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != CRD_FINALIZER]
        if meta["finalizers"]:
            self._core.put(self._kind(), definition)
        else:
            del meta["finalizers"]
            self._core.remove(self._kind(), definition)

    def _emptied(self, name: str) -> None:
        stop = self._emptying.pop(name, None)
        if stop is not None:
            stop()


def _stored_kind(definition: Json) -> Kind:
    """The kind as which its objects are stored, whether that version is served or not."""
    versions = [{**version, "served": True} for version in definition["spec"]["versions"] if version["storage"]]
    return custom_kinds({**definition, "spec": {**definition["spec"], "versions": versions}}, 0)[0]
