"""oci://: not yet. The libraries that are kept for it block, and can neither stream from an offset nor resume."""

import contextlib
from collections.abc import AsyncIterator

from pilotage.models.problems import PermanentError, Reason
from pilotage.models.source import ImageSource
from pilotage.models.sources import Opened, Wanted


@contextlib.asynccontextmanager
async def open_source(source: ImageSource, _wanted: Wanted) -> AsyncIterator[Opened]:
    """Open an image source: not supported by this fetcher."""
    raise PermanentError(
        Reason.NOT_SUPPORTED,
        f"{source} cannot be fetched: Pilotage does not pull artifacts from container registries",
        "Use https://, hf:// or s3://, or mount it from a claim with pvc://",
    )
    yield  # type: ignore[unreachable]
