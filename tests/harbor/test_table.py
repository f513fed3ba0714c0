"""Tables: ages as people say them, and columns of custom resources."""

from __future__ import annotations

import pytest

from pilotage_harbor.apimachinery.jsonpath import PathError, find
from pilotage_harbor.kinds.table import custom_columns, duration, since

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-0.5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"),
        (10 * MINUTE + 5, "10m"), (179 * MINUTE, "179m"), (3 * HOUR, "3h"), (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"), (47 * HOUR, "47h"), (2 * DAY, "2d"), (2 * DAY + HOUR, "2d1h"),
        (191 * HOUR, "7d23h"), (8 * DAY + HOUR, "8d"), (729 * DAY, "729d"), (730 * DAY, "2y"),
        (731 * DAY, "2y1d"), (2920 * DAY, "8y"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str):
    assert duration(seconds) == text


def test_how_long_ago():
    assert since("1970-01-01T00:00:10Z", 15) == "5s"
    assert since(None, 15) == "<unknown>"
    assert since("yesterday", 15) == "<invalid>"


OBJECT = {
    "metadata": {"name": "n", "creationTimestamp": "1970-01-01T00:00:00Z", "labels": {"a.b/c": "d"}},
    "spec": {"replicas": 3, "list": [1, 2], "on": True, "map": {"x": 1}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "want"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        (".spec.none", []),
        (".spec['none','replicas']", [3]),
        (".spec['on', 'replicas']", [True, 3]),
        (".spec.list[1]", [2]),
        (".spec.list[9]", []),
        (".spec.list[*]", [1, 2]),
        (r".metadata.labels.a\.b/c", ["d"]),
        (".metadata.labels['a.b/c']", ["d"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type!='Ready')].status", ["False"]),
    ],
)
def test_paths(path: str, want: list[object]):
    assert find(path, OBJECT) == want


def test_a_path_that_nobody_understands():
    with pytest.raises(PathError):
        find(".spec[", OBJECT)


def test_columns_of_a_custom_resource():
    columns = custom_columns(
        [
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Map", "type": "string", "jsonPath": ".spec.map", "priority": 1},
            {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
            {"name": "Wrong", "type": "integer", "jsonPath": ".metadata.name"},
            {"name": "Absent", "type": "string", "jsonPath": ".spec.absent"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]
    )
    assert [column.cell(OBJECT, 60) for column in columns] == ["n", 3, "True", '{"x":1}', True, None, None, "60s"]
    assert [column.name for column in custom_columns([])] == ["Name", "Age"]
