"""GET of a collection: a list, or a chunk of one.

What a list holds is settled when it begins: references to objects that never change. It is then looked through, and
sent, piece by piece, and others are served in between. A list of one piece is answered at once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotage_harbor.apimachinery.calls import ServerResponse, integer, pause
from pilotage_harbor.core.objects import as_item, as_metadata, from_entry
from pilotage_harbor.core.offload import LARGE_BYTES, at_once
from pilotage_harbor.kinds.table import row, table
from pilotage_harbor.storage.store import Compacted
from pilotage_harbor.verbs.pages import encode_token, expired, range_of
from pilotage_harbor.verbs.reads import YAML, check_version_options, included
from pilotage_harbor.verbs.selection import Choice
from pilotage_harbor.verbs.yaml_output import as_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.offload import Offload
    from pilotage_harbor.kinds import Kind
    from pilotage_harbor.storage.store import StoredObject, VersionedStore
    from pilotage_harbor.verbs.negotiation import Form

PIECE_ENTRIES = 500
PIECE_BYTES = 256 * 1024
"""Size of the pieces that a list is encoded in: one takes some milliseconds."""
_YAML_PIECE_BYTES = 16 * 1024

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Page(NamedTuple):
    """Content of a list, or of a chunk of one: the entries, and the metadata as JSON."""

    entries: list[StoredObject]
    meta: bytes


class ListStream:
    """A list in pieces (see `Stream`): each is made when the one before it has been taken."""

    status = 200
    finite = True

    def __init__(self, pieces: Iterator[bytes], headers: Mapping[str, str], offload: Offload, user: UserInfo) -> None:
        self.headers = {"Content-Type": "application/json", **headers}
        self._pieces = pieces
        self._offload = partial(offload, user, LARGE_BYTES)
        self._begun = False

    async def chunks(self) -> list[bytes]:
        """The next piece of the list; empty at its end."""
        if self._begun:
            await pause()
        self._begun = True
        piece = await self._offload(partial(next, self._pieces, b""))
        return [piece] if piece else []

    def close(self) -> None:
        """Drop the rest of the list."""
        self._pieces = iter(())


async def list_(core: Core, kind: Kind, call: Call, namespace: str, form: Form) -> ServerResponse | ListStream:
    """A list, or a chunk of one."""
    return await listed(core, kind, await choose(core.store, kind, call, namespace), call, form)


async def choose(store: VersionedStore, kind: Kind, call: Call, namespace: str) -> Page:
    """Choose the content of a list."""
    choice = Choice(kind, call, namespace)
    check_version_options(call, watch=False, whole=True)
    integer(call, "timeoutSeconds")
    limit = max(integer(call, "limit") or 0, 0)
    at = range_of(store, call)
    try:
        found = (
            store.entries_at(kind.storage, at.version, namespace, at.after)
            if at.version
            else store.entries(kind.storage, namespace, at.after)
        )
    except Compacted:
        raise expired(call) from None
    version = at.version or store.version
    remaining: int | None = None
    if choice.selects:
        chosen = await _chosen(found.first(), choice, limit + 1 if limit else 0)
        more = bool(limit) and len(chosen) > limit
        chosen = chosen[:limit] if more else chosen
    else:
        chosen = found.first(limit)
        remaining = len(found) - len(chosen)
        more = remaining > 0
    last = encode_token(version, f"{chosen[-1].namespace}/{chosen[-1].name}") if more else ""
    return Page(chosen, _list_meta(kind, version, last, remaining))


async def _chosen(entries: list[StoredObject], choice: Choice, limit: int) -> list[StoredObject]:
    """Those that are meant; no more than `limit`, if there is one."""
    chosen: list[StoredObject] = []
    batches = _batches(entries, PIECE_BYTES) if choice.looks_into else [*_slices(entries)]
    for at, batch in enumerate(batches):
        if at:
            await pause()
        chosen += filter(choice.includes, batch)
        if limit and len(chosen) >= limit:
            return chosen[:limit]
    return chosen


def _slices(entries: list[StoredObject]) -> Iterator[list[StoredObject]]:
    for at in range(0, len(entries), PIECE_ENTRIES):
        yield entries[at : at + PIECE_ENTRIES]


async def listed(core: Core, kind: Kind, page: Page, call: Call, form: Form) -> ServerResponse | ListStream:
    """The answer that shows a list."""
    headers = YAML if form.yaml else {}
    offload = core.offload if form.yaml else at_once
    batches = _batches(page.entries, _YAML_PIECE_BYTES if form.yaml else PIECE_BYTES)
    pieces = _pieces(kind, page.meta, batches, call, form, core.now())
    if len(batches) <= 1:
        size = sum(len(entry.raw) for entry in page.entries)
        return ServerResponse(200, await offload(call.user, size, lambda: b"".join(pieces)), headers)
    if kind.converted_by_webhook:  # a webhook may have to be asked, for which it is too late once a list has begun
        made = []
        for piece in pieces:
            made.append(piece)
            await pause()
        return ServerResponse(200, b"".join(made), headers)
    return ListStream(_ended(pieces, b"" if form.yaml else b"\n"), headers, offload, call.user)


def _pieces(
    kind: Kind, meta: bytes, batches: list[list[StoredObject]], call: Call, form: Form, now: float
) -> Iterator[bytes]:
    if form.yaml:
        return _yaml_pieces(kind, meta, batches)
    if form.shape == "table":
        include = included(call)
        body = table(kind, (), now, include, form.version)
        head = _encode({**body, "metadata": _decode(meta)}).removesuffix(b"]}")

        def shown(entry: StoredObject) -> bytes:
            return _encode(row(kind, from_entry(kind, entry), now, include, form.version))

        return _json_pieces(head, batches, shown)
    if form.shape == "metadata":
        head = f'{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/{form.version}","metadata":'.encode()
        return _json_pieces(head + meta + b',"items":[', batches, lambda entry: as_metadata(entry, form.version))
    named = f'"apiVersion":"{kind.api_version}"', f'"kind":"{kind.list_kind}"'
    head = f'{{{",".join(named if kind.custom else reversed(named))},"metadata":'.encode() + meta + b',"items":['
    return _json_pieces(head, batches, lambda entry: as_item(kind, entry))


def _json_pieces(
    head: bytes, batches: list[list[StoredObject]], show: Callable[[StoredObject], bytes]
) -> Iterator[bytes]:
    before = head
    for batch in batches:
        yield before + b",".join(map(show, batch))
        before = b","
    yield b"]}" if batches else head + b"]}"


def _yaml_pieces(kind: Kind, meta: bytes, batches: list[list[StoredObject]]) -> Iterator[bytes]:
    """Keys are in order, so that the items come after the apiVersion."""
    yield as_yaml({"apiVersion": kind.api_version}) + (b"items:\n" if batches else b"items: []\n")
    for batch in batches:
        yield as_yaml([_decode(as_item(kind, entry)) for entry in batch])
    yield as_yaml({"kind": kind.list_kind, "metadata": _decode(meta)})


def _ended(pieces: Iterator[bytes], ending: bytes) -> Iterator[bytes]:
    yield from pieces
    if ending:
        yield ending


def _batches(entries: list[StoredObject], bytes_max: int) -> list[list[StoredObject]]:
    batches: list[list[StoredObject]] = []
    size = bytes_max
    for entry in entries:
        if size >= bytes_max or len(batches[-1]) >= PIECE_ENTRIES:
            batches.append([])
            size = 0
        batches[-1].append(entry)
        size += len(entry.raw)
    return batches


def _list_meta(kind: Kind, version: int, continue_: str, remaining: int | None) -> bytes:
    meta: dict[str, object] = {"resourceVersion": str(version)}
    if continue_ or kind.custom:
        meta["continue"] = continue_
    if remaining:
        meta["remainingItemCount"] = remaining
    return _encode(meta)
