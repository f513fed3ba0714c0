"""Taking a whole machine down, from outside: all is deleted if asked, all is ended, and what is left is looked for."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from typing import TYPE_CHECKING

from pilotage.api.names import ENDPOINTS, MODELS, TEARDOWNS
from pilotage.kube import Absent, Client, Propagation, load_config
from pilotage.system.folders import check_private
from pilotage.up import remains
from pilotage.up.parts import DOWN
from pilotage.up.proof import UpError, look
from pilotage.up.supervisor import AGAIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pilotage.kube import Object, Resource
    from pilotage.up.layout import Layout, Note, Seen


async def delete_all(layout: Layout, say: Callable[[str], None], timeout: float) -> None:
    """Delete every endpoint, then every Model, and wait until each is proven gone. Raises UpError when time is up."""
    async with Client.connect(load_config(kubeconfig=str(layout.kubeconfig))) as client:
        gone = await _delete(client, ENDPOINTS, say, timeout) | await _delete(client, MODELS, say, timeout)
        for each in (await client.list(TEARDOWNS)).items:
            receipt = each.get("status", "receipt", default=None)
            if receipt and each.get("spec", "reason") == "Deleted" and each.get("spec", "target", "uid") in gone:
                count = each.get("status", "gone", default=0)
                say(f"  {each.get('spec', 'target', 'name')}: {count} objects proven gone")


async def _delete(client: Client, resource: Resource, say: Callable[[str], None], timeout: float) -> set[str]:
    """The uids of those that went."""
    found = (await client.list(resource)).items
    for each in found:
        say(f"deleting {resource.kind} {each.meta.namespace}/{each.meta.name}")
        with contextlib.suppress(Absent):
            await client.delete(resource, each.key, uid=each.meta.uid, propagation=Propagation.BACKGROUND)
    try:
        async with asyncio.timeout(timeout):
            while left := (await client.list(resource)).items:  # noqa: ASYNC110 - brief, and once
                await asyncio.sleep(0.1)
    except TimeoutError as error:
        raise UpError(
            f"{resource.kind} {', '.join(str(each.key) for each in left)} did not go in {timeout:g} s"
            f"{_waiting(left[0])}. All still runs; ask `pilotage why`, then try again."
        ) from error
    return {each.meta.uid for each in found}


def _waiting(obj: Object) -> str:
    said = obj.get("status", "waitingFor", default="")
    return f" ({said})" if said else ""


async def go_down(layout: Layout, say: Callable[[str], None], *, hurry: bool, timeout: float) -> None:
    """End everything that runs for the folder, and prove it. Raises UpError for what does not end."""
    note = layout.read()
    if note is not None:
        await _end_supervisor(note, say, hurry=hurry, timeout=timeout)
    with _nobody_else(layout):
        note = layout.read() or note  # it may have started more parts before it ended
        # Without a supervisor, its parts in the same order.
        parts = note.parts if note is not None else {}
        for part in DOWN:
            if part in parts and remains.alive(parts[part]):
                say(f"{part} ran without its supervisor; it is told to end")
                remains.end([parts[part]], 2 * AGAIN_SECONDS if hurry else timeout, again=AGAIN_SECONDS if hurry else 0)
        left = remains.marked(layout.folder)
        if left:
            say(f"{len(left)} processes were left by an earlier life; they are ended")
            remains.end(left, 5)
        proof = look(layout, note)
        if not proof:
            raise UpError(str(proof))
        layout.forget()


@contextlib.contextmanager
def _nobody_else(layout: Layout) -> Iterator[None]:
    """Nobody brings up what is taken down here. A supervisor that is not in the note yet has the lock already."""
    with os.fdopen(layout.open_lock(), "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UpError(f"{layout.folder} is being brought up. Try again in a moment.") from error
        yield


async def _end_supervisor(note: Note, say: Callable[[str], None], *, hurry: bool, timeout: float) -> None:
    if not remains.alive(note.supervisor):
        return
    _tell(note.supervisor)
    loop = asyncio.get_running_loop()
    again = loop.time() + AGAIN_SECONDS
    try:
        async with asyncio.timeout(timeout):
            while remains.alive(note.supervisor):
                if hurry and loop.time() >= again:  # later, and not once: of two that come at once the system keeps one
                    _tell(note.supervisor)
                    again += AGAIN_SECONDS
                await asyncio.sleep(0.05)
    except TimeoutError:
        say(f"the supervisor (pid {note.supervisor.pid}) did not end in {timeout:g} s; it is forced")
        remains.end([note.supervisor], 1)


def _tell(supervisor: Seen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(supervisor.pid, signal.SIGTERM)


def check(layout: Layout) -> None:
    """Raise UpError unless the folder is ours: who can write there says which processes are to end."""
    try:
        check_private(layout.folder)
    except OSError as error:
        raise UpError(f"{error}. Nothing was touched.") from error


def remove(layout: Layout) -> list[str]:
    """Remove what is ours, and the folder if nothing else is in it. Returns what is left. Raises UpError."""
    try:
        return layout.remove()
    except OSError as error:
        raise UpError(f"{layout.folder} could not be removed: {error}.") from error


def reachable(layout: Layout) -> bool:
    """Whether there is a supervisor whose API server can be asked."""
    note = layout.read()
    return note is not None and remains.alive(note.supervisor) and layout.kubeconfig.exists()
