"""What a person decides about a teardown: what stays, and how long things may take."""

from __future__ import annotations

import msgspec

from pilotage.api.names import CACHE_SUFFIX, MODELS
from pilotage.catalogue import Keep, known
from pilotage.kube import GroupKind

_MODEL = MODELS.group_kind
_CLAIM = GroupKind("", "PersistentVolumeClaim")


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """All durations are in seconds."""

    keep: frozenset[Keep] = frozenset()
    keep_uids: frozenset[str] = frozenset()
    """Objects that stay, whatever else is said."""
    drain_seconds: float = 0.0
    """How long, after the routes are gone, what is under way may go on before the workloads stop."""
    detach_seconds: float = 5.0
    """How long a router that cannot prove what its proxies do is given to take a route away."""
    timeout_seconds: float = 600.0
    """After so long a teardown ends, says what it waits for, and can be resumed."""
    stalled_seconds: float = 10.0
    """After so long without a reason a foreground deletion, or the collector, is given another push."""

    def keeps(self, kind: GroupKind, name: str, uid: str) -> bool:
        """Whether this object stays."""
        is_cache = kind == _MODEL or (kind == _CLAIM and name.endswith(CACHE_SUFFIX))
        return uid in self.keep_uids or known(kind).keep in self.keep or (is_cache and Keep.CACHES in self.keep)
