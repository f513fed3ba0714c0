"""YAML that is written event by event is what `yaml.dump` writes."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.verbs.yaml_output import as_yaml

ODD = st.sampled_from(
    ["yes", "null", "1", "=", "<<", "", "a: b", "- x", "2020-01-01", "#", "é", " x", "x ", "a\nb", "\t"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | ODD


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | ODD, inner), max_leaves=20))
def test_it_is_what_the_library_writes(value):
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    written = yaml.dump({"a": value}, Dumper=dumper, sort_keys=True, width=2**20)
    assert as_yaml({"a": value}).decode() == written
