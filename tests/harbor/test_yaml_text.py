"""YAML is read once, within bounds; repeated keys are reported as kube-apiserver does for `fieldValidation=Strict`."""

import itertools

import pytest

from pilotage_harbor.apimachinery.calls import BODY_BYTES_MAX
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.verbs.bodies import from_yaml_untrusted
from pilotage_harbor.verbs.yaml_text import DEPTH_MAX, TooDeep, load_untrusted


def repeated(text: bytes) -> list[str]:
    return load_untrusted(text).repeated


def test_a_key_is_told_with_the_line_of_its_later_value():
    text = b"metadata:\n  name: a\n  name: a\n  labels:\n    b: c\n    b: d\n    b: e\nspec: 1\nspec:\n  x: 2\n"
    assert repeated(text) == [
        'line 3: key "name" already set in map',
        'line 6: key "b" already set in map',
        'line 7: key "b" already set in map',
        'line 10: key "spec" already set in map',
    ]


def test_json_is_yaml_on_one_line_and_what_is_inside_comes_first():
    assert repeated(b'{"data":{"x":"1","x":"2"},"data":[{"y":1,"y":2}]}') == [
        'line 1: key "x" already set in map',
        'line 1: key "y" already set in map',
        'line 1: key "data" already set in map',
    ]


def test_the_same_key_in_two_mappings_and_a_number_that_looks_like_a_text_are_no_repetition():
    assert repeated(b'a: {x: 1}\nb: {x: 1}\nc: [{x: 1}, {x: 1}]\n1: a\n"1": b\n') == []


def test_what_repeats_keys_is_told_once_however_often_it_is_named():
    assert repeated(b"l0: &l0 {x: 1, x: 2}\nl1: [*l0, *l0]\n") == ['line 1: key "x" already set in map']


def test_what_an_alias_stands_for_can_be_changed_by_itself():
    value = load_untrusted(b"a: &a {x: [1]}\nb: *a\n").value
    value["b"]["x"].append(2)
    assert value["a"] == {"x": [1]}


@pytest.mark.parametrize(
    ("opening", "closing"),
    [(b"[", b"]"), (b"{a: ", b"}"), (b"- ", b""), (b"[{a: ", b"}]")],
    ids=["list", "map", "items", "both"],
)
def test_nesting_that_would_end_the_process_is_refused(opening: bytes, closing: bytes):
    body = b"a:\n " + opening * 100_000 + b"1" + closing * 100_000
    with pytest.raises(StatusError, match="exceeded max depth") as caught:
        from_yaml_untrusted(body)
    assert caught.value.code == 400


def test_what_is_long_but_not_deep_is_loaded():
    body = b"a:\n" + b"- {b: [c]}\n" * DEPTH_MAX * 2
    assert len(load_untrusted(body).value["a"]) == DEPTH_MAX * 2


def test_indentation_cannot_go_too_deep():
    levels = DEPTH_MAX - 1
    body = b"".join(b" " * level + b"a:\n" for level in range(levels)) + b" " * levels + b"b: 1\n"
    assert load_untrusted(body).value["a"]
    with pytest.raises(TooDeep):
        load_untrusted(b"".join(b" " * level + b"a:\n" for level in range(DEPTH_MAX + 2)))


def test_aliases_cannot_go_too_deep():
    levels = "".join(f"- &l{n} [*l{n - 1}]\n" for n in range(1, DEPTH_MAX))
    with pytest.raises(TooDeep):
        load_untrusted(f"- &l0 []\n{levels}".encode())


def test_aliases_that_would_fill_the_memory_are_refused():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join(['*' + before] * 10)}]" for before, name in itertools.pairwise("abcdefghij")
    ]
    with pytest.raises(StatusError, match="excessive aliasing"):
        from_yaml_untrusted("\n".join(lines).encode())


@pytest.mark.parametrize("anchored", ['&a "{}"', '&a ["{}"]', '&a {{? "{}" : 1}}'], ids=["text", "list", "key"])
def test_the_bytes_behind_aliases_count(anchored: str):
    def body(size: int) -> bytes:
        return f"a: {anchored.format('x' * size)}\nb: [{'*a,' * 1000}]".encode()

    assert len(load_untrusted(body(BODY_BYTES_MAX // 1100)).value["b"]) == 1000
    with pytest.raises(StatusError, match="excessive aliasing"):
        from_yaml_untrusted(body(BODY_BYTES_MAX // 1000))
