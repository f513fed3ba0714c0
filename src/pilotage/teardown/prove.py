"""The proof: everything in a ledger is read afresh, consistently, and by uid.

Few objects of a kind are read one by one, many by a list of their kind. A read that fails proves nothing: what it was
about is unread, and the proof does not hold.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from pilotage.kube import Absent, ApiError
from pilotage.runtime.clock import utc_now
from pilotage.teardown.ledger import Disposition

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from pilotage.kube import Client, Object, Resource
    from pilotage.teardown.ledger import Entry, Ledger

ONE_BY_ONE_MAX = 2
"""More objects of a kind in one namespace than this are read by one list."""
AT_ONCE = 16


class Read(NamedTuple):
    """One read that proves something."""

    request: str
    at: dt.datetime
    resource_version: str = ""
    """Of the collection; empty for a read of one object, which was not there."""


class Proof(NamedTuple):
    """What reading everything afresh has shown."""

    gone: dict[str, Read]
    """The uids that are proven gone, and by which read."""
    there: list[Object]
    """What is there after all."""
    unread: dict[str, str]
    """The uids that could not be read, with why."""
    kept: dict[str, bool]
    """Of what was to be kept: whether it is there."""

    @property
    def holds(self) -> bool:
        """Whether all that was to go is gone."""
        return not self.there and not self.unread

    @property
    def resource_version(self) -> str:
        """The newest version that a read was made at."""
        versions = [int(read.resource_version) for read in self.gone.values() if read.resource_version.isdigit()]
        return str(max(versions)) if versions else ""


async def prove(client: Client, ledger: Ledger) -> Proof:
    """Read all entries. Never raises an ApiError: what cannot be read is unread."""
    proof = Proof({}, [], {}, {})
    gate = asyncio.Semaphore(AT_ONCE)
    places: dict[tuple[Resource, str], list[Entry]] = {}
    for entry in ledger.entries:
        places.setdefault((entry.resource, entry.namespace), []).append(entry)
    reads = []
    for (resource, namespace), entries in places.items():
        if len(entries) > ONE_BY_ONE_MAX:
            reads.append(_list(client, gate, proof, resource, namespace, entries))
        else:
            reads += (_get(client, gate, proof, entry) for entry in entries)
    await asyncio.gather(*reads)
    return proof


async def _get(client: Client, gate: asyncio.Semaphore, proof: Proof, entry: Entry) -> None:
    request = f"GET {entry.resource.path(entry.namespace, entry.name)}"
    try:
        async with gate:
            found = await client.get(entry.resource, entry.key, metadata_only=True)
    except Absent:
        _conclude(proof, entry, None, Read(request, utc_now()))
    except ApiError as error:
        proof.unread[entry.uid] = error.message
    else:
        # Another object of this name proves as much as none: the one that was meant is not there.
        same = found if found.meta.uid == entry.uid else None
        _conclude(proof, entry, same, Read(request, utc_now(), found.meta.resource_version))


async def _list(
    client: Client,
    gate: asyncio.Semaphore,
    proof: Proof,
    resource: Resource,
    namespace: str,
    entries: Iterable[Entry],
) -> None:
    try:
        async with gate:
            page = await client.list(resource, namespace, metadata_only=True)
    except ApiError as error:
        proof.unread.update((entry.uid, error.message) for entry in entries)
        return
    read = Read(f"LIST {resource.path(namespace)}", utc_now(), page.resource_version)
    by_uid = {obj.meta.uid: obj for obj in page.items}
    for entry in entries:
        _conclude(proof, entry, by_uid.get(entry.uid), read)


def _conclude(proof: Proof, entry: Entry, found: Object | None, read: Read) -> None:
    if entry.disposition is Disposition.KEEP:
        proof.kept[entry.uid] = found is not None
    elif found is None:
        proof.gone[entry.uid] = read
    else:
        proof.there.append(found)
