"""pvc://: nothing to fetch. The pod that mounts the claim reads it there, and says when it is not."""

import contextlib
from collections.abc import AsyncIterator

from pilotage.models.problems import PermanentError, Reason
from pilotage.models.source import ClaimSource
from pilotage.models.sources import Opened, Wanted


@contextlib.asynccontextmanager
async def open_source(source: ClaimSource, _wanted: Wanted) -> AsyncIterator[Opened]:
    """Open a claim source: only pods can read one."""
    raise PermanentError(
        Reason.NOT_SUPPORTED,
        f"{source} is not fetched: it is read by the pod that mounts the claim",
        "Use it in a Model, not with a fetch",
    )
    yield  # type: ignore[unreachable]
