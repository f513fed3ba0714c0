"""Taking a whole machine down, from outside: objects are deleted if asked, every process is ended, and it is proven."""

import asyncio
import contextlib
import fcntl
import os
import shlex
from collections.abc import Callable, Iterator, Sequence

from pilotage.api.names import ENDPOINTS, MODELS, TEARDOWNS
from pilotage.kube import Absent, Client, Object, Propagation, Resource, load_config
from pilotage.private_files import check_private
from pilotage.processes.census import Marked, Processes
from pilotage.processes.identity import is_running
from pilotage.processes.terminate import HURRY_SECONDS, StillRunning, TerminationTarget, terminate
from pilotage.up import leftovers
from pilotage.up.components import STOP_ORDER
from pilotage.up.layout import Layout, UpState
from pilotage.up.leftovers import UpError

LEFT_SECONDS = 5.0
"""Time from SIGTERM to SIGKILL, for processes that no component has ended."""


async def delete_all(layout: Layout, say: Callable[[str], None], timeout: float) -> list[Object]:
    """Delete every endpoint, then every Model, and wait until each is proven gone. Returns them.

    Raises UpError when time is up.
    """
    async with Client.connect(load_config(kubeconfig=str(layout.kubeconfig))) as client:
        gone: list[Object] = []
        for kind in (ENDPOINTS, MODELS):
            deleted, left = await _delete(client, kind, say, timeout)
            if left:
                raise UpError(_not_deleted(layout, kind, left, timeout))
            gone += deleted
        uids = {each.meta.uid for each in gone}
        for each in (await client.list(TEARDOWNS)).items:
            receipt = each.get("status", "receipt", default=None)
            if receipt and each.get("spec", "reason") == "Deleted" and each.get("spec", "target", "uid") in uids:
                count = each.get("status", "gone", default=0)
                say(f"  {each.get('spec', 'target', 'name')}: {count} object{'s' * (count != 1)} proven gone")
    return gone


async def _delete(
    client: Client, resource: Resource, say: Callable[[str], None], timeout: float
) -> tuple[Sequence[Object], Sequence[Object]]:
    """Delete all objects of a kind. Returns those that were there, and those that are left in the end."""
    found = (await client.list(resource)).items
    for each in found:
        say(f"deleting {resource.kind} {each.meta.namespace}/{each.meta.name}")
        with contextlib.suppress(Absent):
            await client.delete(resource, each.key, uid=each.meta.uid, propagation=Propagation.BACKGROUND)
    left: Sequence[Object] = found
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while left := (await client.list(resource)).items:  # noqa: ASYNC110 - brief, and once
                await asyncio.sleep(0.1)
    return found, left


def _not_deleted(layout: Layout, resource: Resource, left: Sequence[Object], timeout: float) -> str:
    """The objects, what the first one waits for, and the command that explains it."""
    first = left[0]
    waiting = first.get("status", "waitingFor", default="")
    who = f"{resource.kind.lower()}/{first.meta.name}"
    why = ["pilotage", "why", who, "-n", first.meta.namespace, "--kubeconfig", str(layout.kubeconfig)]
    return (
        f"{resource.kind} {', '.join(str(each.key) for each in left)} was not deleted in {timeout:g} s"
        f"{waiting and f' ({waiting})'}. Everything still runs. Ask why, then try again: {shlex.join(why)}"
    )


async def go_down(layout: Layout, say: Callable[[str], None], *, hurry: bool, timeout: float) -> None:
    """End all processes of the folder, and prove it. Raises UpError for those that do not end."""
    state = layout.read_state()
    if state is not None:
        await _end_supervisor(state, say, hurry=hurry, timeout=timeout)
    with _locked(layout):
        state = layout.read_state() or state  # it may have started more components before it ended
        components = state.components if state is not None else {}
        for each in STOP_ORDER:
            if each in components and is_running(components[each]):
                say(f"{each} runs without its supervisor and is stopped")
                seconds = 3 * HURRY_SECONDS if hurry else timeout
                await _end(Processes([components[each]]), seconds, hurry=hurry)
        marked = Marked(leftovers.mark(layout))
        if found := marked.members():
            say(f"processes of an earlier run are ended: {', '.join(str(each.pid) for each in found)}")
            await _end(marked, LEFT_SECONDS)
        if left := leftovers.find(layout, state):
            raise UpError(str(left))
        layout.remove_state()


async def _end(target: TerminationTarget, seconds: float, *, hurry: bool = False) -> int:
    """The number of processes that had to be killed. What does not end even then is found by the last census."""
    until = asyncio.get_running_loop().time() + seconds
    with contextlib.suppress(StillRunning):
        return await terminate(target, lambda: until, hurry=lambda: hurry)
    return 0


@contextlib.contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    """Prevent that the folder is brought up meanwhile. A supervisor that is not recorded yet has the lock already."""
    with os.fdopen(layout.open_lock(), "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UpError(f"{layout.folder} is being brought up. Try again in a moment.") from error
        yield


async def _end_supervisor(state: UpState, say: Callable[[str], None], *, hurry: bool, timeout: float) -> None:
    if await _end(Processes([state.supervisor]), timeout, hurry=hurry):
        say(f"the supervisor (pid {state.supervisor.pid}) did not end in {timeout:g} s and was killed")


def check(layout: Layout) -> None:
    """Raise UpError unless the folder is ours: whoever can write there decides which processes are ended."""
    try:
        check_private(layout.folder)
    except OSError as error:
        raise UpError(f"{error}. Nothing was touched.") from error


def remove(layout: Layout) -> list[str]:
    """Remove our files, and the folder if nothing else is in it. Returns the names of the rest. Raises UpError."""
    try:
        return layout.remove()
    except OSError as error:
        raise UpError(f"{layout.folder} could not be removed: {error}.") from error


def reachable(layout: Layout) -> bool:
    """Whether a supervisor runs whose API server can be asked."""
    return layout.running() is not None and layout.kubeconfig.exists()
