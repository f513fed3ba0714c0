"""Sizes and weights of a rollout, step by step, and the invariants in every state on the way."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from pilotage.controllers.endpoint.capacity import GainingShare, RolloutSide, Room, Sizes, needed, plan


def side(desired: int, ready: int | None = None, existing: int | None = None) -> RolloutSide:
    ready = desired if ready is None else ready
    return RolloutSide(desired, ready, desired if existing is None else existing)


AT = GainingShare
NO_SURGE = Room(4, 0, 1)

# fmt: off
CASES = [
    ("one replica is there before any weight", Room(3, 1), side(3), side(0), AT(0, True), 0, Sizes(3, 1, 0)),
    ("no weight before it is ready", Room(3, 1), side(3), side(1, 0), AT(0, True), 25, Sizes(3, 1, 0)),
    ("then all of it", Room(3, 1), side(3), side(1), AT(0, True), 25, Sizes(3, 1, 25)),
    ("a weight waits for all replicas that it needs", Room(4, 4), side(4), side(2, 1), AT(0, True), 50, Sizes(4, 2, 0)),
    ("with too little surge it follows each of them", Room(4, 1), side(4), side(1), AT(0, True), 50, Sizes(4, 1, 25)),
    ("and makes room once that is proven", Room(4, 1), side(4), side(1), AT(25, True), 50, Sizes(3, 1, 25)),
    ("not before", Room(4, 1), side(4), side(1), AT(25, False), 50, Sizes(4, 1, 25)),
    ("a replica that is not proven gone has its room", Room(4, 1), side(3, existing=4), side(1), AT(25, True), 50,
     Sizes(3, 1, 25)),
    ("then the next one comes", Room(4, 1), side(3), side(1), AT(25, True), 50, Sizes(3, 2, 25)),
    ("promoted to full size first", Room(3, 3), side(3), side(1), AT(25, True), 100, Sizes(3, 3, 25)),
    ("then to all requests", Room(3, 3), side(3), side(3), AT(25, True), 100, Sizes(3, 3, 100)),
    ("the former side stays until it is out", Room(3, 3), side(3), side(3), AT(100, True), 100, Sizes(3, 3, 100)),
    ("then it goes", Room(3, 3), side(3), side(3), AT(100, True, True), 100, Sizes(0, 3, 100)),
    ("without surge one replica makes room", NO_SURGE, side(4), side(0), AT(0, True), 25, Sizes(3, 0, 0)),
    ("it is waited for", NO_SURGE, side(3, existing=4), side(0), AT(0, True), 25, Sizes(3, 0, 0)),
    ("then the new one starts", NO_SURGE, side(3), side(0), AT(0, True), 25, Sizes(3, 1, 0)),
    ("and gets its share when it is ready", NO_SURGE, side(3), side(1), AT(0, True), 25, Sizes(3, 1, 25)),
    ("the last one goes when the others have all requests", NO_SURGE, side(1), side(3), AT(75, True), 100,
     Sizes(1, 3, 100)),
    ("a surge that finds no resources makes room after all", NO_SURGE, side(4), side(1, 0, 1), AT(0, True), 5,
     Sizes(3, 1, 0)),
    ("nothing makes room while too many are missing", NO_SURGE, side(4, 3), side(0), AT(0, True), 25, Sizes(4, 0, 0)),
    ("a side never gets less than its weight needs", Room(4, 4), side(4), side(4), AT(50, True), 50, Sizes(4, 2, 50)),
    ("nor before that is proven", Room(4, 4), side(4), side(4), AT(50, False), 50, Sizes(4, 4, 50)),
    ("a lower weight comes before fewer replicas", Room(4, 4), side(4), side(2), AT(50, True), 25, Sizes(4, 2, 25)),
    ("a pod that no cache has shown yet holds nothing up", Room(4, 1), side(4, 4, 3), side(1), AT(25, True), 50,
     Sizes(3, 1, 25)),
    ("one at a time, though two might be missing", Room(4, 0, 2), side(3, 3, 4), side(0), AT(0, True), 50,
     Sizes(3, 0, 0)),
    ("no more make room than may be missing", NO_SURGE, side(3), side(1, 0, 2), AT(25, True), 50, Sizes(3, 1, 25)),
    ("more replicas of the endpoint are more of both", Room(6, 6), side(4), side(2), AT(50, True), 50, Sizes(4, 3, 50)),
]
# fmt: on


@pytest.mark.parametrize(("name", "room", "losing", "gaining", "share", "target", "want"), CASES, ids=lambda each: each)
def test_plan(name, room, losing, gaining, share, target, want):
    assert plan(room, losing, gaining, share, target, hurry=False) == want


def test_a_former_side_rests_with_what_fits():
    for surge, rest, want in ((3, 3, 3), (1, 3, 1), (0, 3, 0), (3, 1, 1)):
        out = GainingShare(100, proven=True, is_out=True)
        assert plan(Room(3, surge), side(3), side(3), out, 100, rest=rest, hurry=False).losing == want


def test_a_size_that_was_asked_for_is_the_least_one():
    assert plan(Room(4, 4), side(4), side(1), GainingShare(5, proven=True), 5, size=3, hurry=False).gaining == 3
    assert plan(Room(4, 4), side(4), side(2), GainingShare(50, proven=True), 50, size=1, hurry=False).gaining == 2


def test_in_a_hurry_weight_follows_each_replica():
    hurried = plan(Room(4, 4), side(4), side(4, 2), GainingShare(0, proven=True), 100, hurry=True)
    assert hurried == Sizes(4, 4, 50)


@dataclass
class Walk:
    """A cluster that does what it is told, late and in any order."""

    room: Room
    chance: random.Random
    losing: list[int]
    gaining: list[int]
    """Desired, ready, existing of both sides."""
    weight: int = 0
    proven: bool = True
    programmed: int = 0
    """The weight in the proxies."""
    drained: bool = False

    def decide(self, target: int, *, hurry: bool) -> None:
        share = GainingShare(self.weight, self.proven, self.weight == 100 and self.proven and self.drained)
        made = plan(self.room, RolloutSide(*self.losing), RolloutSide(*self.gaining), share, target, hurry=hurry)
        self.check(made)
        self.losing[0], self.gaining[0] = made.losing, made.gaining
        if self.proven and made.weight != self.weight:
            self.weight, self.proven, self.drained = made.weight, False, False

    def is_at(self, target: int) -> bool:
        total = self.room.total
        if target == 100 and (self.losing != [0] * 3 or self.gaining != [total] * 3):
            return False
        return (
            self.programmed == self.weight == target
            and self.gaining[1] >= needed(target, total) - self.room.missing_max
        )

    def go(self, target: int, *, hurry: bool) -> None:
        for _ in range(3000):
            self.decide(target, hurry=hurry)
            self.happens()
            if self.is_at(target):
                return
        raise AssertionError(f"{self} does not get to {target}")

    def happens(self) -> None:
        """Pods start, become ready and go, proxies learn: each at any time."""
        for each in (self.losing, self.gaining):
            desired, ready, existing = each
            if existing < desired and self.chance.random() < 0.5:
                each[2] += 1
            elif existing > desired and self.chance.random() < 0.3:
                each[2] -= 1
            each[1] = min(ready, desired, each[2])
            if each[1] < min(desired, each[2]) and self.chance.random() < 0.5:
                each[1] += 1
        if self.chance.random() < 0.4:
            self.programmed, self.proven = self.weight, True
        if self.proven and self.weight == 100 and self.chance.random() < 0.3:
            self.drained = True

    def check(self, made: Sizes) -> None:
        total, surge = self.room.total, self.room.surge
        occupied = max(made.losing, self.losing[2]) + max(made.gaining, self.gaining[2])
        now = max(self.losing[0], self.losing[2]) + max(self.gaining[0], self.gaining[2])
        assert occupied <= max(total + surge, now), "more replicas than the bound"
        ready = min(made.losing, self.losing[1]) + min(made.gaining, self.gaining[1])
        before = self.losing[1] + self.gaining[1]
        assert ready >= min(before, total - self.room.missing_max), "too few are ready"
        highest = max(self.weight, self.programmed)
        lowest = min(self.weight, self.programmed)
        assert made.gaining >= min(self.gaining[0], needed(highest, total) - self.room.missing_max), "too small"
        if lowest < 100:
            assert made.losing >= 1, "a side with requests has no replicas"
        if made.weight > self.weight:
            assert self.gaining[1] >= 1
            whole = max(total - self.room.missing_max, 1)
            assert made.weight <= -(-self.gaining[1] * 100 // whole), "weight runs ahead of capacity"


@pytest.mark.parametrize("seed", range(100))
def test_whatever_lags_it_ends_and_no_state_on_the_way_breaks_a_bound(seed: int):
    chance = random.Random(seed)
    total = chance.randint(1, 7)
    room = Room(total, chance.choice([0, 1, 2, total]) if total > 1 else 1, chance.randint(1, 3))
    walk = Walk(room, chance, [total] * 3, [0] * 3)
    for target in (*sorted(chance.sample(range(101), 3)), 100):
        walk.go(target, hurry=chance.random() < 0.2)
        if target < 100 and chance.random() < 0.3:  # aborted: the sides change places
            walk.losing, walk.gaining = walk.gaining, walk.losing
            walk.weight, walk.programmed, walk.drained = 100 - walk.weight, 100 - walk.programmed, False
            walk.go(100, hurry=True)
            return
