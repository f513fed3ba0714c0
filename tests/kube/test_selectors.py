"""Selectors: the rules of apimachinery in tables, and print, parse and match for whatever Hypothesis makes up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.kube.selectors import (
    EVERYTHING,
    NOTHING,
    FieldRequirement,
    FieldSelector,
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
)

quick = settings(deadline=None, derandomize=True)


# --- label selectors, by example


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("   ", ""),
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("x=a,a=x", "a=x,x=a"),
        ("x==a", "x==a"),
        ("x!=a , y = b", "x!=a,y=b"),
        ("x=", "x="),
        ("x= ,z= ", "x=,z="),
        ("!x", "!x"),
        ("x,!y", "x,!y"),
        ("x>1,z<5", "x>1,z<5"),
        ("x in (b,a,b)", "x in (a,b)"),
        ("x in(a)", "x in (a)"),
        ("x notin (a,,b)", "x notin (,a,b)"),
        ("x in ()", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (a,)", "x in (,a)"),
        ("\tx\n in\r(a)", "x in (a)"),
        ("notin=in", "notin=in"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("!in", "!in"),
        ("example.com/Role.x_y=1", "example.com/Role.x_y=1"),
        (f"{'a' * 253}/{'b' * 63}={'c' * 63}", f"{'a' * 253}/{'b' * 63}={'c' * 63}"),
    ],
)
def test_a_label_selector_prints_in_one_way(text: str, printed: str) -> None:
    assert str(LabelSelector.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b,", "position 4: found the end, expected a key"),
        (",a=b", "position 0: found ',', expected a key"),
        ("a=b,,c=d", "position 4: found ',', expected a key"),
        ("x=a||y=b", r"position 2: 'a\|\|y' is not a label value"),
        ("x==a==b", "position 4: found '==', expected ',' or the end"),
        ("!x=a", "position 2: found '=', expected ',' or the end"),
        ("x y", "position 2: found 'y', expected one of = == != in notin > <"),
        ("x=a b", "position 4: found 'b', expected ',' or the end"),
        ("x=)", r"position 2: found '\)', expected ',' or the end"),
        ("x=!y", "position 2: found '!', expected a value"),
        ("x<a", "position 2: 'a' is not an integer"),
        ("x > ", "position 4: '' is not an integer"),
        ("x>9223372036854775808", "position 2: '9223372036854775808' is not an integer"),
        ("x in a", r"position 5: found 'a', expected '\('"),
        ("x in (a", r"position 7: found the end, expected '\)'"),
        ("x in (a b)", r"position 8: found 'b', expected '\)'"),
        ("x in (a)b", "position 8: found 'b', expected ',' or the end"),
        ("!", "position 1: found the end, expected a key"),
        ("!!x", "position 1: found '!', expected a key"),
        ("a=b, -x", "position 5: '-x' is not a label key"),
        ("a/b/c", "position 0: 'a/b/c' is not a label key: the part before '/'"),
        ("/a", "position 0: '/a' is not a label key: the part before '/'"),
        ("Example.com/a", "the part before '/' must be a DNS subdomain in lower case"),
        ("a..b/c", "the part before '/' must be a DNS subdomain in lower case"),
        (f"{'a' * 254}/b", "the part before '/' must be a DNS subdomain in lower case"),
        ("example.com/", "the part after / must be at most 63 letters"),
        ("a" * 64, "it must be at most 63 letters"),
        ("a=" + "b" * 64, "position 2: 'b+' is not a label value: it must be empty, or at most 63 letters"),
        ("a=-b", "position 2: '-b' is not a label value"),
        ("a=é", "position 2: 'é' is not a label value"),
        ("a in (b,c_)", "position 8: 'c_' is not a label value"),
    ],
)
def test_a_label_selector_that_cannot_be_understood_says_where(text: str, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        LabelSelector.parse(text)


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("", {"x": "y"}, True),
        ("x=y", {"x": "y"}, True),
        ("x==y", {"x": "y"}, True),
        ("x=y", {"x": "z"}, False),
        ("x=y", {}, False),
        ("x=", {}, False),
        ("x=", {"x": ""}, True),
        ("x!=y", {"x": "z"}, True),
        ("x!=y", {}, True),
        ("x!=y", {"x": "y"}, False),
        ("x in (a,b)", {"x": "b"}, True),
        ("x in (a,b)", {"x": "c"}, False),
        ("x in (a,b)", {}, False),
        ("x in ()", {}, False),
        ("x in ()", {"x": ""}, True),
        ("x notin (a,b)", {"x": "c"}, True),
        ("x notin (a,b)", {"x": "b"}, False),
        ("x notin (a,b)", {}, True),
        ("x", {"x": ""}, True),
        ("x", {"y": "x"}, False),
        ("!x", {"y": "x"}, True),
        ("!x", {"x": ""}, False),
        ("x>1", {"x": "2"}, True),
        ("x>1", {"x": "1"}, False),
        ("x>1", {"x": "10"}, True),
        ("x>1", {}, False),
        ("x>1", {"x": "two"}, False),
        ("x>1", {"x": "9" * 5000}, False),
        ("x<1", {"x": "0"}, True),
        ("x<1", {"x": "-5"}, True),
        ("x<1", {"x": "1"}, False),
        ("x<1", {}, False),
        ("x<1", {"x": ""}, False),
        ("x=y,z=w", {"x": "y", "z": "w"}, True),
        ("x=y,z=w", {"x": "y", "z": "y"}, False),
        ("x>1,x<5", {"x": "3"}, True),
        ("x>1,x<5", {"x": "5"}, False),
    ],
)
def test_what_a_label_selector_matches(text: str, labels: dict[str, str], matches: bool) -> None:
    assert LabelSelector.parse(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "printed"),
    [
        ({}, ""),
        ({"matchLabels": {}, "matchExpressions": []}, ""),
        ({"matchLabels": None, "matchExpressions": None}, ""),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "d", "operator": "In", "values": ["z", "y"]},
                    {"key": "c", "operator": "NotIn", "values": [""]},
                    {"key": "b", "operator": "Exists"},
                    {"key": "b", "operator": "DoesNotExist", "values": []},
                ],
            },
            "a=1,b,!b,c notin (),d in (y,z)",
        ),
    ],
)
def test_a_selector_of_a_manifest(selector: dict[str, object], printed: str) -> None:
    assert str(LabelSelector.from_object(selector)) == printed


def test_an_empty_selector_of_a_manifest_selects_everything_and_none_nothing() -> None:
    assert LabelSelector.from_object({}) == EVERYTHING
    assert LabelSelector.from_object(None) == NOTHING
    for labels in ({}, {"a": "b"}, {"none": ""}):
        assert EVERYTHING.matches(labels)
        assert not NOTHING.matches(labels)


def test_nothing_remains_nothing_when_it_is_sent() -> None:
    assert LabelSelector.parse(str(NOTHING)) == NOTHING


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"matchlabels": {"a": "b"}}, "no field matchlabels"),
        ({"matchLabels": ["a"]}, "matchLabels is not a mapping"),
        ({"matchExpressions": {"key": "a"}}, "matchExpressions is not a list"),
        ({"matchExpressions": ["a"]}, r"matchExpressions\[0\] is not a mapping"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": "bc"}]},
            r"matchExpressions\[0\].values is not a list",
        ),
        ({"matchLabels": {"a": 1}}, r"matchLabels\['a'\]: 1 is not a string"),
        ({"matchLabels": {"a b": "c"}}, r"matchLabels\['a b'\]: 'a b' is not a label key"),
        ({"matchLabels": {"a": "b c"}}, r"matchLabels\['a'\]: 'b c' is not a label value"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            r"\[0\]: 'Gt' is none of In",
        ),
        ({"matchExpressions": [{"operator": "Exists"}]}, r"matchExpressions\[0\]: None is not a string"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "'in' takes at least one value, not 0"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "'exists' takes no value, not 1",
        ),
    ],
)
def test_a_selector_of_a_manifest_that_is_wrong_says_where(selector: dict[str, object], message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        LabelSelector.from_object(selector)


def test_a_requirement_made_by_hand_is_checked_too() -> None:
    with pytest.raises(SelectorError, match="'=' takes one value, not 2"):
        Requirement("a", Operator.EQUALS, ("b", "c"))
    with pytest.raises(SelectorError, match="'>' compares integers, and 'b' is none"):
        Requirement("a", Operator.GREATER_THAN, ("b",))
    with pytest.raises(SelectorError, match="'_' is not a label value"):
        Requirement("a", Operator.NOT_IN, ("b", "_"))


# --- label selectors, whatever they are

KEYS = st.sampled_from(["a", "b", "in", "notin", "example.com/a"])
VALUES = st.sampled_from(["", "a", "in", "x_y.z", "1", "2", "10"])
NUMBERS = st.sampled_from(["0", "1", "2", "007", "9223372036854775807"])
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
        st.tuples(VALUES),
    ),
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(VALUES, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Requirement, KEYS, st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]), st.tuples(NUMBERS)),
)
LABEL_SELECTORS = st.lists(REQUIREMENTS, max_size=4).map(lambda requirements: LabelSelector(tuple(requirements)))


@quick
@given(LABEL_SELECTORS)
def test_parsing_what_a_label_selector_prints_gives_the_same(selector: LabelSelector) -> None:
    again = LabelSelector.parse(str(selector))
    assert again == selector
    assert hash(again) == hash(selector)


def naive_match(requirement: Requirement, labels: dict[str, str]) -> bool:
    have, values = labels.get(requirement.key), requirement.values
    return {
        Operator.EXISTS: lambda: have is not None,
        Operator.DOES_NOT_EXIST: lambda: have is None,
        Operator.EQUALS: lambda: have == values[0],
        Operator.DOUBLE_EQUALS: lambda: have == values[0],
        Operator.NOT_EQUALS: lambda: have is None or have != values[0],
        Operator.IN: lambda: have is not None and have in values,
        Operator.NOT_IN: lambda: have is None or have not in values,
        Operator.GREATER_THAN: lambda: have is not None and have.isdecimal() and int(have) > int(values[0]),
        Operator.LESS_THAN: lambda: have is not None and have.isdecimal() and int(have) < int(values[0]),
    }[requirement.operator]()


@quick
@given(LABEL_SELECTORS, st.dictionaries(KEYS, VALUES))
def test_a_label_selector_matches_when_each_of_its_requirements_does(
    selector: LabelSelector, labels: dict[str, str]
) -> None:
    assert selector.matches(labels) == all(naive_match(r, labels) for r in selector.requirements)


@quick
@given(st.text(st.sampled_from("ab1/.-_ =!<>(),\tin\\é\n"), max_size=20))
def test_any_text_is_either_a_selector_or_a_selector_error(text: str) -> None:
    for kind in (LabelSelector, FieldSelector):
        try:
            selector = kind.parse(text)
        except SelectorError:
            continue
        assert kind.parse(str(selector)) == selector


# --- field selectors


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("metadata.name=x", "metadata.name=x"),
        ("metadata.name==x", "metadata.name=x"),
        ("status.phase!=Running,metadata.name=x", "metadata.name=x,status.phase!=Running"),
        ("a=", "a="),
        (",a=b,,", "a=b"),
        (r"a=b\,c\=d\\e", r"a=b\,c\=d\\e"),
        ("a= b ", "a= b "),
        ("a=!b", "a=!b"),
        ("a=é", "a=é"),
    ],
)
def test_a_field_selector_prints_in_one_way(text: str, printed: str) -> None:
    assert str(FieldSelector.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "position 1: expected =, == or !="),
        ("a b=c", "position 1: expected =, == or !="),
        ("=a", "position 0: expected the name of a field"),
        ("a=b, =c", "position 4: expected the name of a field"),
        ("a=b=c", r"position 3: in a value, write \\, for a comma"),
        ("a===b", "position 3: in a value"),
        (r"a=b\c", "position 3: in a value"),
        ("a=b\\", "position 3: in a value"),
    ],
)
def test_a_field_selector_that_cannot_be_understood_says_where(text: str, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        FieldSelector.parse(text)


def test_a_field_requirement_made_by_hand_is_checked_too() -> None:
    with pytest.raises(SelectorError, match="'a=b' is not the name of a field"):
        FieldRequirement("a=b", "c")


@pytest.mark.parametrize(
    ("text", "fields", "matches"),
    [
        ("", {}, True),
        ("a=x", {"a": "x"}, True),
        ("a=x", {"a": "y"}, False),
        ("a=x", {}, False),
        ("a=", {}, True),
        ("a!=x", {}, True),
        ("a!=x", {"a": "x"}, False),
        ("a!=", {}, False),
        (r"a=x\,y", {"a": "x,y"}, True),
        ("a=x,b!=y", {"a": "x", "b": "z"}, True),
        ("a=x,b!=y", {"a": "x", "b": "y"}, False),
    ],
)
def test_what_a_field_selector_matches(text: str, fields: dict[str, str], matches: bool) -> None:
    selector = FieldSelector.parse(text)
    assert selector.matches(fields) is matches
    assert selector.matches(lambda name: fields.get(name)) is matches


FIELD_SELECTORS = st.lists(
    st.builds(FieldRequirement, st.sampled_from(["a", "metadata.name"]), st.text("ab,=\\! é\n"), st.booleans()),
    max_size=3,
).map(lambda requirements: FieldSelector(tuple(requirements)))


@quick
@given(FIELD_SELECTORS)
def test_parsing_what_a_field_selector_prints_gives_the_same(selector: FieldSelector) -> None:
    assert FieldSelector.parse(str(selector)) == selector
