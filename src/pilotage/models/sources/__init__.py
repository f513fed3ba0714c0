"""One file for each kind of source, behind one question: open it, from this byte on if it is still the same.

A file here has ``open_source(source, wanted)``, an async context manager that gives an `Opened`, or raises a `Problem`.
It is imported when the first source of its kind is opened. A new kind is a type in `pilotage.models.source`, a file
here, and a row in the table below.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import NamedTuple

from pilotage.models import source as kinds
from pilotage.models.access import Access, SourceCredentials
from pilotage.models.blocking import Blocking, in_thread

_FILES: dict[type, str] = {
    kinds.FileSource: "files",
    kinds.HttpSource: "web",
    kinds.HubSource: "hub",
    kinds.BucketSource: "buckets",
    kinds.ImageSource: "oci",
    kinds.ClaimSource: "claims",
}


class Wanted(NamedTuple):
    """Request to a source: from which offset on, for whom, and what may be reached for it.

    `validator` and `size` (of the whole, where it was known) are what came with the bytes before `start`; a source that
    has others by now, or does not say, starts from 0.
    """

    access: Access
    credentials: SourceCredentials = SourceCredentials()
    start: int = 0
    validator: str = ""
    size: int | None = None
    blocking: Blocking = in_thread


class Opened(NamedTuple):
    """An open source: its bytes from `start` on, which is 0 unless it was sure to be the same as before.

    `size` is that of the whole, where it is known. `validator` changes whenever the content does; "" where the source
    has none, and then it cannot be resumed. `sha256` is the checksum that the source itself promises.
    """

    start: int
    size: int | None
    validator: str
    chunks: AsyncIterator[bytes]
    sha256: str = ""


def open_source(source: kinds.Source, wanted: Wanted) -> AbstractAsyncContextManager[Opened]:
    """Open a source of any kind."""
    module = import_module(f"{__name__}.{_FILES[type(source)]}")
    opened: AbstractAsyncContextManager[Opened] = module.open_source(source, wanted)
    return opened
