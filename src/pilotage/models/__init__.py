"""Where weights come from: sources, fetching, the cache, and what a file says about itself.

Nothing here knows a controller: the operator, the agent, an init container and `pilotage fetch` run the same code, and
`credentials` alone speaks the Kubernetes API. `attempts` retries fetches in the background. A kind of source is one
file in `sources`. What goes wrong is a `Problem`: it lasts until somebody changes something, or it passes by itself.
The names below are the public face; the modules behind them can move.
"""

from pilotage.models.access import Access, Credentials
from pilotage.models.cache import Cache, Removed
from pilotage.models.fetch import Fetched, fetch
from pilotage.models.format import Format
from pilotage.models.keeper import FetchRequest, Keeper, Kept
from pilotage.models.problems import Passing, Problem, Reason, Standing
from pilotage.models.source import (
    BucketSource,
    ClaimSource,
    FileSource,
    HttpSource,
    HubSource,
    ImageSource,
    Source,
    parse_source,
)

__all__ = [
    "Access",
    "BucketSource",
    "Cache",
    "ClaimSource",
    "Credentials",
    "FetchRequest",
    "Fetched",
    "FileSource",
    "Format",
    "HttpSource",
    "HubSource",
    "ImageSource",
    "Keeper",
    "Kept",
    "Passing",
    "Problem",
    "Reason",
    "Removed",
    "Source",
    "Standing",
    "fetch",
    "parse_source",
]
