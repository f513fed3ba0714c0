"""The policy of a teardown: what stays, and how long each step may take."""

import msgspec

from pilotage.api.names import CACHE_SUFFIX, MODELS
from pilotage.catalogue.kind import Keep
from pilotage.catalogue.names import VOLUME_CLAIM
from pilotage.catalogue.registry import known
from pilotage.kube import GroupKind

_MODEL = MODELS.group_kind


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """All durations are in seconds."""

    keep: frozenset[Keep] = frozenset()
    keep_uids: frozenset[str] = frozenset()
    """Objects that stay, whatever else is said."""
    drain_seconds: float = 0.0
    """Time for requests in flight, after the routes are gone and before the workloads stop."""
    detach_seconds: float = 5.0
    """Time for a router that cannot prove what its proxies do to remove a route."""
    timeout_seconds: float = 600.0
    """After so long a teardown ends, says what it waits for, and can be resumed."""
    stalled_seconds: float = 10.0
    """After so long without a reason a foreground deletion, or the collector, is given another push."""

    def keeps(self, kind: GroupKind, name: str, uid: str) -> bool:
        """Whether this object stays."""
        is_cache = kind == _MODEL or (kind == VOLUME_CLAIM and name.endswith(CACHE_SUFFIX))
        return uid in self.keep_uids or known(kind).keep in self.keep or (is_cache and Keep.CACHES in self.keep)
