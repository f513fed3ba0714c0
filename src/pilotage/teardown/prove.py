"""The proof: everything in a ledger is read afresh, consistently, and by uid.

Few objects of a kind are read one by one, many by a list of their kind. A read that fails proves nothing: what it was
about is unread, and the proof does not hold. A kind that is not served proves nothing either, unless its definition
was part of the ledger and is gone: then there is no such object.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from pilotage.kube import Absent, ApiError, KindNotServed, ObjectKey, Resource
from pilotage.runtime.clock import utc_now
from pilotage.teardown.ledger import Disposition

if TYPE_CHECKING:
    import datetime as dt

    from pilotage.kube import Client, Object
    from pilotage.teardown.ledger import Entry, Ledger, Pointer

ONE_BY_ONE_MAX = 2
"""More objects of a kind in one namespace than this are read by one list."""
AT_ONCE = 8
"""More connections than there are already cost more than they bring."""
POINTERS_MAX = 200
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


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
    taken: dict[str, str]
    """Of what is gone: the uid of another object that has its name now, and that is nobody's here."""
    pointers: list[str]
    """What still is there and pointed at something that is gone now, or could not be read."""

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
    proof = Proof({}, [], {}, {}, {}, [])
    gate = asyncio.Semaphore(AT_ONCE)
    places: dict[tuple[Resource, str], list[Entry]] = {}
    for entry in ledger.entries:
        places.setdefault((entry.resource, entry.namespace), []).append(entry)
    reads = []
    for (resource, namespace), entries in places.items():
        if len(entries) > ONE_BY_ONE_MAX:
            reads.append(_list(client, gate, ledger, proof, resource, namespace, entries))
        else:
            reads += (_get(client, gate, ledger, proof, entry) for entry in entries)
    reads += (_look_at(client, gate, proof, pointer) for pointer in ledger.pointers[:POINTERS_MAX])
    await asyncio.gather(*reads)
    return proof


async def _look_at(client: Client, gate: asyncio.Semaphore, proof: Proof, pointer: Pointer) -> None:
    """Whether something that pointed at what is gone is still there."""
    key = ObjectKey(pointer.namespace, pointer.name)
    try:
        async with gate:
            found = await client.get(pointer.resource, key, metadata_only=True)
    except Absent:
        return
    except ApiError as error:
        proof.pointers.append(f"{pointer.text}: {error.message}")
        return
    if found.meta.uid == pointer.uid:
        proof.pointers.append(pointer.text)


async def _get(client: Client, gate: asyncio.Semaphore, ledger: Ledger, proof: Proof, entry: Entry) -> None:
    request = f"GET {entry.resource.path(entry.namespace, entry.name)}"
    try:
        async with gate:
            found = await client.get(entry.resource, entry.key, metadata_only=True)
    except Absent:
        _conclude(proof, entry, None, Read(request, utc_now()))
    except ApiError as error:
        await _without_its_kind(client, ledger, proof, [entry], error)
    else:
        # Another object of this name proves as much as none: the one that was meant is not there.
        same = found if found.meta.uid == entry.uid else None
        if same is None:
            proof.taken[entry.uid] = found.meta.uid
        _conclude(proof, entry, same, Read(request, utc_now(), found.meta.resource_version))


async def _list(
    client: Client,
    gate: asyncio.Semaphore,
    ledger: Ledger,
    proof: Proof,
    resource: Resource,
    namespace: str,
    entries: list[Entry],
) -> None:
    try:
        async with gate:
            page = await client.list(resource, namespace, metadata_only=True)
    except ApiError as error:
        await _without_its_kind(client, ledger, proof, entries, error)
        return
    read = Read(f"LIST {resource.path(namespace)}", utc_now(), page.resource_version)
    by_uid = {obj.meta.uid: obj for obj in page.items}
    by_key = {obj.key: obj.meta.uid for obj in page.items}
    for entry in entries:
        if by_key.get(entry.key, entry.uid) != entry.uid:
            proof.taken[entry.uid] = by_key[entry.key]
        _conclude(proof, entry, by_uid.get(entry.uid), read)


async def _without_its_kind(
    client: Client, ledger: Ledger, proof: Proof, entries: list[Entry], error: ApiError
) -> None:
    """What could not be read is unread, unless the whole kind is gone."""
    resource = entries[0].resource
    gone = isinstance(error, KindNotServed) and await kind_is_gone(client, ledger, resource)
    read = Read(f"GET {DEFINITIONS.path('', _definition(resource))}", utc_now())
    for entry in entries:
        if gone:
            _conclude(proof, entry, None, read)
        else:
            proof.unread[entry.uid] = error.message


async def kind_is_gone(client: Client, ledger: Ledger, resource: Resource) -> bool:
    """Whether a kind is not served because its definition, which is in the ledger, is gone: it outlives its objects."""
    name = _definition(resource)
    if not any(each.name == name and each.resource.kind == DEFINITIONS.kind for each in ledger.going):
        return False
    try:
        await client.get(DEFINITIONS, ObjectKey("", name), metadata_only=True)
    except Absent:
        return True
    except ApiError:
        return False
    return False


def _definition(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}"


def _conclude(proof: Proof, entry: Entry, found: Object | None, read: Read) -> None:
    if entry.disposition is Disposition.KEEP:
        proof.kept[entry.uid] = found is not None
    elif found is None:
        proof.gone[entry.uid] = read
    else:
        proof.there.append(found)
