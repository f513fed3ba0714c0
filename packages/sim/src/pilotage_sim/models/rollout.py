"""The next step of a rollout: a pure decision on numbers, by the rules of the real Deployment controller."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pilotage.kube import Json


class ReplicaCounts(NamedTuple):
    """Replicas of one ReplicaSet: desired, existing, and available ones."""

    spec: int
    total: int
    available: int


class RolloutSpec(NamedTuple):
    """Desired state of a Deployment."""

    replicas: int
    recreate: bool
    surge: int
    unavailable: int

    @classmethod
    def of(cls, spec: Json) -> RolloutSpec:
        """Desired state in a spec. Percentages: the surge is rounded up, unavailable ones down; both cannot be zero."""
        replicas = spec.get("replicas", 1)
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            return cls(replicas, True, 0, 0)
        rolling = strategy.get("rollingUpdate") or {}
        surge = _scaled(rolling.get("maxSurge", "25%"), replicas, up=True)
        unavailable = _scaled(rolling.get("maxUnavailable", "25%"), replicas, up=False)
        if not surge and not unavailable:
            unavailable = 1
        return cls(replicas, False, surge, min(unavailable, replicas))


class ReplicaStep(NamedTuple):
    """The next replicas: of the new ReplicaSet (None: not yet made), and of the old ones in order."""

    new: int | None
    old: list[int]
    settled: bool
    """Whether nothing is left to do."""


def next_step(
    wanted: RolloutSpec, new: ReplicaCounts | None, old: list[ReplicaCounts], old_pods: int, *, paused: bool
) -> ReplicaStep:
    """One step. `old_pods`: how many pods of old ReplicaSets still exist, terminating ones included."""
    unchanged = [each.spec for each in old]
    if paused:
        return _scale_only(wanted, new, old)
    if wanted.recreate:
        if any(unchanged):
            return ReplicaStep(new.spec if new else None, [0] * len(old), False)
        if old_pods:
            return ReplicaStep(new.spec if new else None, unchanged, False)
        return ReplicaStep(wanted.replicas, unchanged, _is_settled(wanted, new))
    target = _new_replicas(wanted, new, old)
    if new is None or target != new.spec:
        return ReplicaStep(target, unchanged, False)
    return ReplicaStep(target, _old_replicas(wanted, new, old), _is_settled(wanted, new) and not any(unchanged))


def _is_settled(wanted: RolloutSpec, new: ReplicaCounts | None) -> bool:
    return new is not None and new == (wanted.replicas, wanted.replicas, wanted.replicas)


def _scale_only(wanted: RolloutSpec, new: ReplicaCounts | None, old: list[ReplicaCounts]) -> ReplicaStep:
    """A paused Deployment with one ReplicaSet in use lets that one follow its replicas; it makes no new one."""
    counts = [each.spec for each in old]
    in_use = [index for index, count in enumerate(counts) if count]
    if new is not None and not in_use:
        return ReplicaStep(wanted.replicas, counts, False)
    if len(in_use) == 1 and (new is None or not new.spec):
        counts[in_use[0]] = wanted.replicas
    return ReplicaStep(new.spec if new is not None else None, counts, False)


def _new_replicas(wanted: RolloutSpec, new: ReplicaCounts | None, old: list[ReplicaCounts]) -> int:
    """Replicas of the new ReplicaSet: up as far as the surge allows, down at once."""
    current = new.spec if new is not None else 0
    if current >= wanted.replicas:
        return wanted.replicas
    room = wanted.replicas + wanted.surge - current - sum(each.spec for each in old)
    return current + min(max(room, 0), wanted.replicas - current)


def _old_replicas(wanted: RolloutSpec, new: ReplicaCounts, old: list[ReplicaCounts]) -> list[int]:
    """Down as far as enough stay available: first those that are not available anyway, then the oldest."""
    counts = [each.spec for each in old]
    least = wanted.replicas - wanted.unavailable
    removable = sum(counts) + new.spec - least - (new.spec - new.available)
    if removable <= 0:
        return counts
    for index, each in enumerate(old):
        useless = min(removable, max(0, each.spec - each.available))
        counts[index] -= useless
        removable -= useless
    spare = sum(each.available for each in old) + new.available - least
    for index, count in enumerate(counts):
        taken = max(0, min(spare, count))
        counts[index] -= taken
        spare -= taken
    return counts


def _scaled(value: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * replicas / 100
    return math.ceil(share) if up else math.floor(share)
