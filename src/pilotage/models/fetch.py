"""Bring one source to one path: streamed, hashed on the way, continued where it broke off, and published whole."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pilotage.models.access import Access, SourceCredentials
from pilotage.models.blocking import Blocking, in_thread
from pilotage.models.limits import Limits, check_size, check_space, steady
from pilotage.models.partial import CHECKPOINT_BYTES, Partial, claim
from pilotage.models.problems import NO_SPACE, PermanentError, Problem, Reason, TransientError, storage_problem
from pilotage.models.source import Source
from pilotage.models.sources import Wanted, open_source

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


class Unfit(PermanentError):
    """All of it came, and it is not what it should be. It was thrown away; `fetched` is what it was."""

    def __init__(self, problem: PermanentError, fetched: Fetched) -> None:
        super().__init__(problem.reason, problem.what, problem.to_do)
        self.fetched = fetched


class Terms(NamedTuple):
    """Conditions for a file to be published.

    `known` is asked with the validator of an open source: a problem that is known of exactly that content is raised
    before any of it is read. `check` looks into the finished file (in a thread), and raises what is wrong with it.
    """

    sha256: str = ""
    known: Callable[[str], Problem | None] = lambda _: None
    check: Callable[[Path, Fetched], None] = lambda *_: None


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
        fetched = await _fill(partial, source, access, credentials, terms, progress, blocking)
        await _judge(partial, source, fetched, terms, blocking)
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
) -> Fetched:
    wanted = Wanted(access, credentials, partial.length, partial.validator, blocking)
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
            await blocking(partial.begin, opened.validator)
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
    return Fetched(partial.length, partial.sum.hexdigest(), opened.validator)


async def _judge(partial: Partial, source: Source, fetched: Fetched, terms: Terms, blocking: Blocking) -> None:
    if terms.sha256 and fetched.sha256 != terms.sha256:
        raise Unfit(wrong_checksum(str(source), fetched.sha256, terms.sha256), fetched)
    try:
        await blocking(terms.check, partial.path, fetched)
    except PermanentError as problem:
        raise Unfit(problem, fetched) from problem


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
