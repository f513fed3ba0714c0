"""A controller's own writes: held back, told apart from others', and never sent without the Lease."""

import pytest

from pilotage.kube import ObjectKey
from pilotage.runtime.informer import Change
from pilotage.runtime.leader import LeaseLost
from pilotage.runtime.types import Reconciling, reconciling
from pilotage.runtime.writes import OwnWrites
from tests.runtime.objects import CONFIGMAPS, KEY, THINGS, changed, thing


@pytest.fixture
def woken():
    return []


@pytest.fixture
def writes(woken):
    token = reconciling.set(Reconciling("things", KEY, 1))
    yield OwnWrites(THINGS, woken.append, informers=lambda _: [], may_write=lambda: None)
    reconciling.reset(token)


def test_a_change_wakes_when_nothing_is_in_flight(writes, woken):
    writes.on_change(changed(2))
    assert len(woken) == 1


def test_the_event_of_an_own_write_before_its_answer_does_not_wake(writes, woken):
    writes.before(THINGS, KEY)
    writes.on_change(changed(2))
    writes.after(THINGS, KEY, thing(version=2))
    assert woken == []


def test_a_change_by_another_during_an_own_write_wakes(writes, woken):
    others = changed(2)
    writes.before(THINGS, KEY)
    writes.on_change(others)
    writes.on_change(changed(3))
    assert woken == []
    writes.after(THINGS, KEY, thing(version=3))
    assert woken == [others]


def test_a_delete_during_an_own_write_wakes_whatever_its_version(writes, woken):
    deleted = Change(thing(version=2), None)
    writes.before(THINGS, KEY)
    writes.on_change(deleted)
    writes.after(THINGS, KEY, thing(version=2))
    assert woken == [deleted]


def test_a_write_that_failed_hides_nothing(writes, woken):
    writes.before(THINGS, KEY)
    writes.on_change(changed(2))
    writes.after(THINGS, KEY, None)
    assert len(woken) == 1


def test_two_writes_at_once_are_told_apart_when_both_are_answered(writes, woken):
    others = changed(4)
    writes.before(THINGS, KEY)
    writes.before(THINGS, KEY)
    for change in (changed(2), changed(3), others):
        writes.on_change(change)
    writes.after(THINGS, KEY, thing(version=3))
    assert woken == []
    writes.after(THINGS, KEY, thing(version=2))
    assert woken == [others]


@pytest.mark.parametrize(
    ("resource", "key"), [(THINGS, ObjectKey("ns", "b")), (CONFIGMAPS, KEY)], ids=["another object", "another kind"]
)
def test_a_write_to_anything_else_than_the_reconciled_object_is_news(writes, woken, resource, key):
    writes.before(resource, key)
    writes.on_change(changed(2))
    writes.after(resource, key, thing(version=2))
    assert len(woken) == 1


def test_without_the_lease_nothing_is_held_and_nothing_sent(woken):
    def lost():
        raise LeaseLost("gone")

    writes = OwnWrites(THINGS, woken.append, informers=lambda _: [], may_write=lost)
    with pytest.raises(LeaseLost):
        writes.before(THINGS, KEY)
    writes.on_change(changed(2))
    assert len(woken) == 1
