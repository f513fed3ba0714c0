"""Taking a whole machine down, from outside: all is deleted if asked, all is ended, and what is left is looked for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from typing import TYPE_CHECKING

from pilotage.kinds.names import ENDPOINTS, MODELS, TEARDOWNS
from pilotage.kube import Absent, Client, Propagation, load_config
from pilotage.up import remains
from pilotage.up.parts import DOWN
from pilotage.up.supervisor import UpError, look, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.kube import Object, Resource
    from pilotage.up.layout import Layout, Note


async def delete_all(layout: Layout, say: Callable[[str], None], timeout: float) -> None:
    """Delete every endpoint, then every Model, and wait until each is proven gone. Raises UpError when time is up."""
    async with Client.connect(load_config(kubeconfig=str(layout.kubeconfig))) as client:
        for resource in (ENDPOINTS, MODELS):
            await _delete(client, resource, say, timeout)
        for each in (await client.list(TEARDOWNS)).items:
            receipt = each.get("status", "receipt", default=None)
            if receipt and each.get("spec", "reason") == "Deleted":
                gone = each.get("status", "gone", default=0)
                say(f"  {each.get('spec', 'target', 'name')}: {gone} objects proven gone")


async def _delete(client: Client, resource: Resource, say: Callable[[str], None], timeout: float) -> None:
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


def _waiting(obj: Object) -> str:
    said = obj.get("status", "waitingFor", default="")
    return f" ({said})" if said else ""


async def go_down(layout: Layout, say: Callable[[str], None], *, hurry: bool, timeout: float) -> None:
    """End everything that runs for the folder, and prove it. Raises UpError for what does not end."""
    note = layout.read()
    ports: list[int] = []
    if note is not None:
        ports = [*note.ports.values(), int(note.gateway.rpartition(":")[2])]
        await _end_supervisor(note, say, hurry=hurry, timeout=timeout)
        # Without a supervisor, its parts in the same order.
        for part in DOWN:
            if part in note.parts and remains.alive(note.parts[part]):
                say(f"{part} ran without its supervisor; it is told to end")
                remains.end([note.parts[part]], timeout)
    left = remains.marked(layout.folder)
    if left:
        say(f"{len(left)} processes were left by an earlier life; they are ended")
        remains.end(left, 5)
    proof = look(layout, ports)
    if not proof:
        raise UpError(told(proof))
    layout.forget()


async def _end_supervisor(note: Note, say: Callable[[str], None], *, hurry: bool, timeout: float) -> None:
    if not remains.alive(note.supervisor):
        return
    os.kill(note.supervisor.pid, signal.SIGTERM)
    if hurry:
        os.kill(note.supervisor.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(timeout):
            while remains.alive(note.supervisor):  # noqa: ASYNC110 - no child of ours
                await asyncio.sleep(0.05)
    except TimeoutError:
        say(f"the supervisor (pid {note.supervisor.pid}) did not end in {timeout:g} s; it is forced")
        remains.end([note.supervisor], 1)


def remove(layout: Layout) -> None:
    """The folder and all that is in it. Raises UpError for one that is no folder of ours, or that cannot be removed."""
    if not layout.lock.exists():
        raise UpError(f"{layout.folder} was not made by `pilotage up`; it stays.")
    try:
        shutil.rmtree(layout.folder)
    except OSError as error:
        raise UpError(f"{layout.folder} could not be removed: {error}.") from error


def reachable(layout: Layout) -> bool:
    """Whether there is a supervisor whose API server can be asked."""
    note = layout.read()
    return note is not None and remains.alive(note.supervisor) and layout.kubeconfig.exists()
