"""Objects in the form that Go gives them."""

from __future__ import annotations

import copy
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.builtin.make_shapes import table
from pilotage_harbor.builtin.quantity import canonical, parse
from pilotage_harbor.builtin.shape import _table, shape
from tests.harbor.builtin.harness import Case, Runner, cases


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1000", "1k"), ("1e3", "1e3"),
        ("0", "0"), ("100Ki", "100Ki"), ("1023", "1023"), (2, "2"), (0.1, "100m"), ("-5", "-5"), ("1Ki", "1Ki"),
        ("0.0001", "100u"), ("1536", "1536"), ("nonsense", "nonsense"), ("500Mi", "500Mi"), ("12e6", "12e6"),
        ("16.819Mi", "17635999744m"), ("1.953125Ki", "2k"), ("1.5Ki", "1536"), ("12345e-3", "12345e-3"),
        ("2048", "2048"), ("9Pi", "9Pi"),
    ],
)  # fmt: skip
def test_quantities_are_canonical(text: str | float, want: str):
    assert canonical(text) == want


def test_resources_are_rounded_up_to_thousandths():
    assert canonical("0.0001", milli=True) == "1m"


@given(st.decimals(min_value=0, max_value=10**9, places=3), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_a_canonical_quantity_is_the_same_amount_and_stays_as_it_is(number: Decimal, suffix: str):
    text = f"{number}{suffix}"
    once = canonical(text)
    before, after = parse(text), parse(once)
    assert before is not None
    assert after is not None
    assert before == after
    assert canonical(once) == once


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name.replace(" ", "-"))
def test_defaults_are_the_same_the_second_time(case: Case):
    obj = Runner(case).create()
    if obj["kind"] != "Status":
        again = copy.deepcopy(obj)
        case.kind.strategy.default(again)
        assert again == obj


def test_nulls_vanish_and_what_go_always_writes_appears():
    got = shape("core.Pod")(
        {"metadata": {"labels": {}, "name": "a"}, "spec": {"containers": [{"name": "c", "env": None}]}}
    )
    assert got == {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "resources": {}}]},
        "status": {},
    }


@pytest.mark.cluster  # it needs none, but sources that are whole: on a new machine the build of one is fetching them
def test_the_table_is_current():
    cache = Path.home() / "go/pkg/mod/k8s.io"
    if not list(cache.glob("kube-aggregator@*")):
        pytest.skip("the Go sources of Kubernetes are not here")
    assert table(cache) == _table()
