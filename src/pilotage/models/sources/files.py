"""file://: a file of the machine that fetches, and only below the folders that its administrator has opened.

Symbolic links are followed and judged by where they lead. What is outside is refused before it is looked at, so that a
Model cannot be used to find out what else is there.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

from pilotage.models.access import Access
from pilotage.models.blocking import Blocking
from pilotage.models.problems import PermanentError, Reason, TransientError
from pilotage.models.source import FileSource
from pilotage.models.sources import Opened, Wanted

CHUNK_BYTES = 1 << 20


@contextlib.asynccontextmanager
async def open_source(source: FileSource, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open a local file below an allowed root."""
    descriptor = await wanted.blocking(open_allowed, Path(source.path), wanted.access)
    try:
        about = os.fstat(descriptor)
        validator = validator_of(about)
        start = wanted.start if wanted.validator == validator and wanted.start <= about.st_size else 0
        await wanted.blocking(os.lseek, descriptor, start, os.SEEK_SET)
        yield Opened(start, about.st_size, validator, _chunks(descriptor, source, wanted.blocking))
    finally:
        os.close(descriptor)


async def _chunks(descriptor: int, source: FileSource, blocking: Blocking) -> AsyncIterator[bytes]:
    while True:
        try:
            chunk = await blocking(os.read, descriptor, CHUNK_BYTES)
        except OSError as error:
            raise TransientError(
                Reason.CONNECTION, f"the file {source.path} cannot be read: {error.strerror}"
            ) from error
        if not chunk:
            return
        yield chunk


def validator_of(about: os.stat_result) -> str:
    """Facts that change with a file. The last of it, unlike the time stamp, nobody can set."""
    times = f"{about.st_mtime_ns:x}-{about.st_ctime_ns:x}"
    return f"{about.st_dev:x}-{about.st_ino:x}-{about.st_size:x}-{times}"


def open_allowed(path: Path, access: Access) -> int:
    """A descriptor of a regular file below an allowed root; `PermanentError` for anything else. Blocks."""
    roots = [Path(os.path.realpath(root)) for root in access.roots]
    asked = Path(os.path.normpath(path))
    if not any(asked.is_relative_to(root) for root in (*access.roots, *roots)):
        raise _not_allowed(path, access, "is not below")
    try:
        real = Path(os.path.realpath(path))  # also of what does not exist: whether it does is nobody's business outside
        if not any(real.is_relative_to(root) for root in roots):
            raise _not_allowed(path, access, "leads out of")
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(error, path, access) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PermanentError(
                Reason.NOT_A_FILE,
                f"{path} on host {access.host} is not a regular file",
                "Name one file in spec.source",
            )
        if not any(opened_path(descriptor, real).is_relative_to(root) for root in roots):
            raise _not_allowed(path, access, "leads out of")  # a folder on the way was swapped since we looked
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def opened_path(descriptor: int, believed: Path) -> Path:
    """Real path of an open file, from the kernel if it tells."""
    try:
        get_path = getattr(fcntl, "F_GETPATH", None)  # of macOS
        if get_path is None:
            return Path(f"/proc/self/fd/{descriptor}").readlink()
        return Path(os.fsdecode(fcntl.fcntl(descriptor, get_path, bytes(1024)).rstrip(b"\0")))
    except OSError:
        return believed


def _not_allowed(path: Path, access: Access, how: str) -> PermanentError:
    roots = ", ".join(map(str, access.roots)) or "none"
    return PermanentError(
        Reason.NOT_ALLOWED,
        f"the file {path} {how} the folders that may be read on host {access.host} ({roots})",
        "Put it into one of them and change spec.source, or let the administrator allow its folder",
    )


def _unreadable(error: OSError, path: Path, access: Access) -> PermanentError | TransientError:
    where = f"the file {path}"
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.ENAMETOOLONG:
            return PermanentError(
                Reason.FILE_MISSING,
                f"{where} does not exist on host {access.host}",
                "Put it there, or change spec.source",
            )
        case errno.EACCES | errno.EPERM:
            return PermanentError(
                Reason.NOT_READABLE,
                f"{where} on host {access.host} may not be read by Pilotage",
                "Give the user that Pilotage runs as the right to read it and to pass through its folders",
            )
        case errno.ELOOP | errno.ENXIO:
            return PermanentError(
                Reason.NOT_A_FILE,
                f"{where} on host {access.host} is not a regular file",
                "Name one file in spec.source",
            )
    return TransientError(Reason.CONNECTION, f"{where} on host {access.host} cannot be opened: {error.strerror}")
