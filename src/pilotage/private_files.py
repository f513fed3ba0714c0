"""Folders and files that hold secrets: used only where nobody else can have put anything there.

Whoever can write to a folder decides which certificate authority, token or socket we find in it. So a folder counts
as ours only if it belongs to the user that we run as and nobody else can write to it; the same holds for each file
that we believe. A symbolic link is followed only to a folder that is ours, and only if the link is ours, too.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_WRITABLE_BY_OTHERS = 0o022


class NotPrivate(OSError):
    """A folder or file that somebody else owns or can write to, in a phrase that names it."""


def make_private(folder: Path, *, besides: Collection[int] = ()) -> None:
    """Make a folder for its owner alone, or check the one that is there. Raises NotPrivate, or another OSError.

    `besides`: further users (uids) that it may belong to.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_private(folder, besides=besides)


def check_private(folder: Path, *, besides: Collection[int] = ()) -> None:
    """Raise NotPrivate unless a folder is ours alone to write to. Raises another OSError where there is none."""
    for found in (folder.lstat(), folder.stat()):
        _check_owner(folder, found.st_uid, {os.geteuid(), *besides})
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise NotPrivate(f"other users can write to {folder} (chmod go-w {folder} ends that)")


def read_private(path: Path) -> bytes:
    """The content of a file of ours, which is not a link. Raises NotPrivate, or another OSError."""
    with os.fdopen(_open_private(path, os.O_RDONLY), "rb") as file:
        return file.read()


def open_private(path: Path) -> int:
    """A descriptor to write to a file of ours, made for its owner alone if it is missing. As `read_private` raises."""
    return _open_private(path, os.O_RDWR | os.O_CREAT)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # after a power loss there is the old content or the new one, and never none
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _open_private(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPrivate(f"{path} is a symbolic link") from error
        raise
    try:
        found = os.fstat(descriptor)
        _check_owner(path, found.st_uid, {os.geteuid()})
        if not stat.S_ISREG(found.st_mode):
            raise NotPrivate(f"{path} is not a regular file")
        if found.st_mode & _WRITABLE_BY_OTHERS:
            raise NotPrivate(f"other users can write to {path}, so what is in it cannot be trusted")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_owner(path: Path, owner: int, ours: Collection[int]) -> None:
    if owner not in ours:
        raise NotPrivate(f"{path} belongs to {_name(owner)}, and this runs as {_name(os.geteuid())}")


def _name(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"
