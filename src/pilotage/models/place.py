"""Bring a source to a path that somebody else has chosen, and know the next time that it is there.

What was brought is described in a small hidden file beside it, with the time stamp of exactly that file. A pod that
starts again, or the next one on the same volume, finds it and fetches nothing.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

from pilotage.models.access import Access, SourceCredentials
from pilotage.models.blocking import Blocking, in_thread
from pilotage.models.fetch import Fetched, Progress, Terms, fetch
from pilotage.models.format import WeightsFormat, format_from
from pilotage.models.partial import write_whole
from pilotage.models.source import Source


class Brought(NamedTuple):
    """A file that is where it was wanted."""

    size: int
    sha256: str
    format: WeightsFormat
    was_there: bool


async def bring(
    source: Source,
    target: Path,
    access: Access,
    *,
    sha256: str = "",
    kind: str = "",
    credentials: SourceCredentials = SourceCredentials(),  # noqa: B008 - cannot be changed
    progress: Progress = lambda *_: None,
    blocking: Blocking = in_thread,
) -> Brought:
    """Bring `target` to the content of `source`, whole and verified; a `Problem` says why that failed."""
    about = target.with_name(f".{target.name}.about")
    found = await blocking(_there, target, about, str(source), sha256)
    if found is not None:
        return found

    def record(path: Path, fetched: Fetched) -> None:
        said = {"source": str(source), "sha256": fetched.sha256, "format": [*fetched.format]}
        # Before the file has its name, so never about another one.
        content = json.dumps(said | {"stamp": stamp(path.stat())}).encode()
        write_whole(about, content, path.with_suffix(".new"))

    fetched = await fetch(
        source,
        target,
        access,
        credentials=credentials,
        terms=Terms(sha256, kind, record=record),
        progress=progress,
        blocking=blocking,
    )
    return Brought(fetched.size, fetched.sha256, fetched.format, was_there=False)


def stamp(about: os.stat_result) -> list[int]:
    """Mark by which a published file is recognised: a rename does not change it, a write does."""
    return [about.st_size, about.st_mtime_ns]


def _there(target: Path, about: Path, source: str, sha256: str) -> Brought | None:
    try:
        said = json.loads(about.read_bytes())
        size = target.stat().st_size
        same = said["source"] == source and said["stamp"] == stamp(target.stat())
        if same and sha256 in ("", said["sha256"]):
            return Brought(size, said["sha256"], format_from(said["format"]), was_there=True)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None
