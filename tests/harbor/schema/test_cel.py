from typing import Any

import pytest

from pilotage_harbor.schema import from_openapi, structural_problems, validate

STRING = {"type": "string"}


def _holds(rule: str, schema: dict[str, Any], value: object) -> bool:
    """Whether a value passes a rule, which must compile for its schema."""
    whole = {"type": "object", "properties": {"a": {**schema, "x-kubernetes-validations": [{"rule": rule}]}}}
    assert structural_problems(whole, "s") == []
    causes = validate(from_openapi(whole), {"a": value})
    assert all("failed rule" in cause.message for cause in causes), causes
    return not causes


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.indexOf('l') == 2 && self.lastIndexOf('l') == 3", "hello"),
        ("self.charAt(1) == 'e' && self.substring(1, 3) == 'el'", "hello"),
        ("self.upperAscii() == 'HELLO' && self.replace('l', 'L', 1) == 'heLlo'", "hello"),
        ("self.split(',') == ['a', 'b'] && self.split(',').join('-') == 'a-b'", "a,b"),
        ("self.trim() == 'a'", " a "),
        ("'%s is %d, %.2f, %x' .format([self, 3, 1.5, 255]) == 'a is 3, 1.50, ff'", "a"),
        ("self.find('[0-9]+') == '12' && self.findAll('[0-9]+') == ['12', '34']", "a12b34"),
        ("self.matches('^[a-z]+$')", "abc"),
        ("isURL(self) && url(self).getHost() == 'h:80' && url(self).getHostname() == 'h'", "https://h:80/p?q=1&q=2"),
        ("url(self).getPort() == '80' && url(self).getEscapedPath() == '/p'", "https://h:80/p?q=1&q=2"),
        ("url(self).getQuery()['q'] == ['1', '2']", "https://h:80/p?q=1&q=2"),
        ("isQuantity(self) && quantity(self).isGreaterThan(quantity('1M'))", "1Mi"),
        ("quantity(self) == quantity('1024Ki') && quantity(self).asInteger() == 1048576", "1Mi"),
        ("quantity(self).add(quantity('1')).sub(1).compareTo(quantity('500m')) == 0", "0.5"),
        ("!isQuantity(self)", "much"),
        ("isIP(self) && ip(self).family() == 6 && ip(self).isLoopback()", "::1"),
        ("isCIDR(self) && cidr(self).containsIP('10.1.2.3') && cidr(self).prefixLength() == 8", "10.0.0.0/8"),
        ("cidr(self).containsCIDR('10.1.0.0/16') && cidr(self).ip() == ip('10.0.0.0')", "10.0.0.0/8"),
        ("isSemver(self) && semver(self).isLessThan(semver('1.10.0')) && semver(self).minor() == 9", "1.9.0"),
        ("semver(self).compareTo(semver('1.0.0')) < 0", "1.0.0-rc.1"),
        ("cel.bind(x, self + '!', x == 'a!')", "a"),
        ("optional.of(self).orValue('b') == 'a'", "a"),
    ],
)
def test_functions_of_strings(rule, value):
    assert _holds(rule, STRING, value)
    assert not _holds(f"!({rule})", STRING, value)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.isSorted() && self.sum() == 6 && self.min() == 1 && self.max() == 3", [1, 2, 3]),
        ("self.indexOf(2) == 1 && self.lastIndexOf(4) == -1", [1, 2, 3]),
        ("self.all(i, v, v == i + 1) && self.exists_one(v, v == 2)", [1, 2, 3]),
        ("sets.equivalent(self, [3, 2, 1]) && self.distinct().size() == 3", [1, 2, 3]),
        ("self.filter(v, v > 1).map(v, v * 2) == [4, 6] && self.reverse() == [3, 2, 1]", [1, 2, 3]),
        ("!self.isSorted() && self.sort() == [1, 3]", [3, 1]),
    ],
)
def test_functions_of_lists(rule, value):
    schema = {"type": "array", "items": {"type": "integer"}}

    assert _holds(rule, schema, value)
    assert not _holds(f"!({rule})", schema, value)


def test_a_number_is_a_double_though_json_has_an_integer():
    assert _holds("self / 2.0 == 1.5", {"type": "number"}, 3)
    assert _holds("self / 2 == 1", {"type": "integer"}, 3)


def test_bytes_times_and_durations_are_what_their_formats_say():
    assert _holds("self == b'abc'", {"type": "string", "format": "byte"}, "YWJj")
    assert _holds("self.getFullYear() == 2024", {"type": "string", "format": "date"}, "2024-02-03")
    assert _holds("self.getHours() == 3", {"type": "string", "format": "date-time"}, "2024-02-03T04:05:06+01:00")
    assert _holds("self == duration('90m')", {"type": "string", "format": "duration"}, "1h30m")


def test_int_or_string_is_either():
    schema = {"x-kubernetes-int-or-string": True}

    assert _holds("type(self) == int ? self < 5 : self.endsWith('%')", schema, 3)
    assert _holds("type(self) == int ? self < 5 : self.endsWith('%')", schema, "3%")
    assert not _holds("type(self) == int ? self < 5 : self.endsWith('%')", schema, "3")


def test_lists_of_lists_and_maps_of_maps_can_be_seen():
    integers = {"type": "array", "items": {"type": "integer"}}
    inner = {"type": "object", "additionalProperties": integers}
    schema = {"type": "object", "properties": {"m": inner, "l": {"type": "array", "items": integers}}}

    assert _holds("self.m['x'][1] == 2 && self.l[0][0] == 7", schema, {"m": {"x": [1, 2]}, "l": [[7]]})


def test_old_self_in_a_string_does_not_make_a_rule_about_changes():
    assert not _holds("self != 'oldSelf'", STRING, "oldSelf")


def test_a_message_that_cannot_be_made_is_replaced():
    rule = {"rule": "self == 'x'", "messageExpression": "'a\\nb'", "message": "the other"}
    schema = from_openapi({"type": "object", "properties": {"a": {**STRING, "x-kubernetes-validations": [rule]}}})

    assert [cause.message for cause in validate(schema, {"a": "y"})] == ['Invalid value: "y": the other']


def test_maps_with_any_name_can_be_seen():
    strings = {"type": "object", "additionalProperties": STRING}
    names = ("matchLabels", "match_labels", "aB", "a_b", "x-y", "namespace")
    schema = {"type": "object", "properties": dict.fromkeys(names, strings)}
    rule = (
        "self.matchLabels['k'] == 'v' && self.match_labels['k'] == 'v' && self.aB['k'] == self.a_b['k'] "
        "&& self.x__dash__y['k'] == self.__namespace__['k']"
    )

    assert _holds(rule, schema, {name: {"k": "v"} for name in names})


def test_a_rule_is_not_looked_at_where_words_are_wrong():
    wrong = {"type": "array", "items": STRING, "uniqueItems": True, "x-kubernetes-validations": [{"rule": "nonsense"}]}
    other = {**STRING, "x-kubernetes-validations": [{"rule": "nonsense"}]}
    whole = {"type": "object", "properties": {"a": wrong, "b": other}}

    assert [cause.field for cause in structural_problems(whole, "s")] == [
        "s.properties[a].uniqueItems",
        "s.properties[b].x-kubernetes-validations[0].rule",
    ]


def test_with_a_status_less_is_allowed_at_the_root():
    whole = {"type": "object", "minProperties": 1, "properties": {"spec": STRING}}

    assert structural_problems(whole, "s") == []
    (cause,) = structural_problems(whole, "s", has_status=True)
    assert "fields are allowed at the root of the schema if the status subresource is enabled" in cause.message
