"""Bring one source to one path: streamed, hashed on the way, continued where it broke off, and published whole."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pilotage.models.access import Access, SourceCredentials
from pilotage.models.blocking import Blocking, in_thread
from pilotage.models.format import ANY, Truncated, WeightsFormat, read_format
from pilotage.models.limits import Limits, check_size, check_space, steady
from pilotage.models.partial import CHECKPOINT_BYTES, Partial, claim
from pilotage.models.problems import NO_SPACE, PermanentError, Problem, Reason, TransientError, storage_problem
from pilotage.models.source import Source
from pilotage.models.sources import Opened, Wanted, open_source

BLOCK_BYTES = 1 << 20
"""Least size of a write: the hop into a thread for each costs nothing then."""

Progress = Callable[[int, int | None], None]
"""Is told how many bytes are here, and of how many, where that is known."""
T = TypeVar("T")


class Fetched(NamedTuple):
    """Result of a fetch."""

    size: int
    sha256: str
    validator: str
    format: WeightsFormat


class Unfit(PermanentError):
    """All of it came, and it is not what it should be. It was thrown away; `validator` is that of the content.

    `certain`: whether the content was complete for sure. Else the source may deliver another one without a change.
    """

    def __init__(self, problem: PermanentError, validator: str, *, certain: bool) -> None:
        super().__init__(problem.reason, problem.what, problem.to_do)
        self.validator = validator
        self.certain = certain


class Terms(NamedTuple):
    """Conditions for a file to be published.

    `format` is the one that it has to have (`read_format`). `known` is asked with the validator of an open source: a
    problem that is known of exactly that content is raised before any of it is read. `record` is called with the
    finished file (in a thread) before it is published.
    """

    sha256: str = ""
    format: str = ANY
    known: Callable[[str], Problem | None] = lambda _: None
    record: Callable[[Path, Fetched], None] = lambda *_: None


async def fetch(
    source: Source,
    target: Path,
    access: Access,
    *,
    credentials: SourceCredentials = SourceCredentials(),  # noqa: B008 - cannot be changed
    terms: Terms = Terms(),  # noqa: B008
    progress: Progress = lambda *_: None,
    blocking: Blocking = in_thread,
    checkpoint_bytes: int = CHECKPOINT_BYTES,
) -> Fetched:
    """Bring `source` to `target`, or raise a `Problem`; the target is then as it was before.

    Whatever else ends it (a cancellation, too) leaves what came so far for the next call, in this process or another.
    """
    try:
        partial = await blocking(claim, target, str(source), checkpoint_bytes=checkpoint_bytes)
    except OSError as error:
        raise storage_problem(error, str(target.parent)) from error
    try:
        opened = await _fill(partial, source, access, credentials, terms, progress, blocking)
        fetched = await _judge(partial, source, opened, terms, blocking)
        await blocking(terms.record, partial.path, fetched)
        await blocking(partial.publish)
    except PermanentError as problem:
        if isinstance(problem, Unfit) or problem.reason in (Reason.NO_SPACE, Reason.TOO_LARGE):
            await blocking(partial.discard)
        raise
    except OSError as error:
        await blocking(partial.discard if error.errno in NO_SPACE else partial.pause)
        raise storage_problem(error, str(target.parent)) from error
    finally:
        await blocking(partial.pause)
    return fetched


async def _fill(
    partial: Partial,
    source: Source,
    access: Access,
    credentials: SourceCredentials,
    terms: Terms,
    progress: Progress,
    blocking: Blocking,
) -> Opened:
    """Bring all of it, and return what the source said about it."""
    wanted = Wanted(access, credentials, partial.length, partial.validator, partial.size, blocking)
    limits, shown = access.limits, str(source)
    async with contextlib.AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(limits.open_seconds):
                opened = await stack.enter_async_context(open_source(source, wanted))
        except TimeoutError:
            raise TransientError(Reason.TIMED_OUT, f"{shown} was not answered in time") from None
        check_size(opened.size, limits, shown)
        if (problem := terms.known(opened.validator)) is not None:
            raise problem
        if opened.start == 0 or opened.start != partial.length:
            await blocking(partial.begin, opened.validator, opened.size)
        while not await blocking(partial.rehash):
            pass
        await blocking(check_space, partial.path.parent, max(0, (opened.size or 0) - partial.length), limits)
        progress(partial.length, opened.size)
        buffer = bytearray()
        async for chunk in steady(opened.chunks, limits, shown):
            buffer += chunk
            check_size(partial.length + len(buffer), limits, shown)
            if len(buffer) >= BLOCK_BYTES:
                await blocking(_write, partial, bytes(buffer), limits)
                buffer.clear()
                progress(partial.length, opened.size)
        if buffer:
            await blocking(_write, partial, bytes(buffer), limits)
        progress(partial.length, opened.size)
    if opened.size is not None and partial.length != opened.size:
        what = f"{source} should have {opened.size} bytes, and {partial.length} came"
        if partial.length > opened.size:
            await blocking(partial.begin, "")
        raise TransientError(Reason.INCOMPLETE, what)
    return opened


async def _judge(partial: Partial, source: Source, opened: Opened, terms: Terms, blocking: Blocking) -> Fetched:
    """Check what came. A file that is too short is fetched again where nobody said how long it is."""
    shown, found = str(source), partial.sum.hexdigest()
    certain = opened.size is not None
    wrong: PermanentError | None = None
    if opened.sha256 and found != opened.sha256:
        wrong, certain = _not_as_promised(shown, found, opened.sha256), False
    elif terms.sha256 and found != terms.sha256:
        wrong = wrong_checksum(shown, found, terms.sha256)
    try:
        seen = await blocking(read_format, partial.path, shown, terms.format)
    except PermanentError as problem:
        if isinstance(problem, Truncated) and opened.size is None:
            raise TransientError(Reason.INCOMPLETE, f"{shown} broke off: its header describes more of it") from problem
        wrong = wrong or problem
    if wrong is not None:
        raise Unfit(wrong, opened.validator, certain=certain)
    return Fetched(partial.length, found, opened.validator, seen)


def _not_as_promised(shown: str, found: str, promised: str) -> PermanentError:
    return PermanentError(
        Reason.CHECKSUM,
        f"the sha256 of {shown} is {found}, and the source itself says {promised}",
        "Push it again, or change spec.source",
    )


def wrong_checksum(shown: str, found: str, wanted: str) -> PermanentError:
    """The problem of a file that is not the one that was meant."""
    return PermanentError(
        Reason.CHECKSUM,
        f"the sha256 of {shown} is {found}, and spec.sha256 says {wanted}",
        "Replace the file, or correct spec.sha256",
    )


def _write(partial: Partial, block: bytes, limits: Limits) -> None:
    """Append to what is there, as long as the disk keeps its reserve."""
    check_space(partial.path.parent, len(block), limits)
    partial.write(block)
