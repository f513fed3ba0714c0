"""The targets of `make fuzz` hold for their seeds, for changes of those, and for all that broke one before.

`make fuzz` searches for new inputs within a time limit; its findings are kept here.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import targets
from fuzz.targets import TARGETS

FOUND = {
    # A tensor with more parameters than an integer of a status holds.
    "gguf": [
        b"\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        b"\x01\x00\x00\x00\x00\x00\x00\x00a\x02\x00\x00\x00" + b"\xff" * 16 + b"\x00" * 12
    ],
    # Elements that are known by a list.
    "patch": [
        b'{"spec":{"containers":[{"name":"|","$patch":"delete"}],"$setElementOrder/containers":[{"name":["name"]}]}}',
        b'{"spec":{"containers":[{"name":{"a":1}}]}}',
        b'{"spec":{"$setElementOrder/containers":["x"]}}',
        b'{"containers":[{"name":[{"a":0}]}]}',
    ],
    # A kind of several lines, in a message.
    "dump": [b'{"apiVersion":"v1","kind":"a\\nb","metadata":{}}'],
}
"""Inputs that broke a contract once, by target."""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    targets.use(tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_hold(name):
    for seed in TARGETS[name].seeds:
        TARGETS[name].run(seed)


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, found in FOUND.items() for data in found])
def test_what_broke_once_holds(name, data):
    TARGETS[name].run(data)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_hold_when_they_are_cut_and_changed(name, tmp_path_factory):
    targets.use(tmp_path_factory.mktemp("fuzz"))

    @given(st.sampled_from(TARGETS[name].seeds), st.integers(0, 400), st.binary(max_size=8), st.integers(0, 8))
    def holds(seed, at, inserted, removed):
        TARGETS[name].run(seed[:at] + inserted + seed[at + removed :])

    holds()
