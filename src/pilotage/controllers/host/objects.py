"""Objects of a Host's processes in the cluster: how they are withdrawn or removed where no agent does it.

Everything is found afresh, by label or by the uid that the agent has recorded, and changed by uid. What is gone already
is fine.
"""

from pilotage.api.names import LABEL_HOST, LABEL_PROCESS_UID, PROCESS_FINALIZER, PROCESSES
from pilotage.kube import Absent, Client, Foreign, Json, Object, Propagation, Resource, merge_patch, without_finalizer
from pilotage.serving.resources import SLICES

LOST, STOPPED = "Lost", "Stopped"


async def processes_on(client: Client, host: str) -> list[Object]:
    """All existing HostProcesses that were placed on a Host, in all namespaces."""
    return list((await client.list(PROCESSES, labels=f"{LABEL_HOST}={host}")).items)


async def slices_on(client: Client, host: str) -> list[Object]:
    """The EndpointSlices with addresses of a Host: those with its label, and those of its processes that lost it."""
    found = {each.meta.uid: each for each in (await client.list(SLICES, labels=f"{LABEL_HOST}={host}")).items}
    for process in await processes_on(client, host):
        if process.get("status", "sliceUid", default=None) in (None, *found):
            continue
        if (unlabelled := await slice_of(client, process)) is not None:
            found[unlabelled.meta.uid] = unlabelled
    return [*found.values()]


async def slice_of(client: Client, process: Object) -> Object | None:
    """The EndpointSlice of a process: it has its name, and the uid that its agent has recorded or the label."""
    try:
        found = await client.get(SLICES, process.key)
    except Absent:
        return None
    recorded = found.meta.uid == process.get("status", "sliceUid", default=None)
    return found if recorded or found.meta.labels.get(LABEL_PROCESS_UID) == process.meta.uid else None


async def withdraw(client: Client, slices: list[Object]) -> int:
    """Mark addresses as neither ready nor serving; returns how many slices were changed."""
    changed = 0
    for each in slices:
        addresses: list[Json] = each.get("endpoints", default=None) or []
        if all(_is_withdrawn(address) for address in addresses):
            continue
        withdrawn = [
            address | {"conditions": (address.get("conditions") or {}) | {"ready": False, "serving": False}}
            for address in addresses
        ]
        patch = merge_patch(
            {"metadata": {"uid": each.meta.uid}, "endpoints": withdrawn}, resource_version=each.meta.resource_version
        )
        try:
            await client.patch(SLICES, each.key, patch)
        except (Absent, Foreign):
            continue
        changed += 1
    return changed


async def mark_lost(client: Client, process: Object, why: str) -> None:
    """Set the phase of a process to Lost; its agent corrects that when it is back."""
    await _mark(client, process, LOST, why)


async def mark_stopped(client: Client, process: Object, why: str) -> None:
    """Let a process that still says that it is ready say that it waits for its agent."""
    if process.get("status", "ready", default=None) is True:
        await _mark(client, process, "Pending", why)


async def _mark(client: Client, process: Object, phase: str, why: str) -> None:
    status = process.get("status", default={}) or {}
    if status.get("phase") == phase and status.get("ready") is not True and status.get("message") == why:
        return
    changes = {"phase": phase, "ready": False, "message": why}
    try:
        await client.patch(
            PROCESSES,
            process.key,
            merge_patch({"metadata": {"uid": process.meta.uid}, "status": changes}),
            subresource="status",
        )
    except (Absent, Foreign):
        return


async def remove(client: Client, resource: Resource, obj: Object) -> Object | None:
    """Delete exactly this object; returns it if finalizers keep it."""
    try:
        return await client.delete(resource, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)
    except (Absent, Foreign):
        return None


async def release(client: Client, process: Object) -> None:
    """Remove the agent's finalizer from a process of which nothing runs, or whose Host a person has deleted.

    Conflict if it was changed since it was read: it may have been placed.
    """
    patch = without_finalizer(process, PROCESS_FINALIZER)
    if patch is None:
        return
    try:
        await client.patch(PROCESSES, process.key, patch)
    except (Absent, Foreign):
        return


def _is_withdrawn(address: Json) -> bool:
    """Whether an address is out of traffic. An unset `ready` means ready, an unset `serving` the same as `ready`."""
    conditions = address.get("conditions") or {}
    return conditions.get("ready") is False and not conditions.get("serving")
