"""The proof: everything in a ledger is read afresh, consistently, and by uid.

Few objects of a kind are read one by one, many by a list of their kind. A read that fails proves nothing: what it was
about is unread, and the proof does not hold.

A kind that is not served proves nothing either: its API server may be away, and its objects with it. There is one
exception, a kind that is known to be defined by a CustomResourceDefinition, because the definition is in the ledger or
the catalogue says so, and of which a fresh read shows that the definition is gone. A definition outlives the objects of
its kind: so there are none. Kinds of an aggregated API server have no definition, and so the lack of one says nothing
about a kind of which nothing is known.

The same lists show what appeared since, and belongs to something in the ledger.
"""

import asyncio
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from pilotage.catalogue.registry import defined_groups
from pilotage.kube import DEFINITIONS, Absent, ApiError, Client, KindNotServed, Object, ObjectKey, Resource
from pilotage.runtime.clock import utc_now
from pilotage.teardown.engine.newcomers import owner_of
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Pointer

ONE_BY_ONE_MAX = 2
"""Objects of a kind that are read one by one. More requests cost more than one list of the kind."""
AT_ONCE = 8
"""More connections than there are already cost more than they bring."""
POINTERS_MAX = 200


class Read(msgspec.Struct, frozen=True):
    """One read that proves something."""

    request: str
    at: dt.datetime
    resource_version: str = ""
    """Version of the collection; empty for a read of one object, which was not there."""


class Proof(msgspec.Struct, frozen=True):
    """Result of reading everything afresh."""

    gone: dict[str, Read]
    """The uids that are proven gone, and by which read."""
    there: list[Object]
    """Objects that were taken for gone and are there."""
    unread: dict[str, str]
    """The uids that could not be read, with why."""
    kept: dict[str, bool]
    """Whether each object that was to be kept is there, by uid."""
    taken: dict[str, str]
    """Uid, by that of a gone object, of another one that has its name now and is foreign."""
    pointers: list[str]
    """References that are left: the referring objects are there, or could not be read."""
    newcomers: Sequence[tuple[Resource, Object]] = ()
    """Objects that belong to something in the ledger, and are not in it."""
    unsearched: Sequence[str] = ()
    """The kinds that could not be searched for such, with why."""

    @property
    def holds(self) -> bool:
        """Whether all that was to go is gone, and nothing came after it."""
        return not self.there and not self.unread and not self.newcomers

    @property
    def resource_version(self) -> str:
        """The newest version that a read was made at."""
        versions = [int(read.resource_version) for read in self.gone.values() if read.resource_version.isdigit()]
        return str(max(versions)) if versions else ""


async def prove(
    client: Client,
    ledger: Ledger,
    search: Iterable[Resource] = (),
    *,
    one_by_one_max: int = ONE_BY_ONE_MAX,
    proven: Mapping[str, Read] = MappingProxyType({}),
) -> Proof:
    """Read all entries, and `search` these kinds, where something goes, for what belongs to it.

    `one_by_one_max`: more objects of a kind in one namespace than this are read by one list of all of them there.
    `proven`: reads that have shown the absence of a uid during this teardown. A uid never comes back, so what would be
    read one by one is not read again. Never raises an ApiError: what cannot be read is unread.
    """
    return await _Proving(client, ledger, proven).prove(search, one_by_one_max)


class _Proving:
    """One proof in the making."""

    def __init__(self, client: Client, ledger: Ledger, proven: Mapping[str, Read]) -> None:
        self._client = client
        self._ledger = ledger
        self._proven = proven
        self._going = {entry.uid: entry for entry in ledger.going}
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._newcomers: list[tuple[Resource, Object]] = []
        self._unsearched: list[str] = []
        self._proof = Proof({}, [], {}, {}, {}, [], self._newcomers, self._unsearched)

    async def prove(self, search: Iterable[Resource], one_by_one_max: int) -> Proof:
        places: dict[tuple[Resource, str], list[Entry]] = {}
        for entry in self._ledger.entries:
            places.setdefault((entry.resource, entry.namespace), []).append(entry)
        known = {(resource.group, resource.kind): resource for resource, _ in places}
        namespaces = sorted({entry.namespace for entry in self._ledger.going} - {""})
        searched = {
            (known.get((resource.group, resource.kind), resource), namespace)
            for resource in search
            for namespace in namespaces
        }
        reads = []
        for (resource, namespace), entries in places.items():
            if len(entries) > one_by_one_max or (resource, namespace) in searched:
                reads.append(self._list(resource, namespace, entries))
            else:
                reads += map(self._get, entries)
        reads += (self._list(*place, []) for place in sorted(searched - places.keys()))
        reads += map(self._look_at, self._ledger.pointers[:POINTERS_MAX])
        await asyncio.gather(*reads)
        return self._proof

    async def _look_at(self, pointer: Pointer) -> None:
        """Whether something that pointed at what is gone is still there."""
        key = ObjectKey(pointer.namespace, pointer.name)
        try:
            async with self._gate:
                found = await self._client.get(pointer.resource, key, metadata_only=True)
        except Absent:
            return
        except ApiError as error:
            self._proof.pointers.append(f"{pointer.text}: {error.message}")
            return
        if found.meta.uid == pointer.uid:
            self._proof.pointers.append(pointer.text)

    async def _get(self, entry: Entry) -> None:
        if entry.uid in self._proven:
            self._conclude(entry, None, self._proven[entry.uid])
            return
        try:
            async with self._gate:
                found = await self._client.get(entry.resource, entry.key, metadata_only=True)
        except Absent:
            self._conclude(entry, None, read_of(entry))
        except ApiError as error:
            await self._without_its_kind([entry], error)
        else:
            # Another object of this name proves as much as none: the one that was meant is not there.
            same = found if found.meta.uid == entry.uid else None
            if same is None:
                self._proof.taken[entry.uid] = found.meta.uid
            self._conclude(entry, same, read_of(entry, found.meta.resource_version))

    async def _list(self, resource: Resource, namespace: str, entries: list[Entry]) -> None:
        """One kind in one place: the entries of it, and what belongs to others."""
        try:
            async with self._gate:
                page = await self._client.list(resource, namespace, metadata_only=True)
        except ApiError as error:
            if entries:
                await self._without_its_kind(entries, error)
            elif not isinstance(error, KindNotServed):
                self._unsearched.append(f"{resource.plural} could not be searched for new parts: {error.message}")
            return
        read = Read(f"LIST {resource.path(namespace)}", utc_now(), page.resource_version)
        by_uid = {obj.meta.uid: obj for obj in page.items}
        by_key = {obj.key: obj.meta.uid for obj in page.items} if entries else {}
        for entry in entries:
            if by_key.get(entry.key, entry.uid) != entry.uid:
                self._proof.taken[entry.uid] = by_key[entry.key]
            self._conclude(entry, by_uid.pop(entry.uid, None), read)
        self._newcomers += (
            (resource, obj) for obj in by_uid.values() if obj.meta.owner_references and owner_of(obj, self._going)
        )

    async def _without_its_kind(self, entries: list[Entry], error: ApiError) -> None:
        """Mark entries unread, unless their whole kind is gone."""
        proof = await definition_gone(self._client, self._ledger, entries[0].resource, error)
        for entry in entries:
            if isinstance(proof, str):
                self._proof.unread[entry.uid] = proof
            else:
                self._conclude(entry, None, proof)

    def _conclude(self, entry: Entry, found: Object | None, read: Read) -> None:
        if entry.disposition is Disposition.KEEP:
            self._proof.kept[entry.uid] = found is not None
        elif found is None:
            self._proof.gone[entry.uid] = read
        else:
            self._proof.there.append(found)


def read_of(entry: Entry, resource_version: str = "") -> Read:
    """The read of one object that has just ended."""
    return Read(f"GET {entry.resource.path(entry.namespace, entry.name)}", utc_now(), resource_version)


async def definition_gone(client: Client, ledger: Ledger, resource: Resource, error: ApiError) -> Read | str:
    """The read that shows that there are no objects of a kind any more; or else why what could not be read is unread.

    `error` is that of the read that failed. The module says when the lack of a definition is a proof.
    """
    if not isinstance(error, KindNotServed):
        return error.message
    name = f"{resource.plural}.{resource.group}"
    in_ledger = any(each.name == name and each.resource.kind == DEFINITIONS.kind for each in ledger.going)
    if not in_ledger and resource.group not in defined_groups():
        return error.message
    try:
        await client.get(DEFINITIONS, ObjectKey("", name), metadata_only=True)
    except Absent:
        return Read(f"GET {DEFINITIONS.path('', name)}", utc_now())
    except ApiError as unknown:
        return f"{error.message}; {unknown.message}"
    return error.message
