"""The store of weights: fetched into the cache once, or checked in place, and remembered across restarts.

A file:// source is used where it is: weights are large, and it is here already. Everything else is fetched into the
cache. What was found out about a content (its checksum, its format, that it is no good) is written down with the
validator or the time stamp of exactly that content. So a file is hashed once and not at every start, and a source
whose content is no good is asked every few minutes whether it has changed, and not read again until it has.
"""

import asyncio
import hashlib
import os
import time
import weakref
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pilotage.models.access import Access, SourceCredentials
from pilotage.models.blocking import Blocking, in_thread
from pilotage.models.cache import CacheEntry, ModelCache, Removed
from pilotage.models.fetch import Fetched, Progress, Terms, Unfit, fetch, wrong_checksum
from pilotage.models.format import WeightsFormat, format_from, read_format
from pilotage.models.place import stamp
from pilotage.models.problems import PermanentError, Problem, Reason, TransientError, storage_problem
from pilotage.models.shares import Shares
from pilotage.models.source import FileSource, Source, file_name
from pilotage.models.sources.files import open_allowed, opened_path, validator_of

AT_ONCE_MAX = 8
"""Number of sources that are fetched at a time, in fair shares for the namespaces."""
HASH_BYTES = 16 << 20
DISTRUST_SECONDS = 3600.0
"""A content that was no good, of a source that does not say when it changes or how long it is, is read again then."""


class FetchRequest(NamedTuple):
    """A request for one source, by one user. Users that ask for the same content share one file."""

    source: Source
    sha256: str = ""
    format: str = ""
    secret: str = ""
    """Name of the Secret with the credentials; empty: none."""
    namespace: str = ""
    """Namespace of the user and of the Secret, and the one whose share of the fetcher is taken."""
    user: str = ""
    """Uid of the object that needs the file. The file stays for as long as it has a user."""
    retain: bool = False
    """Whether the file stays when its last user goes."""

    @property
    def audience(self) -> str:
        """Namespace and name of the Secret: requests that are read with different ones share no file."""
        return f"{self.namespace}/{self.secret}" if self.secret else ""


class Kept(NamedTuple):
    """A file that is here, whole and checked."""

    path: str
    size: int
    sha256: str
    """Empty for a file that is used where it lies and for which no checksum was given."""
    format: WeightsFormat
    in_place: bool
    identity: str = ""
    """Identity of a file that was checked, compared when it is opened by name."""


class ModelStore(Protocol):
    """Interface of `FileModelStore`, for the controllers that use it."""

    async def keep(self, request: FetchRequest, credentials: SourceCredentials, progress: Progress) -> Kept:
        """Fetch the source of a request unless its file is there."""

    async def confirm(self, kept: Kept) -> None:
        """Check that a path still leads to the file that was checked."""

    async def release(self, user: str, *, retain: bool | None = None, but: FetchRequest | None = None) -> list[Removed]:
        """Remove a user from its files."""

    async def sweep(self, users: Collection[str]) -> list[Removed]:
        """Remove the files of users that no longer exist."""


class FileModelStore:
    """A `ModelStore` on a `ModelCache`."""

    def __init__(
        self, cache: ModelCache, access: Access, *, blocking: Blocking = in_thread, shares: Shares | None = None
    ) -> None:
        self._cache = cache
        self._access = access
        self._blocking = blocking
        self._shares = shares or Shares(AT_ONCE_MAX)
        self._locks: weakref.WeakValueDictionary[Path, asyncio.Lock] = weakref.WeakValueDictionary()

    async def keep(self, request: FetchRequest, credentials: SourceCredentials, progress: Progress) -> Kept:
        """Fetch the source unless its file is here; a `Problem` says why that failed.

        Called again, it costs a stat of the file. A cancelled call is continued by the next one.
        """
        entry = self._entry(request)
        async with self._lock(entry):
            if isinstance(request.source, FileSource):
                return await self._in_place(request, request.source, entry, progress)
            kept = await self._blocking(self._here, request, entry)
            if kept is not None:
                return kept
            return await self._shares.run(request.namespace, lambda: self._fetch(request, entry, credentials, progress))

    async def confirm(self, kept: Kept) -> None:
        """Check that a path still leads to the file that was checked; a `Problem` where it does not.

        For whoever hands the path to another program, right before it does.
        """
        if await self._blocking(self._identity, kept) != kept.identity:
            raise TransientError(Reason.CHANGED, f"{kept.path} is another file than the one that was checked")

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

    async def release(self, user: str, *, retain: bool | None = None, but: FetchRequest | None = None) -> list[Removed]:
        """Remove a user from all files, `but` the one of a request. OSError if something could not be removed."""
        return await self._blocking(
            self._cache.release, user, retain=retain, but=None if but is None else self._entry(but)
        )

    async def sweep(self, users: Collection[str]) -> list[Removed]:
        """Remove what was kept for users that are none any more. Only while nothing is being fetched."""
        return await self._blocking(self._cache.sweep, users)

    def _entry(self, request: FetchRequest) -> CacheEntry:
        return self._cache.entry(repr(request.source), request.sha256, request.format, request.audience)

    def _lock(self, entry: CacheEntry) -> AbstractAsyncContextManager[None]:
        lock = self._locks.get(entry.folder)
        if lock is None:
            lock = self._locks[entry.folder] = asyncio.Lock()
        return lock

    # In the cache

    def _here(self, request: FetchRequest, entry: CacheEntry) -> Kept | None:
        """The file of an earlier fetch, if it is unchanged."""
        try:
            entry.use(request.user, retain=request.retain)
        except OSError as error:
            raise storage_problem(error, str(entry.folder)) from error
        note, path = entry.note(), self._target(request, entry)
        try:
            about = path.stat()
        except OSError:
            return None
        if note.get("stamp") != stamp(about) or "format" not in note:
            return None  # not as it was published: fetched again, and replaced
        seen = format_from(note["format"])
        return Kept(str(path), about.st_size, note["sha256"], seen, in_place=False, identity=validator_of(about))

    async def _fetch(
        self, request: FetchRequest, entry: CacheEntry, credentials: SourceCredentials, progress: Progress
    ) -> Kept:
        note = await self._blocking(entry.note)

        def record(path: Path, fetched: Fetched) -> None:
            # Before the file appears under its name: a rename leaves its time stamp alone.
            entry.write_note(_about_content(fetched, path.stat()))

        target = self._target(request, entry)
        terms = Terms(request.sha256, request.format, lambda validator: _known_problem(note, validator), record)
        try:
            fetched = await fetch(
                request.source,
                target,
                self._access,
                credentials=credentials,
                terms=terms,
                progress=progress,
                blocking=self._blocking,
            )
        except Unfit as problem:
            await self._remember(entry, problem, problem.validator, certain=problem.certain)
            raise
        identity = validator_of(await self._blocking(target.stat))
        return Kept(str(target), fetched.size, fetched.sha256, fetched.format, in_place=False, identity=identity)

    def _target(self, request: FetchRequest, entry: CacheEntry) -> Path:
        return entry.folder / file_name(request.source)

    # Where it lies

    async def _in_place(self, request: FetchRequest, source: FileSource, entry: CacheEntry, progress: Progress) -> Kept:
        descriptor = await self._blocking(open_allowed, Path(source.path), self._access)
        try:
            about = os.fstat(descriptor)
            # Where it really lies: a link on the way can lead elsewhere a moment later.
            path = str(opened_path(descriptor, Path(source.path)))
            try:
                await self._blocking(entry.use, request.user, retain=request.retain)
                found, seen = await self._content(request, descriptor, entry, progress)
            except OSError as error:
                raise storage_problem(error, str(entry.folder)) from error
            kept = Kept(path, about.st_size, found, seen, in_place=True, identity=validator_of(about))
            # Others get the path and no descriptor: it has to lead to the file that was checked.
            if await self._blocking(self._identity, kept) != kept.identity:
                raise TransientError(Reason.CHANGED, f"{source} was replaced while it was checked")
            return kept
        finally:
            os.close(descriptor)

    async def _content(
        self, request: FetchRequest, descriptor: int, entry: CacheEntry, progress: Progress
    ) -> tuple[str, WeightsFormat]:
        """Checksum and format of an open file, from the note about exactly this content or from the content itself."""
        validator = validator_of(os.fstat(descriptor))
        note = await self._blocking(entry.note)
        if (known := _known_problem(note, validator)) is not None:
            raise known
        if note.get("validator") == validator and "format" in note:
            return note["sha256"], format_from(note["format"])
        try:
            return await self._look(request, descriptor, entry, progress)
        except PermanentError as problem:
            await self._remember(entry, problem, validator)
            raise

    async def _look(
        self, request: FetchRequest, descriptor: int, entry: CacheEntry, progress: Progress
    ) -> tuple[str, WeightsFormat]:
        """Hash and read a file that nobody has looked at yet."""
        about, shown = os.fstat(descriptor), str(request.source)
        found = ""
        if request.sha256:
            found = await self._shares.run(
                request.namespace, lambda: self._hash(descriptor, about.st_size, shown, progress)
            )
            if found != request.sha256:
                raise wrong_checksum(shown, found, request.sha256)
        path = Path(f"/dev/fd/{descriptor}")  # exactly what was opened and allowed, whatever the name means by now
        seen = await self._blocking(read_format, path, shown, request.format)
        fetched = Fetched(about.st_size, found, validator_of(about), seen)
        if validator_of(os.fstat(descriptor)) != fetched.validator:
            raise TransientError(Reason.CHANGED, f"{shown} was written to while it was read")
        await self._blocking(entry.write_note, _about_content(fetched, about))
        return found, seen

    async def _hash(self, descriptor: int, size: int, shown: str, progress: Progress) -> str:
        digest = hashlib.sha256()
        done = 0
        while True:
            try:
                block = await self._blocking(os.pread, descriptor, HASH_BYTES, done)
            except OSError as error:
                raise TransientError(Reason.CONNECTION, f"{shown} cannot be read: {error.strerror}") from error
            if not block:
                return digest.hexdigest()
            await self._blocking(digest.update, block)
            done += len(block)
            progress(done, size)

    async def _remember(
        self, entry: CacheEntry, problem: PermanentError, validator: str, *, certain: bool = True
    ) -> None:
        """Record that this content was refused; one that is not `certain` is read again after `DISTRUST_SECONDS`."""
        if problem.reason not in (Reason.CHECKSUM, Reason.BAD_FORMAT):
            return
        told = {"reason": problem.reason.value, "what": problem.what, "to_do": problem.to_do, "certain": certain}
        try:
            await self._blocking(entry.write_note, {"validator": validator, "problem": told, "at": time.time()})
        except OSError as error:
            raise storage_problem(error, str(entry.folder)) from error


def _about_content(fetched: Fetched, about: os.stat_result) -> dict[str, Any]:
    return {
        "validator": fetched.validator,
        "sha256": fetched.sha256,
        "format": [*fetched.format],
        "stamp": stamp(about),
    }


def _known_problem(note: dict[str, Any], validator: str) -> Problem | None:
    """The problem that is known of the content with this validator, or None."""
    told = note.get("problem")
    if told is None or note.get("validator") != validator:
        return None
    certain = validator and told.get("certain")
    if not certain and time.time() - note.get("at", 0.0) > DISTRUST_SECONDS:
        return None
    return PermanentError(Reason(told["reason"]), told["what"], told["to_do"])
