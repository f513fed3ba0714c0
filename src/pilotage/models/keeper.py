"""Keeps what Models ask for: fetched into the cache once, or checked where it lies, and remembered across restarts.

A file:// source is used where it is: weights are large, and it is here already. Everything else is fetched into the
cache. What was found out about a content (its checksum, its format, that it is no good) is written down with the
validator or the time stamp of exactly that content. So a file is hashed once and not at every start, and a source
whose content is no good is asked every few minutes whether it has changed, and not read again until it has.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pilotage.models.blocking import Blocking, in_thread
from pilotage.models.fetch import Fetched, Progress, Terms, Unfit, fetch, wrong_checksum
from pilotage.models.format import Format, format_from, read_format
from pilotage.models.place import stamp
from pilotage.models.problems import Passing, Problem, Reason, Standing, storage_problem
from pilotage.models.shares import Shares
from pilotage.models.source import FileSource, Source, file_name
from pilotage.models.sources.files import open_allowed, opened_path, validator_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractAsyncContextManager

    from pilotage.models.access import Access, Credentials
    from pilotage.models.cache import Cache, Entry, Removed

AT_ONCE_MAX = 8
"""So many sources are fetched at a time, in fair shares for the namespaces that ask."""
HASH_BYTES = 16 << 20
DISTRUST_SECONDS = 3600.0
"""A content that was no good, of a source that does not say when it changes, is read again after so long."""


class Order(NamedTuple):
    """What a Model asks for. `audience` names the Secret it is read with; those who name another do not share.

    `retain`: what is fetched stays when its last user goes. `namespace`: whose share of the fetcher it takes. Neither
    is a part of what is asked for.
    """

    source: Source
    sha256: str = ""
    format: str = ""
    audience: str = ""
    retain: bool = False
    namespace: str = ""


class Kept(NamedTuple):
    """A file that is here, whole and checked."""

    path: str
    size: int
    sha256: str
    """Empty for a file that is used where it lies and for which no checksum was given."""
    format: Format
    in_place: bool
    identity: str = ""
    """Identity of a file that was checked, compared when it is opened by name."""


class Keeping(Protocol):
    """What the controller of Models needs; `Keeper` does it for real."""

    async def keep(self, order: Order, user: str, credentials: Credentials, progress: Progress) -> Kept:
        """See `Keeper`."""

    async def confirm(self, kept: Kept) -> None:
        """See `Keeper`."""

    async def release(self, user: str, *, retain: bool | None = None, but: Order | None = None) -> list[Removed]:
        """See `Keeper`."""

    async def sweep(self, users: Collection[str]) -> list[Removed]:
        """See `Keeper`."""


class Keeper:
    """See the module."""

    def __init__(
        self, cache: Cache, access: Access, *, blocking: Blocking = in_thread, shares: Shares | None = None
    ) -> None:
        self._cache = cache
        self._access = access
        self._blocking = blocking
        self._shares = shares or Shares(AT_ONCE_MAX)
        self._locks: weakref.WeakValueDictionary[Path, asyncio.Lock] = weakref.WeakValueDictionary()

    async def keep(self, order: Order, user: str, credentials: Credentials, progress: Progress) -> Kept:
        """See to it that what is ordered is here, for this user; a `Problem` says why it is not.

        Called again, it costs a look at the file. A cancelled call is continued by the next one.
        """
        entry = self._entry(order)
        async with self._lock(entry):
            if isinstance(order.source, FileSource):
                return await self._in_place(order, order.source, entry, user, progress)
            kept = await self._blocking(self._here, order, entry, user)
            if kept is not None:
                return kept
            return await self._shares.run(order.namespace, lambda: self._fetch(order, entry, credentials, progress))

    async def confirm(self, kept: Kept) -> None:
        """Check that a path still leads to the file that was checked; a `Problem` where it does not.

        For whoever hands the path to another program, right before it does.
        """
        if await self._blocking(self._identity, kept) != kept.identity:
            raise Passing(Reason.CHANGED, f"{kept.path} is another file than the one that was checked")

    def _identity(self, kept: Kept) -> str:
        if not kept.in_place:
            try:
                return validator_of(Path(kept.path).stat())
            except OSError:
                return ""
        descriptor = open_allowed(Path(kept.path), self._access)
        try:
            return validator_of(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    async def release(self, user: str, *, retain: bool | None = None, but: Order | None = None) -> list[Removed]:
        """A user goes, from everything `but` one order. OSError if something could not be removed."""
        return await self._blocking(
            self._cache.release, user, retain=retain, but=None if but is None else self._entry(but)
        )

    async def sweep(self, users: Collection[str]) -> list[Removed]:
        """Remove what was kept for users that are none any more. Only while nothing is being fetched."""
        return await self._blocking(self._cache.sweep, users)

    def _entry(self, order: Order) -> Entry:
        return self._cache.entry(repr(order.source), order.sha256, order.format, order.audience)

    def _lock(self, entry: Entry) -> AbstractAsyncContextManager[None]:
        lock = self._locks.get(entry.folder)
        if lock is None:
            lock = self._locks[entry.folder] = asyncio.Lock()
        return lock

    # In the cache

    def _here(self, order: Order, entry: Entry, user: str) -> Kept | None:
        """What was fetched before, if it is still the same file."""
        try:
            entry.use(user, retain=order.retain)
        except OSError as error:
            raise storage_problem(error, str(entry.folder)) from error
        note, path = entry.note(), self._target(order, entry)
        try:
            about = path.stat()
        except OSError:
            return None
        if note.get("stamp") != stamp(about) or "format" not in note:
            return None  # not as it was published: fetched again, and replaced
        seen = format_from(note["format"])
        return Kept(str(path), about.st_size, note["sha256"], seen, in_place=False, identity=validator_of(about))

    async def _fetch(self, order: Order, entry: Entry, credentials: Credentials, progress: Progress) -> Kept:
        note = await self._blocking(entry.note)
        shown = str(order.source)
        formats: list[Format] = []

        def check(path: Path, fetched: Fetched) -> None:
            formats.append(read_format(path, shown, order.format))
            # Before the file appears under its name: a rename leaves its time stamp alone.
            entry.write_note(_about_content(fetched, formats[0], path.stat()))

        target = self._target(order, entry)
        terms = Terms(order.sha256, lambda validator: _known_problem(note, validator), check)
        try:
            fetched = await fetch(
                order.source,
                target,
                self._access,
                credentials=credentials,
                terms=terms,
                progress=progress,
                blocking=self._blocking,
            )
        except Unfit as problem:
            await self._remember(entry, problem, problem.fetched.validator)
            raise
        identity = validator_of(await self._blocking(target.stat))
        return Kept(str(target), fetched.size, fetched.sha256, formats[0], in_place=False, identity=identity)

    def _target(self, order: Order, entry: Entry) -> Path:
        return entry.folder / file_name(order.source)

    # Where it lies

    async def _in_place(self, order: Order, source: FileSource, entry: Entry, user: str, progress: Progress) -> Kept:
        descriptor = await self._blocking(open_allowed, Path(source.path), self._access)
        try:
            about = os.fstat(descriptor)
            validator = validator_of(about)
            # Where it really lies: a link on the way can lead elsewhere a moment later.
            path = str(opened_path(descriptor, Path(source.path)))
            try:
                await self._blocking(entry.use, user, retain=order.retain)
            except OSError as error:
                raise storage_problem(error, str(entry.folder)) from error
            note = await self._blocking(entry.note)
            if (known := _known_problem(note, validator)) is not None:
                raise known
            if note.get("validator") == validator and "format" in note:
                found, seen = note["sha256"], format_from(note["format"])
                return Kept(path, about.st_size, found, seen, in_place=True, identity=validator)
            try:
                found, seen = await self._look(order, descriptor, entry, progress)
                return Kept(path, about.st_size, found, seen, in_place=True, identity=validator)
            except Standing as problem:
                await self._remember(entry, problem, validator)
                raise
            except OSError as error:
                raise storage_problem(error, str(entry.folder)) from error
        finally:
            os.close(descriptor)

    async def _look(self, order: Order, descriptor: int, entry: Entry, progress: Progress) -> tuple[str, Format]:
        """Hash and read a file that nobody has looked at yet."""
        about, shown = os.fstat(descriptor), str(order.source)
        found = ""
        if order.sha256:
            found = await self._shares.run(
                order.namespace, lambda: self._hash(descriptor, about.st_size, shown, progress)
            )
            if found != order.sha256:
                raise wrong_checksum(shown, found, order.sha256)
        path = Path(f"/dev/fd/{descriptor}")  # exactly what was opened and allowed, whatever the name means by now
        seen = await self._blocking(read_format, path, shown, order.format)
        fetched = Fetched(about.st_size, found, validator_of(about))
        if validator_of(os.fstat(descriptor)) != fetched.validator:
            raise Passing(Reason.CHANGED, f"{shown} was written to while it was read")
        await self._blocking(entry.write_note, _about_content(fetched, seen, about))
        return found, seen

    async def _hash(self, descriptor: int, size: int, shown: str, progress: Progress) -> str:
        digest = hashlib.sha256()
        done = 0
        while True:
            try:
                block = await self._blocking(os.pread, descriptor, HASH_BYTES, done)
            except OSError as error:
                raise Passing(Reason.CONNECTION, f"{shown} cannot be read: {error.strerror}") from error
            if not block:
                return digest.hexdigest()
            await self._blocking(digest.update, block)
            done += len(block)
            progress(done, size)

    async def _remember(self, entry: Entry, problem: Standing, validator: str) -> None:
        """That this content is no good."""
        if problem.reason not in (Reason.CHECKSUM, Reason.BAD_FORMAT):
            return
        told = {"reason": problem.reason.value, "what": problem.what, "to_do": problem.to_do}
        try:
            await self._blocking(entry.write_note, {"validator": validator, "problem": told, "at": time.time()})
        except OSError as error:
            raise storage_problem(error, str(entry.folder)) from error


def _about_content(fetched: Fetched, seen: Format, about: os.stat_result) -> dict[str, Any]:
    return {
        "validator": fetched.validator,
        "sha256": fetched.sha256,
        "format": [*seen],
        "stamp": stamp(about),
    }


def _known_problem(note: dict[str, Any], validator: str) -> Problem | None:
    """What is known to be wrong with the content of this validator."""
    told = note.get("problem")
    if told is None or note.get("validator") != validator:
        return None
    if not validator and time.time() - note.get("at", 0.0) > DISTRUST_SECONDS:
        return None
    return Standing(Reason(told["reason"]), told["what"], told["to_do"])
