"""Sizes of the two sides of a rollout, and the weight that may be written now. Pure, and repeated as things change.

One side gains requests, the other one loses them: in a rollout the candidate gains, in an abort and in a return the
revision that serves does. The rules are the same in both directions:

- A side gets a weight only for replicas that are ready, and keeps the replicas that its weight needs until every proxy
  is proven to have a lower one.
- Both sides together have at most `total + surge` replicas. A replica counts until it is proven gone.
- With surge 0 the losing side makes room, one replica at a time: proven gone → a new one on the other side → ready →
  weight. At least `total - unavailable` replicas stay ready, as far as that depends on us.
- A side that has no requests left keeps what fits beside the other one's total.
"""

from typing import NamedTuple

WHOLE = 100


class Room(NamedTuple):
    """Bounds of a rollout, in replicas."""

    total: int
    """Replicas of the endpoint."""
    surge: int
    """Replicas beyond the total."""
    unavailable: int = 1
    """Replicas that may be missing meanwhile, with surge 0."""

    @property
    def missing_max(self) -> int:
        """Number of replicas that may be missing."""
        return 0 if self.surge else min(self.unavailable, self.total - 1)


class RolloutSide(NamedTuple):
    """One side of a rollout."""

    desired: int
    """Replicas that it was told to have."""
    ready: int
    existing: int
    """Pods or processes that are not proven gone."""

    @property
    def occupied(self) -> int:
        """Number of replicas that it has, or may have at any moment."""
        return max(self.desired, self.existing)

    @property
    def settled(self) -> bool:
        """Whether it has what it was told to have, and nothing in excess. A cache of pods may be behind readiness."""
        return self.desired == self.ready and self.existing <= self.desired


class GainingShare(NamedTuple):
    """Weight of the gaining side, as the route says it."""

    weight: int
    proven: bool
    """Whether every proxy has it."""
    is_out: bool = False
    """Whether the losing side gets nothing, and nothing is under way to it."""


class Sizes(NamedTuple):
    """Replicas of both sides as they should be told now, and the weight that the gaining side may have."""

    losing: int
    gaining: int
    weight: int


def needed(weight: int, total: int) -> int:
    """The number of replicas that a weight needs."""
    return -(-weight * total // WHOLE)


def plan(
    room: Room,
    losing: RolloutSide,
    gaining: RolloutSide,
    share: GainingShare,
    target: int,
    *,
    size: int = 0,
    rest: int = 0,
    hurry: bool,
) -> Sizes:
    """The next sizes and weight on the way to a target weight of the gaining side.

    `size`: replicas that the gaining side shall have at least. `rest`: replicas that the losing side keeps once it is
    out. `hurry`: the weight follows each replica that is ready, instead of waiting for all that the target needs.
    """
    goal = _goal(room, share, target, size)
    free = room.total + room.surge - losing.occupied - gaining.occupied
    grown = gaining.desired + max(0, min(goal - gaining.desired, free))
    if gaining.desired > goal and share.proven:
        grown = goal
    lacks_room = free < 0 or (grown < goal and not free)
    waits = losing.existing > losing.desired or gaining.ready < gaining.desired
    gradually = hurry or (lacks_room and not waits)
    weight = _weight(room, losing, gaining, share, target, gradually=gradually)
    return Sizes(_losing(room, losing, gaining, share, rest, lacks_room=lacks_room, free=free), grown, weight)


def _goal(room: Room, share: GainingShare, target: int, size: int) -> int:
    """Replicas of the gaining side for the higher one of its weights. One is there before it has any."""
    if target >= WHOLE:
        return room.total
    return min(max(needed(max(target, share.weight), room.total), size, 1), max(room.total, 1))


def _weight(
    room: Room, losing: RolloutSide, gaining: RolloutSide, share: GainingShare, target: int, *, gradually: bool
) -> int:
    ready = min(gaining.ready, gaining.desired)
    if target <= share.weight or ready >= needed(target, room.total):
        return target
    if not gradually:
        return share.weight
    carried = min(min(losing.ready, losing.desired) + ready, room.total)
    allowed = ready * WHOLE // max(carried, room.total - room.missing_max, 1)
    # The last replica of the losing side cannot go while it has requests, and without it there is no room for another.
    if losing.desired <= 1 and not room.surge and ready and ready >= room.total - room.missing_max:
        allowed = WHOLE
    return max(share.weight, min(target, allowed))


def _losing(
    room: Room,
    losing: RolloutSide,
    gaining: RolloutSide,
    share: GainingShare,
    rest: int,
    *,
    lacks_room: bool,
    free: int,
) -> int:
    if share.is_out:
        return min(losing.desired, max(0, min(rest, room.surge)))
    least = _least(room, share)
    if losing.desired < least:
        return losing.desired + max(0, min(least - losing.desired, free))
    if not share.proven or not lacks_room or losing.desired <= least:
        return losing.desired
    # A replica that is on its way out, or not there yet, is waited for first, unless it is one that finds no room.
    if not losing.settled or not (gaining.settled or free < 0):
        return losing.desired
    stays_up = losing.ready - 1 + gaining.ready >= room.total - room.missing_max
    return losing.desired - 1 if stays_up else losing.desired


def _least(room: Room, share: GainingShare) -> int:
    """Replicas that the losing side needs: those that the gaining side does not stand in for yet."""
    stands_in = max(n for n in range(room.total + 1) if n * WHOLE // max(room.total, 1) <= share.weight)
    return max(room.total - stands_in - room.missing_max, 1 if room.total else 0)
