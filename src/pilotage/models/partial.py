"""The temporary file of one writer: locked while it lives, and worth something after its death.

- Each writer has a file of its own, beside the target. While a writer lives it holds a lock on it, which the kernel
  takes away when the process dies, however it dies. So two writers never write one file.
- A file that nobody holds was left by a dead writer. The next one takes it over, or removes it.
- Beside it stands what it is a part of (source and validator), and up to which byte it is known to be on the disk:
  after a loss of power the rest may be anything. It is continued from there.
- The target appears by a rename, after everything was written through to the disk. It is never seen in part.

Everything here blocks, and may be called from any thread.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import threading
from io import FileIO
from pathlib import Path

CHECKPOINT_BYTES = 64 << 20
"""Bytes after which the written part is synced to the disk."""
REHASH_BYTES = 16 << 20


class Partial:
    """A file that is being fetched. Created by `claim`; ends with `publish`, `pause` or `discard`."""

    def __init__(self, target: Path, path: Path, file: FileIO, source: str, checkpoint_bytes: int) -> None:
        self.target = target
        self.path = path
        self.length = 0
        self.validator = ""
        self.size: int | None = None
        """Size of the whole, where the source said it."""
        self.sum = hashlib.sha256()
        self.hashed = 0
        self._file = file
        self._source = source
        self._checkpoint_bytes = checkpoint_bytes
        self._synced = 0
        self._lock = threading.Lock()
        self._note = path.with_suffix(".note")

    def begin(self, validator: str, size: int | None = None) -> None:
        """Start from nothing, with content of this validator ("": it cannot be continued later) and size."""
        with self._lock:
            self.sum, self.hashed = hashlib.sha256(), 0
            self.length = self._synced = 0
            self.validator, self.size = validator, size
            self._file.seek(0)
            self._file.truncate()
            self._write_note()

    def rehash(self) -> bool:
        """Hash some more of what was there before; whether all of it is."""
        with self._lock:
            self._file.seek(self.hashed)
            block = self._file.read(min(REHASH_BYTES, self.length - self.hashed))
            self.sum.update(block)
            self.hashed += len(block)
            self._file.seek(self.length)
            return self.hashed >= self.length or not block

    def write(self, block: bytes) -> None:
        """Append."""
        with self._lock:
            left = memoryview(block)
            while left:
                left = left[self._file.write(left) :]
            self.sum.update(block)
            self.length += len(block)
            self.hashed = self.length
            if self.length - self._synced >= self._checkpoint_bytes:
                self._checkpoint()

    def publish(self) -> None:
        """Make it the target, for good."""
        with self._lock:
            self._file.flush()
            os.fsync(self._file.fileno())
            self.path.replace(self.target)
            sync_folder(self.target.parent)
            for beside in (
                self.path.with_suffix(".new"),
                self._note,
            ):  # one that died before us may have left the first
                beside.unlink(missing_ok=True)
            self._file.close()

    def pause(self) -> None:
        """Leave it for the next writer, if it can be continued; else remove it."""
        with self._lock:
            if self._file.closed:
                return
            with contextlib.suppress(OSError):
                if self.validator and self.length:
                    self._checkpoint()
                else:
                    self._remove()
            with contextlib.suppress(OSError):
                self._file.close()

    def discard(self) -> None:
        """Remove it."""
        with self._lock:
            if self._file.closed:
                return
            with contextlib.suppress(OSError):
                self._remove()
            with contextlib.suppress(OSError):
                self._file.close()

    def continue_from(self, length: int, validator: str, size: int | None) -> None:
        """Take up a file that was left by an earlier fetch, after `length`."""
        self.length = self._synced = length
        self.validator, self.size = validator, size
        self._file.truncate(length)
        self._file.seek(length)

    def _checkpoint(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced = self.length
        self._write_note()

    def _write_note(self) -> None:
        note = {"source": self._source, "validator": self.validator, "size": self.size, "synced": self._synced}
        write_whole(self._note, json.dumps(note).encode(), self.path.with_suffix(".new"))

    def _remove(self) -> None:
        # The note last: a file without a note is removed by whoever finds it, a note without a file as well.
        for path in (self.path, self.path.with_suffix(".new"), self._note):
            path.unlink(missing_ok=True)


def claim(target: Path, source: str, *, checkpoint_bytes: int = CHECKPOINT_BYTES) -> Partial:
    """A file to write the target with: one that a dead writer left and that can be continued, or a new one.

    Of what dead writers left, the longest is taken, and everything else is removed. OSError if nothing can be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    found = [partial for path in _left(target) if (partial := _take(target, path, source, checkpoint_bytes))]
    found.sort(key=lambda partial: partial.length)
    best = found.pop() if found else None
    for other in found:
        other.discard()
    _tidy(target)
    return best or _make(target, source, checkpoint_bytes)


def write_whole(path: Path, content: bytes, temporary: Path | None = None) -> None:
    """Write a small file so that it is never seen in part. A `temporary` is one that nobody else writes."""
    temporary = temporary or path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make sure that names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _left(target: Path, suffixes: str = "partial") -> list[Path]:
    """The hidden files of this target's writers, and of no other's."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{12}}\.({suffixes})")
    return sorted(path for path in target.parent.iterdir() if name.fullmatch(path.name))


def _make(target: Path, source: str, checkpoint_bytes: int) -> Partial:
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(6)}.partial")
        file = path.open("x+b", buffering=0)
        if _lock(file) and _is_at(file, path):
            return Partial(target, path, file, source, checkpoint_bytes)
        file.close()  # somebody saw it before it was locked, and took it for left behind


def _take(target: Path, path: Path, source: str, checkpoint_bytes: int) -> Partial | None:
    """One that was left, now ours; None if somebody holds it, or if it cannot be continued, and then it is removed."""
    try:
        file = path.open("r+b", buffering=0)
    except FileNotFoundError:
        return None
    if not _lock(file) or not _is_at(file, path):
        file.close()
        return None
    partial = Partial(target, path, file, source, checkpoint_bytes)
    length, validator, size = _known(path.with_suffix(".note"), source)
    if not length or os.fstat(file.fileno()).st_size < length:
        partial.discard()
        return None
    partial.continue_from(length, validator, size)
    return partial


def _known(note: Path, source: str) -> tuple[int, str, int | None]:
    """Trusted length of a file, its validator, and the size of the whole; a length of 0 if none of it is trusted."""
    try:
        said = json.loads(note.read_bytes())
        length, validator = int(said["synced"]), str(said["validator"])
        size = None if said["size"] is None else int(said["size"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, "", None
    return (length, validator, size) if validator and said["source"] == source else (0, "", None)


def _tidy(target: Path) -> None:
    """Remove notes whose file is gone: it was published, or removed, by a writer that died right after."""
    for path in _left(target, "note|new"):
        if not path.with_suffix(".partial").exists():
            path.unlink(missing_ok=True)


def _lock(file: FileIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether this path still is the file that we have open."""
    ours = os.fstat(file.fileno())
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)
