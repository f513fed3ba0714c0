import pytest

from pilotage_harbor.schema.patterns import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a$", "a\n", False),
        ("^a$", "a", True),
        ("b", "abc", True),
        (r"\Aab\z", "ab", True),
        (r"\d", "٣", False),
        (r"^\w+$", "é", False),
        ("^[[:alpha:]]+$", "aB", True),
        ("^[[:alpha:]]+$", "a1", False),
        ("^[^[:space:]]+$", "a b", False),
        ("a{,2}", "a{,2}", True),
        ("^a{2,3}$", "aaa", True),
        ("^(?i)abc$", "ABC", True),
        ("^x(?i)abc$", "XABC", False),
        ("^x(?i)abc$", "xABC", True),
        ("(?P<name>a)(?<other>b)", "ab", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"^[a\-z]$", "-", True),
        (r"^[]a]$", "]", True),
        ("^[a&&b~~c||d[]+$", "&[|~", True),
        (r"^\x41\x{1F600}$", "A😀", True),
        (r"^\pL+$", "aé", True),
        ("^(a|b)*?$", "abab", True),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c", True),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern, text, found):
    assert (compile_pattern(pattern).search(text) is not None) == found


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("[", "missing closing ]: `[`"),
        ("a[b", "missing closing ]: `[b`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(+a)", "missing argument to repetition operator: `+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("x(?<!a)b", "invalid named capture: `(?<!a)b`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern, words):
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)

    assert str(refused.value) == f"error parsing regexp: {words}"
