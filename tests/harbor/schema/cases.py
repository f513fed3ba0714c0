"""Questions to a real API server about schemas; `recorded.json` has its answers, `recording.py` gets them.

The same questions can be put to any server that speaks the API, so the answers of harbor can be compared as a whole.
"""

from typing import Any, NamedTuple

Json = dict[str, Any]


class Case(NamedTuple):
    """An object of the kind whose schema is `SCHEMAS[schema]`: created, or changed from `old`."""

    name: str
    schema: str
    obj: Json
    old: Json | None = None


def _object(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


def _list(items: Json, **rest: Any) -> Json:
    return {"type": "array", "items": items, **rest}


def _rule(rule: str, **rest: Any) -> Json:
    return {"rule": rule, **rest}


_STRING: Json = {"type": "string"}
_INTEGER: Json = {"type": "integer"}

SCHEMAS: dict[str, Json] = {
    "shape": _object(
        spec=_object(
            text={"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
            size={"type": "integer", "minimum": 1, "maximum": 10},
            small={"type": "integer", "format": "int32"},
            large={"type": "integer", "format": "int64"},
            strictly={"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": True},
            tens={"type": "integer", "multipleOf": 10},
            ratio={"type": "number", "minimum": 0.5, "multipleOf": 0.25},
            odd_bound={"type": "integer", "maximum": 2.5},
            flag={"type": "boolean"},
            color={"type": "string", "enum": ["red", "green"]},
            level={"type": "integer", "enum": [1, 2]},
            list=_list({"type": "string"}, minItems=1, maxItems=2),
            map={"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2, "minProperties": 1},
            port={"x-kubernetes-int-or-string": True},
            percent={
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": "^[0-9]+%$",
            },
            maybe={"type": "string", "nullable": True},
            when={"type": "string", "format": "date-time"},
            day={"type": "string", "format": "date"},
            wait={"type": "string", "format": "duration"},
            data={"type": "string", "format": "byte"},
            link={"type": "string", "format": "uri"},
            mail={"type": "string", "format": "email"},
            host={"type": "string", "format": "hostname"},
            four={"type": "string", "format": "ipv4"},
            six={"type": "string", "format": "ipv6"},
            net={"type": "string", "format": "cidr"},
            mac={"type": "string", "format": "mac"},
            id={"type": "string", "format": "uuid"},
            odd={"type": "string", "format": "no-such-format"},
            short={"type": "string", "format": "k8s-short-name"},
            nested={**_object(a=_STRING, b=_INTEGER), "required": ["a", "b"]},
            deep=_list({**_object(name=_STRING), "required": ["name"]}),
            one={**_object(a=_STRING, b=_STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            any={**_object(a=_STRING, b=_STRING), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            all={
                **_object(a=_STRING, b=_STRING),
                "allOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 3}}}],
            },
            none={**_object(a=_STRING, b=_STRING), "not": {"required": ["a"]}},
            free={
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": _object(a=_STRING)},
            },
        )
    ),
    "required": {**_object(spec={**_object(a=_STRING), "required": ["a"]}), "required": ["spec"]},
    "defaults": _object(
        spec={
            **_object(
                a={"type": "string", "default": "x"},
                b={"type": "integer", "default": 3},
                nullable={"type": "string", "nullable": True, "default": "n"},
                inner={**_object(c={"type": "boolean", "default": True}, d=_STRING), "default": {}},
                list=_list(_object(e={"type": "string", "default": "y"})),
                map={"type": "object", "additionalProperties": _object(f={"type": "integer", "default": 1})},
                plain=_STRING,
                items=_list({"type": "string", "nullable": True}),
            ),
            "default": {"b": 7},
        }
    ),
    "lists": _object(
        spec=_object(
            set=_list(_STRING, **{"x-kubernetes-list-type": "set"}),
            map=_list(
                {**_object(name=_STRING, value=_INTEGER), "required": ["name"]},
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            ),
            ports=_list(
                {**_object(port=_INTEGER, protocol={"type": "string", "default": "TCP"}), "required": ["port"]},
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]},
            ),
        )
    ),
    "embedded": _object(
        spec=_object(
            template={
                **_object(spec=_object(a=_STRING)),
                "x-kubernetes-embedded-resource": True,
            },
            any={
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        )
    ),
    "rules": _object(
        spec={
            **_object(
                min=_INTEGER,
                max=_INTEGER,
                share={"type": "number"},
                name={
                    "type": "string",
                    "maxLength": 20,
                    "x-kubernetes-validations": [_rule("self == oldSelf", message="may not change")],
                },
                words=_list({"type": "string", "maxLength": 10}, maxItems=5),
                port={"x-kubernetes-int-or-string": True},
                memory={"type": "string", "maxLength": 20},
                url={"type": "string", "maxLength": 50},
                when={"type": "string", "format": "date-time"},
                wait={"type": "string", "format": "duration"},
                labels={
                    "type": "object",
                    "additionalProperties": {"type": "string", "maxLength": 10},
                    "maxProperties": 5,
                },
                **{"dash-ed": {"type": "string", "maxLength": 5}, "namespace": {"type": "string", "maxLength": 5}},
                entries=_list(
                    {
                        **_object(
                            name={"type": "string", "maxLength": 5},
                            size={"type": "integer", "x-kubernetes-validations": [_rule("self >= oldSelf")]},
                        ),
                        "required": ["name"],
                        "x-kubernetes-validations": [_rule("self.name != 'bad'")],
                    },
                    maxItems=5,
                    **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
                ),
                locked={
                    "type": "string",
                    "maxLength": 10,
                    "x-kubernetes-validations": [
                        _rule(
                            "!oldSelf.hasValue() || self == oldSelf.value()", optionalOldSelf=True, message="set once"
                        )
                    ],
                },
                flags=_object(on={"type": "boolean"}, off={"type": "boolean"}),
            ),
            "x-kubernetes-validations": [
                _rule("!has(self.min) || !has(self.max) || self.min <= self.max", message="min must not be above max"),
                _rule("!has(self.share) || self.share * 2.0 < 3.0"),
                _rule(
                    "!has(self.min) || self.min != 13",
                    messageExpression="'min is %d'.format([self.min])",
                    reason="FieldValueForbidden",
                    fieldPath=".min",
                ),
                _rule("!has(self.max) || self.max != 13", reason="FieldValueDuplicate", fieldPath=".max"),
                _rule(
                    "!has(self.max) || self.max != 14", reason="FieldValueRequired", message="say it", fieldPath=".max"
                ),
                _rule("!has(self.words) || self.words.isSorted()", message="words must be sorted"),
                _rule(
                    "!has(self.words) || self.words.all(w, w.matches('^[a-z]+$'))",
                    messageExpression="self.words.join('/')",
                ),
                _rule("!has(self.port) || (type(self.port) == int ? self.port > 0 : self.port.endsWith('%'))"),
                _rule("!has(self.memory) || quantity(self.memory).isLessThan(quantity('1Gi'))", message="too much"),
                _rule(
                    "!has(self.url) || (isURL(self.url) && url(self.url).getScheme() == 'https')", message="https only"
                ),
                _rule("!has(self.when) || self.when > timestamp('2020-01-01T00:00:00Z')", message="too early"),
                _rule("!has(self.wait) || self.wait <= duration('1h')", message="too long a wait"),
                _rule("!has(self.labels) || self.labels.all(k, k != 'x')", message="no x"),
                _rule("!has(self.labels) || self.labels['a'] != 'b'", message="a is not b"),
                _rule("!has(self.dash__dash__ed) || self.dash__dash__ed != 'no'", message="dashed"),
                _rule("!has(self.__namespace__) || self.__namespace__ != 'no'", message="reserved"),
                _rule("!has(self.min) || 10 / self.min < 100", message="divided"),
                _rule("!has(self.flags) || !self.flags.?on.orValue(false) || !self.flags.?off.orValue(false)"),
                _rule("!has(self.max) || oldSelf.?max.orValue(0) <= self.max", message="max cannot shrink"),
            ],
        }
    ),
    "root-rules": {
        **_object(spec=_object(a=_STRING)),
        "x-kubernetes-validations": [
            _rule("self.metadata.name.startsWith('c')", message="name must start with c"),
            _rule("!has(self.spec) || !has(self.spec.a) || self.spec.a != self.metadata.name"),
        ],
    },
    "changed": _object(
        spec=_object(
            a={"type": "string", "maxLength": 3},
            b={"type": "integer", "maximum": 5},
            nested=_object(c={"type": "string", "enum": ["x"]}, d=_STRING),
            list=_list(_object(n=_STRING, v={"type": "string", "maxLength": 1})),
            map=_list(
                {**_object(n=_STRING, v={"type": "string", "maxLength": 1}), "required": ["n"]},
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
            ),
            ruled={"type": "string", "maxLength": 9, "x-kubernetes-validations": [_rule("self != 'bad'")]},
        )
    ),
}
LOOSE: dict[str, Json] = {
    "changed": _object(
        spec=_object(
            a=_STRING,
            b=_INTEGER,
            nested=_object(c=_STRING, d=_STRING),
            list=_list(_object(n=_STRING, v=_STRING)),
            map=_list(
                {**_object(n=_STRING, v=_STRING), "required": ["n"]},
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
            ),
            ruled=_STRING,
        )
    )
}
"""Schemas under which the old object of a case was written, where they differ from the current one."""


def _specs(schema: str, **specs: Json) -> list[Case]:
    return [Case(f"{schema}: {name.replace('_', ' ')}", schema, {"spec": spec}) for name, spec in specs.items()]


def _changes(schema: str, **changes: tuple[Json, Json]) -> list[Case]:
    return [
        Case(f"{schema}: {name.replace('_', ' ')}", schema, {"spec": new}, {"spec": old})
        for name, (old, new) in changes.items()
    ]


CASES = [
    *_specs(
        "shape",
        all_right={
            "text": "abc",
            "size": 3,
            "list": ["a"],
            "map": {"a": 1},
            "port": "http",
            "maybe": None,
            "ratio": 1.5,
        },
        ratio_is_an_integer={"ratio": 1},
        text_too_long={"text": "abcdefg"},
        text_too_short={"text": "a"},
        text_too_short_in_runes={"text": "é"},
        text_does_not_match={"text": "AB"},
        text_is_a_number={"text": 5},
        text_is_an_object={"text": {"a": 1}},
        text_is_null={"text": None},
        size_too_small={"size": 0},
        size_too_large={"size": 11},
        size_is_a_fraction={"size": 1.5},
        size_is_a_string={"size": "3"},
        size_is_a_bool={"size": True},
        size_is_a_whole_float={"size": 3.0},
        small_out_of_range={"small": 3000000000},
        small_is_a_string={"small": "x"},
        large_in_range={"large": 9007199254740993},
        strictly_at_the_edges={"strictly": 0},
        strictly_at_the_upper_edge={"strictly": 1},
        not_a_multiple={"tens": 15},
        ratio_not_a_multiple={"ratio": 0.6},
        ratio_too_small={"ratio": 0.25},
        ratio_is_a_string={"ratio": "x"},
        flag_is_a_string={"flag": "yes"},
        not_in_the_enum={"color": "blue"},
        integer_not_in_the_enum={"level": 3},
        integer_in_the_enum={"level": 2},
        list_too_long={"list": ["a", "b", "c"]},
        list_too_short={"list": []},
        list_is_an_object={"list": {}},
        list_item_is_wrong={"list": ["a", 5]},
        list_item_is_null={"list": [None]},
        map_too_large={"map": {"a": 1, "b": 2, "c": 3}},
        map_too_small={"map": {}},
        map_value_is_wrong={"map": {"a.b": "x"}},
        int_or_string_is_a_bool={"port": True},
        int_or_string_is_a_fraction={"port": 1.5},
        percent_does_not_match={"percent": "x"},
        percent_is_a_bool={"percent": False},
        integer_bound_is_a_fraction={"odd_bound": 3},
        bad_time={"when": "yesterday"},
        time_without_a_zone={"when": "2024-01-01T00:00:00"},
        time_is_a_number={"when": 5},
        time_is_a_bool={"when": True},
        good_time={"when": "2024-01-01T00:00:00.5+02:00"},
        bad_day={"day": "2024-13-01"},
        bad_wait={"wait": "soon"},
        good_wait={"wait": "1h30m"},
        long_wait={"wait": "2 weeks"},
        bad_bytes={"data": "%%%"},
        bad_link={"link": "not a link"},
        relative_link={"link": "a/b"},
        bad_mail={"mail": "nobody"},
        bad_host={"host": "-x-"},
        bad_four={"four": "1.2.3"},
        bad_six={"six": "1.2.3.4"},
        bad_net={"net": "10.0.0.0"},
        bad_mac={"mac": "1:2"},
        bad_id={"id": "1234"},
        unknown_format={"odd": "anything"},
        bad_short_name={"short": "A"},
        nested_misses_all={"nested": {}},
        nested_is_a_string={"nested": "x"},
        deep_misses_one={"deep": [{"name": "a"}, {}]},
        one_of_none={"one": {}},
        one_of_both={"one": {"a": "x", "b": "y"}},
        one_of_one={"one": {"a": "x"}},
        any_of_none={"any": {}},
        all_of_neither={"all": {"b": "x"}},
        all_of_one={"all": {"a": "x", "b": "x"}},
        not_this={"none": {"a": "x"}},
        several={"text": "A", "size": 0, "color": "blue"},
        unknown_fields={
            "what": 1,
            "nested": {"a": "x", "b": 1, "c": 2},
            "free": {"x": {"y": 1}, "known": {"a": "b", "z": 1}},
        },
        unknown_in_lists={"deep": [{"name": "a", "extra": 1}, {"name": "b"}], "list": ["a"]},
    ),
    Case("required: no spec", "required", {}),
    Case("required: empty spec", "required", {"spec": {}}),
    Case("required: spec is null", "required", {"spec": None}),
    Case("required: spec is a list", "required", {"spec": []}),
    *_specs(
        "defaults",
        empty={},
        nulls={"a": None, "nullable": None, "plain": None, "inner": None, "items": [None]},
        inside_lists_and_maps={"list": [{}, {"e": "z"}], "map": {"k": {}, "l": {"f": 2}}},
    ),
    Case("defaults: no spec", "defaults", {}),
    *_specs(
        "lists",
        right={"set": ["a", "b"], "map": [{"name": "a"}, {"name": "b"}]},
        twice_in_a_set={"set": ["a", "b", "a", "a"]},
        twice_in_a_map={"map": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]},
        twice_by_two_keys={"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]},
    ),
    *_specs(
        "embedded",
        nothing_of_an_object={"template": {"spec": {"a": "x"}}},
        empty_names={"template": {"apiVersion": "", "kind": ""}},
        odd_names={"template": {"apiVersion": "a/b/c", "kind": "K_"}},
        right={
            "template": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "x", "what": 1},
                "spec": {"a": "x", "b": 1},
            }
        },
        anything={"any": {"apiVersion": "v1", "kind": "Pod", "x": {"y": 1}}},
    ),
    *_specs(
        "rules",
        all_right={
            "min": 1,
            "max": 2,
            "share": 1,
            "words": ["a", "b"],
            "port": "5%",
            "memory": "1Mi",
            "url": "https://a/",
        },
        min_above_max={"min": 3, "max": 2},
        share_too_high={"share": 2},
        share_is_high_as_a_fraction={"share": 1.5},
        message_from_an_expression={"min": 13},
        duplicate_reason={"max": 13},
        required_reason={"max": 14},
        unsorted={"words": ["b", "a"]},
        bad_words={"words": ["A", "b"]},
        port_is_negative={"port": -1},
        port_is_a_word={"port": "x"},
        too_much_memory={"memory": "2Gi"},
        memory_is_no_quantity={"memory": "lots"},
        not_https={"url": "http://a/"},
        no_url={"url": "a"},
        too_early={"when": "2019-01-01T00:00:00Z"},
        wait_too_long={"wait": "2h"},
        label_x={"labels": {"x": "y", "a": "c"}},
        label_a_is_b={"labels": {"a": "b"}},
        no_label_a={"labels": {"c": "d"}},
        dashed={"dash-ed": "no"},
        reserved={"namespace": "no"},
        divided_by_zero={"min": 0},
        bad_entry={"entries": [{"name": "ok"}, {"name": "bad"}]},
        both_flags={"flags": {"on": True, "off": True}},
        shape_is_wrong_too={"min": "x", "max": 14},
    ),
    *_changes(
        "rules",
        name_stays=({"name": "a"}, {"name": "a"}),
        name_changes=({"name": "a"}, {"name": "b"}),
        name_appears=({}, {"name": "b"}),
        entry_shrinks=(
            {"entries": [{"name": "a", "size": 5}, {"name": "b", "size": 1}]},
            {"entries": [{"name": "b", "size": 2}, {"name": "a", "size": 4}]},
        ),
        max_shrinks=({"max": 5}, {"max": 4}),
        locked_changes=({"locked": "a"}, {"locked": "b"}),
        locked_appears=({}, {"locked": "b"}),
    ),
    Case("root-rules: name is right", "root-rules", {"spec": {"a": "x"}}),
    Case("root-rules: spec names itself", "root-rules", {"spec": {"a": "case"}}),
    Case("root-rules: name is wrong", "root-rules", {"metadata": {"name": "x"}}),
    *_changes(
        "changed",
        nothing=({"a": "abcd", "b": 9}, {"a": "abcd", "b": 9}),
        something_else=({"a": "abcd", "b": 9}, {"a": "abcd", "b": 1}),
        the_wrong_part=({"a": "abcd", "b": 9}, {"a": "abcde", "b": 9}),
        beside_it=({"nested": {"c": "y"}}, {"nested": {"c": "y", "d": "z"}}),
        in_a_plain_list=({"list": [{"n": "1", "v": "xx"}]}, {"list": [{"n": "1", "v": "xx"}, {"n": "2"}]}),
        in_a_list_map=({"map": [{"n": "1", "v": "xx"}]}, {"map": [{"n": "2"}, {"n": "1", "v": "xx"}]}),
        in_the_entry=({"map": [{"n": "1", "v": "xx"}]}, {"map": [{"n": "1", "v": "xxx"}]}),
        a_broken_rule_stays=({"ruled": "bad"}, {"ruled": "bad", "b": 1}),
        a_broken_rule_appears=({"ruled": "ok"}, {"ruled": "bad"}),
    ),
]

# Schemas that are refused, or just not.
_X = "x-kubernetes-"


def _in_spec(**properties: Any) -> Json:
    return _object(spec=_object(**properties))


def _ruled(schema: Json, *rules: Json) -> Json:
    return _in_spec(a={**schema, f"{_X}validations": list(rules)})


DEFINITIONS: dict[str, Json] = {
    "right": _in_spec(a=_STRING),
    "no type": {"properties": {"spec": _STRING}},
    "root is no object": {"type": "string"},
    "field without a type": _in_spec(a={"description": "x"}),
    "items without a type": _in_spec(a=_list({})),
    "array without items": _in_spec(a={"type": "array"}),
    "unknown type": _in_spec(a={"type": "text"}),
    "type null": _in_spec(a={"type": "null"}),
    "additional properties at the root": {"type": "object", "additionalProperties": _STRING},
    "properties and additional properties": _in_spec(a={**_object(b=_STRING), "additionalProperties": _STRING}),
    "unique items": _in_spec(a=_list(_STRING, uniqueItems=True)),
    "reference": _in_spec(a={"type": "object", "$ref": "#/x"}),
    "pattern properties": _in_spec(a={"type": "object", "patternProperties": {"x": _STRING}}),
    "bad pattern": _in_spec(a={"type": "string", "pattern": "["}),
    "look-ahead": _in_spec(a={"type": "string", "pattern": "(?=a)b"}),
    "open group": _in_spec(a={"type": "string", "pattern": "(a"}),
    "nothing to repeat": _in_spec(a={"type": "string", "pattern": "*a"}),
    "type in a branch": _in_spec(a={**_object(b=_STRING), "anyOf": [{"type": "object"}]}),
    "description in a branch": _in_spec(a={**_object(b=_STRING), "allOf": [{"description": "x"}]}),
    "default in a branch": _in_spec(a={**_object(b=_STRING), "oneOf": [{"properties": {"b": {"default": "x"}}}]}),
    "branch with a field that is not there": _in_spec(
        a={**_object(b=_STRING), "not": {"properties": {"c": {"enum": ["x"]}}}}
    ),
    "int or string": _in_spec(a={f"{_X}int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
    "int or string in a branch": _in_spec(
        a={
            f"{_X}int-or-string": True,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "x"}],
        }
    ),
    "int or string that is preserved": _in_spec(a={f"{_X}int-or-string": True, f"{_X}preserve-unknown-fields": True}),
    "preserve is false": _in_spec(a={"type": "object", f"{_X}preserve-unknown-fields": False}),
    "metadata with labels": _object(metadata=_object(labels={"type": "object"}), spec=_STRING),
    "metadata with a name": _object(metadata=_object(name={"type": "string", "maxLength": 5}), spec=_STRING),
    "metadata is a string": _object(metadata=_STRING, spec=_STRING),
    "kind is an integer": _object(kind=_INTEGER, spec=_STRING),
    "default of a wrong type": _in_spec(a={"type": "string", "default": 5}),
    "default with unknown fields": _in_spec(a={**_object(b=_STRING), "default": {"c": 1}}),
    "default that breaks a bound": _in_spec(a={"type": "integer", "minimum": 3, "default": 1}),
    "default in an object that breaks a bound": _in_spec(
        a={**_object(b={"type": "integer", "minimum": 3}), "default": {"b": 1}}
    ),
    "default at the root": {**_object(spec=_STRING), "default": {}},
    "default in metadata": _object(metadata=_object(name={"type": "string", "default": "x"}), spec=_STRING),
    "nullable root": {**_object(spec=_STRING), "nullable": True},
    "list type on a string": _in_spec(a={"type": "string", f"{_X}list-type": "set"}),
    "unknown list type": _in_spec(a=_list(_STRING, **{f"{_X}list-type": "bag"})),
    "map type on a string": _in_spec(a={"type": "string", f"{_X}map-type": "atomic"}),
    "unknown map type": _in_spec(a={"type": "object", f"{_X}map-type": "loose"}),
    "map keys without a map": _in_spec(a=_list(_object(n=_STRING), **{f"{_X}list-map-keys": ["n"]})),
    "map keys on a set": _in_spec(a=_list(_STRING, **{f"{_X}list-map-keys": ["n"], f"{_X}list-type": "set"})),
    "map without keys": _in_spec(a=_list(_object(n=_STRING), **{f"{_X}list-type": "map"})),
    "map of strings": _in_spec(a=_list(_STRING, **{f"{_X}list-type": "map", f"{_X}list-map-keys": ["n"]})),
    "map key that is not there": _in_spec(
        a=_list({**_object(n=_STRING), "required": ["n"]}, **{f"{_X}list-type": "map", f"{_X}list-map-keys": ["m"]})
    ),
    "map key that is optional": _in_spec(
        a=_list(_object(n=_STRING), **{f"{_X}list-type": "map", f"{_X}list-map-keys": ["n"]})
    ),
    "map key that is an object": _in_spec(
        a=_list(
            {**_object(n=_object(x=_STRING)), "required": ["n"]},
            **{f"{_X}list-type": "map", f"{_X}list-map-keys": ["n"]},
        )
    ),
    "set of objects": _in_spec(a=_list(_object(n=_STRING), **{f"{_X}list-type": "set"})),
    "set of nullables": _in_spec(a=_list({"type": "string", "nullable": True}, **{f"{_X}list-type": "set"})),
    "embedded string": _in_spec(a={"type": "string", f"{_X}embedded-resource": True}),
    "embedded without anything": _in_spec(a={"type": "object", f"{_X}embedded-resource": True}),
    "rule: right": _ruled(_STRING | {"maxLength": 9}, _rule("self.size() > 1")),
    "rule: empty": _ruled(_STRING, _rule("")),
    "rule: does not parse": _ruled(_STRING, _rule("self ==")),
    "rule: unknown field": _ruled(_object(b=_STRING), _rule("self.c == 'x'")),
    "rule: unknown field of an element": _ruled(_list(_object(b=_INTEGER), maxItems=3), _rule("self.all(e, e.c > 1)")),
    "rule: has of an unknown field": _ruled(_object(b=_STRING), _rule("has(self.c)")),
    "rule: unknown function": _ruled(_STRING, _rule("self.shout() == 'X'")),
    "rule: unknown variable": _ruled(_STRING, _rule("that == 'x'")),
    "rule: not a bool": _ruled(_STRING, _rule("self + 'x'")),
    "rule: wrong types": _ruled(_INTEGER, _rule("self == 'x'")),
    "rule: integer and double compare": _ruled(_INTEGER, _rule("self > 1.5")),
    "rule: integer and double do not add": _ruled(_INTEGER, _rule("self + 1.5 > 2.0")),
    "rule: number is a double": _ruled({"type": "number"}, _rule("self + 1 > 2.0")),
    "rule: int or string is anything": _ruled({f"{_X}int-or-string": True}, _rule("self == 'x' || self == 1")),
    "rule: time is a timestamp": _ruled({"type": "string", "format": "date-time"}, _rule("self == 'x'")),
    "rule: message expression is no string": _ruled(_STRING, _rule("self != 'x'", messageExpression="1")),
    "rule: message expression does not compile": _ruled(_STRING, _rule("self != 'x'", messageExpression="that")),
    "rule: message has a line break": _ruled(_STRING, _rule("self != 'x'", message="a\nb")),
    "rule: message is blank": _ruled(_STRING, _rule("self != 'x'", message=" ")),
    "rule: line break without a message": _ruled(_STRING, _rule("self\n!= 'x'")),
    "rule: error on the second line": _ruled(_STRING, _rule("self != 'x' &&\n  self.foo", message="m")),
    "rule: unknown reason": _ruled(_STRING, _rule("self != 'x'", reason="Because")),
    "rule: bad field path": _ruled(_object(b=_STRING), _rule("self.b != 'x'", fieldPath=".c")),
    "rule: good field path": _ruled(
        _object(b={"type": "string", "maxLength": 3}), _rule("self.b != 'x'", fieldPath=".b")
    ),
    "rule: old self in a plain list": _in_spec(
        a=_list({"type": "integer", f"{_X}validations": [_rule("self >= oldSelf")]}, maxItems=3)
    ),
    "rule: optional old self unused": _ruled(_STRING, _rule("self != 'x'", optionalOldSelf=True)),
    "rule: optional old self used as if always there": _ruled(_INTEGER, _rule("self > oldSelf", optionalOldSelf=True)),
    "rule: on what has no type": _ruled({f"{_X}preserve-unknown-fields": True}, _rule("self == self")),
    "rule: unknown fields are not seen": _ruled(
        {"type": "object", f"{_X}preserve-unknown-fields": True}, _rule("self.x == 1")
    ),
    "rule: metadata labels at the root": {
        **_object(spec=_STRING),
        f"{_X}validations": [_rule("has(self.metadata.labels)")],
    },
    "rule: default breaks it": _in_spec(
        a={"type": "string", "default": "x", "maxLength": 3, f"{_X}validations": [_rule("self != 'x'")]}
    ),
    "rule: two variables": _ruled(_list({"type": "integer"}, maxItems=3), _rule("self.all(i, v, v >= i)")),
    "rule: duration compared with a string": _ruled({"type": "string", "format": "duration"}, _rule("self > 'x'")),
    "rule: map value of a wrong type": _ruled(
        {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}}, _rule("self['a'] == 'x'")
    ),
    "rule: list of lists": _ruled(
        _list(_list(_INTEGER, maxItems=3), maxItems=3), _rule("self.all(l, l.all(v, v > 0))")
    ),
    "rule: quantity compared with a string": _ruled(
        _STRING | {"maxLength": 9}, _rule("quantity(self).isLessThan('1')")
    ),
    "rule: message expression sees old self": _ruled(
        _STRING | {"maxLength": 9}, _rule("self == oldSelf", messageExpression="'was ' + oldSelf")
    ),
    "rule: nested object compared": _ruled(_object(b=_object(c=_INTEGER)), _rule("self.b.c > 1 && self.b.d")),
    "rule: embedded metadata": _ruled(
        {**_object(spec=_STRING), f"{_X}embedded-resource": True},
        _rule("self.metadata.name == 'x' && self.kind == 'y'"),
    ),
    "rule: two mistakes": _ruled(_object(b=_INTEGER), _rule("self.x == 1 && self.y == 2")),
    "rule: two rules, one wrong": _ruled(_INTEGER, _rule("self > 1"), _rule("self > 'x'")),
    "rule: sets": _ruled(_list({"type": "integer"}, maxItems=3), _rule("sets.contains([1, 2, 3], self)")),
}


class Body(NamedTuple):
    """A body for a built-in kind."""

    name: str
    path: str
    body: Any


def _config_map(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "case"}, **fields}


def _deployment(**spec: Any) -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "case"}, "spec": spec}


def _pod(**container: Any) -> Json:
    spec = {"containers": [{"name": "c", "image": "i", **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "case"}, "spec": spec}


_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_PODS = "/api/v1/namespaces/default/pods"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_SERVICES = "/api/v1/namespaces/default/services"

BODIES = [
    Body("data is a list", _CONFIG_MAPS, _config_map(data=[])),
    Body("data has a number", _CONFIG_MAPS, _config_map(data={"a": 1})),
    Body("data has a bool", _CONFIG_MAPS, _config_map(data={"a": True})),
    Body("data has an object", _CONFIG_MAPS, _config_map(data={"a": {}})),
    Body("immutable is a string", _CONFIG_MAPS, _config_map(immutable="yes")),
    Body("binary data is no base64", _CONFIG_MAPS, _config_map(binaryData={"a": "%%%"})),
    Body("binary data is cut", _CONFIG_MAPS, _config_map(binaryData={"a": "YWJ"})),
    Body("binary data has bad padding", _CONFIG_MAPS, _config_map(binaryData={"a": "YWI=Y"})),
    Body("binary data is a number", _CONFIG_MAPS, _config_map(binaryData={"a": 5})),
    Body("labels have a number", _CONFIG_MAPS, _config_map(metadata={"name": "case", "labels": {"a": 1}})),
    Body("labels are a list", _CONFIG_MAPS, _config_map(metadata={"name": "case", "labels": ["a"]})),
    Body("name is a number", _CONFIG_MAPS, _config_map(metadata={"name": 5})),
    Body("metadata is a string", _CONFIG_MAPS, _config_map(metadata="x")),
    Body("finalizers are a string", _CONFIG_MAPS, _config_map(metadata={"name": "case", "finalizers": "x"})),
    Body("time is nonsense", _CONFIG_MAPS, _config_map(metadata={"name": "case", "creationTimestamp": "today"})),
    Body(
        "time has a bad month",
        _CONFIG_MAPS,
        _config_map(metadata={"name": "c", "creationTimestamp": "2024-13-01T00:00:00Z"}),
    ),
    Body("time is a number", _CONFIG_MAPS, _config_map(metadata={"name": "case", "creationTimestamp": 5})),
    Body(
        "time lacks a zone",
        _CONFIG_MAPS,
        _config_map(metadata={"name": "c", "creationTimestamp": "2024-01-01T00:00:00"}),
    ),
    Body("replicas is a string", _DEPLOYMENTS, _deployment(replicas="3")),
    Body("replicas is a fraction", _DEPLOYMENTS, _deployment(replicas=1.5)),
    Body("replicas is too large", _DEPLOYMENTS, _deployment(replicas=3000000000)),
    Body("spec is a list", _DEPLOYMENTS, {**_deployment(), "spec": []}),
    Body("template is a string", _DEPLOYMENTS, _deployment(template="x")),
    Body("strategy type is a number", _DEPLOYMENTS, _deployment(strategy={"type": 5})),
    Body("surge is a bool", _DEPLOYMENTS, _deployment(strategy={"rollingUpdate": {"maxSurge": True}})),
    Body("surge is a fraction", _DEPLOYMENTS, _deployment(strategy={"rollingUpdate": {"maxSurge": 1.5}})),
    Body("containers are an object", _DEPLOYMENTS, _deployment(template={"spec": {"containers": {}}})),
    Body("a container is a string", _DEPLOYMENTS, _deployment(template={"spec": {"containers": ["x"]}})),
    Body("image is a number", _DEPLOYMENTS, _deployment(template={"spec": {"containers": [{"image": 5}]}})),
    Body("pull policy is a bool", _PODS, _pod(imagePullPolicy=True)),
    Body("port is a string", _PODS, _pod(ports=[{"containerPort": "http"}])),
    Body("probe port is an object", _PODS, _pod(readinessProbe={"httpGet": {"port": {}}})),
    Body("an embedded field is wrong", _PODS, {**_pod(), "spec": {"volumes": [{"name": "a", "hostPath": "x"}]}}),
    Body("an embedded name is wrong", _PODS, _pod(env=[{"valueFrom": {"configMapKeyRef": {"name": 5}}}])),
    Body("binary data has padding first", _CONFIG_MAPS, _config_map(binaryData={"a": "=YWI"})),
    Body("binary data has half a padding", _CONFIG_MAPS, _config_map(binaryData={"a": "YQ="})),
    Body("binary data has a line break", _CONFIG_MAPS, _config_map(binaryData={"a": "YW\nI=x"})),
    Body("memory is nonsense", _PODS, _pod(resources={"limits": {"memory": "lots"}})),
    Body("memory has a bad suffix", _PODS, _pod(resources={"limits": {"memory": "1Gib"}})),
    Body("memory is a bool", _PODS, _pod(resources={"limits": {"memory": True}})),
    Body("memory is empty", _PODS, _pod(resources={"limits": {"memory": ""}})),
    Body("limits are a list", _PODS, _pod(resources={"limits": []})),
    Body("command is a string", _PODS, _pod(command="sh")),
    Body("two mistakes", _PODS, _pod(image=5, command="sh")),
    Body("a mistake, then a refusal", _PODS, _pod(image=5, resources={"limits": {"cpu": "x"}})),
    Body("priority is a string", _PODS, {**_pod(), "spec": {"priority": "x", "containers": []}}),
    Body("service port is a string", _SERVICES, {"metadata": {"name": "case"}, "spec": {"ports": [{"port": "x"}]}}),
    Body("service selector has a number", _SERVICES, {"metadata": {"name": "case"}, "spec": {"selector": {"a": 1}}}),
]
METADATA: dict[str, Any] = {
    "a number in labels": {"name": "case", "labels": {"a": 1}},
    "labels are a list": {"name": "case", "labels": []},
    "a string": "x",
    "a list": [],
    "name is a number": {"name": 5},
    "finalizers are a string": {"name": "case", "finalizers": "x"},
    "time is nonsense": {"name": "case", "creationTimestamp": "today"},
    "generation is a string": {"name": "case", "generation": "1"},
    "an owner is a string": {"name": "case", "ownerReferences": ["x"]},
}
"""Metadata of custom resources that cannot be decoded."""
STRICT = [
    Body("unknown at the top", _CONFIG_MAPS, _config_map(what=1)),
    Body("unknown in metadata", _CONFIG_MAPS, _config_map(metadata={"name": "case", "what": 1})),
    Body("unknown deep down", _PODS, _pod(what=1, resources={"limit": {}})),
    Body("unknown in lists", _PODS, _pod(env=[{"name": "a", "what": 1}], ports=[{"containerPort": 1, "x": {"y": 1}}])),
]
