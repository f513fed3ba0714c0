"""Conditions by the Kubernetes conventions."""

import datetime as dt

from pilotage.runtime.conditions import find_condition, set_condition

EARLY = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
LATE = dt.datetime(2030, 1, 2, tzinfo=dt.UTC)


def degraded(conditions, *, status=True, reason="Missing", message="no file", generation=1, now=EARLY):
    return set_condition(
        conditions, "Degraded", status=status, reason=reason, message=message, generation=generation, now=now
    )


def test_a_new_condition_is_appended():
    other = {"type": "Available", "status": "True"}
    conditions = degraded([other])
    assert conditions is not None
    assert conditions[0] is other
    assert conditions[1] == {
        "type": "Degraded",
        "status": "True",
        "reason": "Missing",
        "message": "no file",
        "observedGeneration": 1,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }


def test_saying_the_same_again_changes_nothing():
    assert degraded(degraded([]), now=LATE) is None


def test_the_transition_time_moves_only_with_the_status():
    first = degraded([])
    reworded = degraded(first, message="still no file", generation=2, now=LATE)
    turned = degraded(reworded, status=False, now=LATE)
    unknown = degraded(turned, status=None, now=LATE)
    assert find_condition(reworded, "Degraded")["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    assert find_condition(reworded, "Degraded")["message"] == "still no file"
    assert find_condition(turned, "Degraded")["lastTransitionTime"] == "2030-01-02T00:00:00Z"
    assert find_condition(unknown, "Degraded")["status"] == "Unknown"


def test_order_and_foreign_fields_of_others_are_kept():
    conditions = [{"type": "A", "status": "True", "x": 1}, *degraded([]), {"type": "B", "status": "False"}]
    changed = degraded(conditions, status=False, now=LATE)
    assert [condition["type"] for condition in changed] == ["A", "Degraded", "B"]
    assert changed[0] is conditions[0]


def test_no_condition_is_found_where_there_is_none():
    assert find_condition([], "Degraded") is None
