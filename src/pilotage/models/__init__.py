"""Weights: sources, fetching, the cache, and what a file says about itself.

Nothing here knows a controller: the operator, the agent, an init container and `pilotage fetch` run the same code, and
`credentials` alone speaks the Kubernetes API. `attempts` retries fetches in the background. A kind of source is one
file in `sources`. What goes wrong is a `Problem`: it lasts until somebody changes something, or it passes by itself.
The names below are the public face; the modules behind them can move.
"""

from pilotage.models.access import Access, SourceCredentials
from pilotage.models.cache import ModelCache, Removed
from pilotage.models.fetch import fetch
from pilotage.models.format import WeightsFormat
from pilotage.models.problems import PermanentError, Problem, Reason, TransientError
from pilotage.models.source import (
    BucketSource,
    ClaimSource,
    FileSource,
    HttpSource,
    HubSource,
    ImageSource,
    parse_source,
)
from pilotage.models.store import FetchRequest, FileModelStore, Kept

__all__ = [
    "Access",
    "BucketSource",
    "ClaimSource",
    "FetchRequest",
    "FileModelStore",
    "FileSource",
    "HttpSource",
    "HubSource",
    "ImageSource",
    "Kept",
    "ModelCache",
    "PermanentError",
    "Problem",
    "Reason",
    "Removed",
    "SourceCredentials",
    "TransientError",
    "WeightsFormat",
    "fetch",
    "parse_source",
]
