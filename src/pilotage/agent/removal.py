"""Removal of a process from this host: its HostProcess is deleted or gone, or the agent shuts down.

All of it goes through `process_stop`. Weights and logs are released once nothing of the process runs; the finalizer of
a deleted HostProcess is removed last.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path

from pilotage.agent import process_status
from pilotage.agent.host import OwnHostController
from pilotage.agent.journal import AgentJournal, JournalEntry
from pilotage.agent.launch import logs
from pilotage.agent.process_state import ProcessState
from pilotage.agent.process_status import DesiredStatus
from pilotage.agent.process_stop import ProcessStop, StopProgress, StopReason, nothing, stopping
from pilotage.agent.starter import Starter
from pilotage.agent.status_writer import StatusWriter
from pilotage.api.names import PROCESS_FINALIZER, PROCESSES
from pilotage.catalogue.phase import Phase
from pilotage.kube import Absent, ApiError, Client, Object, without_finalizer
from pilotage.models.store import ModelStore
from pilotage.runtime.clock import monotonic
from pilotage.runtime.store import Store

SHUTDOWN_POLL_SECONDS = 0.5


class Removal:
    """Removes processes, one step at a time. `states` and `locks` are by uid; the caller holds the lock."""

    def __init__(
        self,
        client: Client,
        store: Store,
        journal: AgentJournal,
        models: ModelStore,
        starter: Starter,
        process_stop: ProcessStop,
        status: StatusWriter,
        host: OwnHostController,
        states: MutableMapping[str, ProcessState],
        locks: MutableMapping[str, asyncio.Lock],
    ) -> None:
        self._client = client
        self._store = store
        self._journal = journal
        self._models = models
        self._starter = starter
        self._process_stop = process_stop
        self._status = status
        self._host = host
        self._states = states
        self._locks = locks

    async def deleted(self, obj: Object) -> float | None:
        """One step for a HostProcess that is being deleted; the seconds until the next, None if it is done."""
        uid = obj.meta.uid
        await self._starter.drop(uid)
        entry = self._journal.get(uid)
        if entry is None:
            if PROCESS_FINALIZER in obj.meta.finalizers:
                await self._release(obj)
            self._forget(uid)
            return None
        progress = await self._advance(entry, StopReason.DELETED, lambda: self._release(obj))
        if progress.done:
            return None
        await self._status.write(obj, stopping(progress, entry, StopReason.DELETED))
        return progress.wait

    async def vanished(self, entry: JournalEntry) -> float | None:
        """The same for a process whose HostProcess is proven gone, or is on another host now."""
        await self._starter.drop(entry.uid)

        progress = await self._advance(entry, StopReason.VANISHED, lambda: self._free_disk(entry.uid, Path(entry.log)))
        return None if progress.done else progress.wait

    async def shut_down(self, entry: JournalEntry, seconds: float) -> str:
        """Stop a process with the agent; its HostProcess stays. Says what is not proven, empty if everything is.

        Requests in flight have the drain timeout of their process. `seconds` bounds the rest, such as an API that does
        not answer.
        """
        give_up: float | None = None
        while True:
            async with self._locks[entry.uid]:
                current = self._journal.get(entry.uid)
                if current is None:
                    await self._write_stopped(entry)
                    return ""
                progress = await self._advance(current, StopReason.SHUTDOWN)
            if progress.done:
                continue
            if progress.phase > Phase.DRAIN:
                give_up = give_up or monotonic() + seconds
                if monotonic() >= give_up:
                    return f"{entry.key}: {progress.text}"
            await asyncio.sleep(min(progress.wait, SHUTDOWN_POLL_SECONDS))

    async def _advance(
        self, entry: JournalEntry, reason: StopReason, release: Callable[[], Awaitable[None]] = nothing
    ) -> StopProgress:
        progress = await self._process_stop.advance(entry, reason, self._states.get(entry.uid), release=release)
        if progress.done:
            self._forget(entry.uid)
            with contextlib.suppress(ApiError):  # the Host's status is written again later
                await self._host.publish()  # it has more free memory now
        return progress

    async def _release(self, obj: Object) -> None:
        """Release weights and logs, then remove the finalizer."""
        await self._free_disk(obj.meta.uid, self._starter.log_of(obj))
        self._journal.at("before the finalizer goes")
        with contextlib.suppress(Absent):
            newest = await self._client.get(PROCESSES, obj.key)  # its status was written meanwhile
            patch = without_finalizer(newest, PROCESS_FINALIZER) if newest.meta.uid == obj.meta.uid else None
            if patch is not None:
                await self._client.patch(PROCESSES, obj.key, patch)
        self._journal.at("after the finalizer went")

    async def _free_disk(self, uid: str, log: Path) -> None:
        """Release weights that no other process uses, and remove the logs, whatever becomes of the weights."""
        try:
            await self._models.release(uid)
        finally:
            logs.remove(log)

    def _forget(self, uid: str) -> None:
        state = self._states.pop(uid, None)
        if state is not None:
            state.stop_watching()
        self._status.forget(uid)
        self._locks.pop(uid, None)

    async def _write_stopped(self, entry: JournalEntry) -> None:
        obj = self._store.get(entry.key)
        if obj is not None and obj.meta.uid == entry.uid and not obj.meta.terminating:
            message = "The agent of its host has stopped. It starts again with the agent."
            desired = DesiredStatus(process_status.PENDING, "AgentStopped", message, expected=True)
            with contextlib.suppress(ApiError):
                await self._status.write(obj, desired)
