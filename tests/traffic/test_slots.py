"""Slots: as few keys move as a change of shares takes."""

from hypothesis import given
from hypothesis import strategies as st

from pilotage.traffic.contract import WHOLE, Backend
from pilotage.traffic.slots import slots


def backends(**weights: int) -> tuple[Backend, ...]:
    return tuple(Backend(name, 80, weight) for name, weight in weights.items())


def owners(assigned: tuple[Backend, ...]) -> dict[int, str]:
    return {slot: each.service for each in assigned for slot in each.slots}


def test_growth_takes_from_the_one_that_shrinks_and_from_nobody_else():
    before = slots((), backends(a=80, b=10, c=10))
    after = slots(before, backends(a=70, b=10, c=20))
    moved = {(owners(before)[slot], owners(after)[slot]) for slot in range(WHOLE)} - {(each, each) for each in "abc"}
    assert moved == {("a", "c")}
    assert after[1].slots == before[1].slots
    assert after[2].slots[:10] == before[2].slots


def test_a_share_that_falls_back_has_the_keys_that_it_had():
    first = slots((), backends(a=95, b=5))
    grown = slots(first, backends(a=50, b=50))
    assert slots(grown, backends(a=95, b=5))[1].slots == first[1].slots


def test_weights_that_do_not_add_up_have_no_slots():
    assert slots((), backends(a=50)) == backends(a=50)
    assert slots((Backend("a", 80, 100, tuple(range(100))),), backends(a=60, b=60)) == backends(a=60, b=60)


def test_slots_that_others_have_written_are_put_right():
    wrong = (Backend("a", 80, 50, (1, 1, 2, -4, 700)), Backend("b", 80, 50, (2, 3)))
    assigned = slots(wrong, backends(a=50, b=50))
    assert sorted(owners(assigned)) == list(range(WHOLE))
    assert assigned[0].slots[:2] == (1, 2)
    assert assigned[1].slots[0] == 3


@st.composite
def shares(draw):
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    cuts = sorted(draw(st.lists(st.integers(0, WHOLE), min_size=len(names) - 1, max_size=len(names) - 1)))
    weights = [b - a for a, b in zip((0, *cuts), (*cuts, WHOLE), strict=True)]
    return backends(**dict(zip(names, weights, strict=True)))


@given(st.lists(shares(), min_size=2, max_size=5))
def test_no_more_slots_move_than_the_shares_say(steps):
    now = slots((), steps[0])
    for wanted in steps[1:]:
        after = slots(now, wanted)
        had, has = owners(now), owners(after)
        assert sorted(has) == list(range(WHOLE))
        assert all(len(each.slots) == each.weight for each in after)
        weights = {each.service: each.weight for each in now}
        growth = sum(max(0, each.weight - weights.get(each.service, 0)) for each in wanted)
        assert sum(had[slot] != has[slot] for slot in has) == growth
        assert slots(after, wanted) == after
        now = after
