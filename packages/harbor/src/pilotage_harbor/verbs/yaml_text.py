"""YAML as strangers send it, read once and bounded while it is read: how deep it goes, and what its aliases stand for.

It is read event by event. The way through the library's own nodes takes several times as long, keeps no count of how
deep it goes (a document that is nested deeply enough ends the process), and holds the interpreter all that time.

An alias is counted, in values and in bytes, before it is written out: a short document can stand for terabytes.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pilotage_harbor.apimachinery.calls import BODY_BYTES_MAX
from pilotage_harbor.verbs.yaml_values import MERGE, key_text, meaning

DEPTH_MAX = 250
"""Maximum depth of a body, in JSON as well. Walking through it takes up to three calls for each level."""
VALUES_MAX = 500_000
"""Maximum number of values in a document once its aliases are written out; its texts may have BODY_BYTES_MAX."""

Value = Any
"""A decoded JSON value."""


class TooDeep(ValueError):
    """The document is nested more deeply than DEPTH_MAX."""


class Loaded(NamedTuple):
    """A document as JSON, and a line for each key that its mapping had before, in the order in which Go meets them."""

    value: Value
    repeated: list[str]


class _Weight(NamedTuple):
    """Size of a value with all that it contains; `height` is the depth of nested collections."""

    values: int
    bytes: int
    height: int


class _Key(NamedTuple):
    name: str
    tag: str
    text: str


class _Open:
    """A collection that is being read, and the key whose value comes next."""

    __slots__ = ("anchor", "before", "height", "into", "key", "line", "merged", "seen")

    def __init__(self, into: dict[str, Value] | list[Value], anchor: str | None, line: int, before: _Weight) -> None:
        self.into = into
        self.anchor = anchor
        self.line = line
        self.before = before
        self.height = 1
        self.key: _Key | None = None
        self.seen: set[tuple[str, str]] = set()
        self.merged: dict[str, Value] = {}


def load_untrusted(body: bytes) -> Loaded:
    """The one document that there is (None if there is none). Raises `yaml.YAMLError` or `ValueError`."""
    return _Builder().load(body)


class _Builder:
    """Makes values of events, without recursion."""

    def __init__(self) -> None:
        self._anchors: dict[str, tuple[Value, _Weight] | None] = {}
        """None is one whose value is not complete."""
        self._open: list[_Open] = []
        self._values = self._bytes = 0
        self._repeated: list[str] = []
        self._root: Value = None

    def load(self, body: bytes) -> Loaded:
        import yaml

        started = False
        for event in _events(body):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end()
            elif kind is yaml.MappingStartEvent:
                self._start({}, event)
            elif kind is yaml.SequenceStartEvent:
                self._start([], event)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                if started:
                    raise ValueError("but found another document")
                started = True
        return Loaded(self._root, self._repeated)

    def _scalar(self, event: Any) -> None:  # noqa: ANN401 - yaml has no types
        text: str = event.value
        self._values += 1
        self._bytes += len(text)
        tag, value = meaning(text, event.tag, plain=event.implicit[0])
        if event.anchor:
            self._anchors[event.anchor] = (value, _Weight(1, len(text), 0))
        if not self._is_key(value, tag, text):
            self._put(value, event.start_mark.line, 0)

    def _start(self, into: dict[str, Value] | list[Value], event: Any) -> None:  # noqa: ANN401 - as above
        if len(self._open) == DEPTH_MAX:
            raise TooDeep("exceeded max depth of 10000")
        if self._open and type(self._open[-1].into) is dict and self._open[-1].key is None:
            raise ValueError("invalid map key")
        before = _Weight(self._values, self._bytes, 0)
        self._values += 1
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(into, event.anchor, event.start_mark.line, before))

    def _end(self) -> None:
        done = self._open.pop()
        value = {**done.merged, **done.into} if done.merged and isinstance(done.into, dict) else done.into
        if done.anchor:
            weight = _Weight(self._values - done.before.values, self._bytes - done.before.bytes, done.height)
            self._anchors[done.anchor] = (value, weight)
        self._put(value, done.line, done.height)

    def _alias(self, event: Any) -> None:  # noqa: ANN401 - as above
        if event.anchor not in self._anchors:
            raise ValueError(f"unknown anchor '{event.anchor}' referenced")
        known = self._anchors[event.anchor]
        if known is None:
            raise ValueError(f"anchor '{event.anchor}' value contains itself")
        value, weight = known
        self._values += weight.values
        self._bytes += weight.bytes
        if self._values > VALUES_MAX or self._bytes > BODY_BYTES_MAX:
            raise ValueError("document contains excessive aliasing")
        if len(self._open) + weight.height > DEPTH_MAX:
            raise TooDeep("exceeded max depth of 10000")
        if not self._is_key(value, type(value).__name__, str(value) if weight.height == 0 else ""):
            self._put(_copied(value) if weight.height else value, event.start_mark.line, weight.height)

    def _is_key(self, value: Value, tag: str, text: str) -> bool:
        """Whether this is the key of what comes next; it is kept as such."""
        if not self._open:
            return False
        current = self._open[-1]
        if type(current.into) is list or current.key is not None:
            return False
        current.key = _Key(text if tag == MERGE else key_text(value), tag, text)
        return True

    def _put(self, value: Value, line: int, height: int) -> None:
        if not self._open:
            self._root = value
            return
        current = self._open[-1]
        if height >= current.height:
            current.height = height + 1
        into = current.into
        if isinstance(into, list):
            into.append(value)
            return
        key, current.key = current.key, None
        assert key is not None
        if key.tag == MERGE:
            _merge(value, current.merged)
        else:
            into[key.name] = value
        if (key.tag, key.text) in current.seen:
            shown = json.dumps(key.text, ensure_ascii=False) if key.tag == "str" else key.text
            self._repeated.append(f"line {line + 1}: key {shown} already set in map")
        current.seen.add((key.tag, key.text))


def _events(body: bytes) -> Any:  # noqa: ANN401 - as above
    import yaml

    return yaml.parse(body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _merge(value: Value, into: dict[str, Value]) -> None:
    """Merge the mappings that ``<<`` names; of several, the first one counts."""
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise ValueError("map merge requires map or sequence of maps as the value")
    for source in reversed(sources):
        into.update(source)


def _copied(value: Value) -> Value:
    """Copy of the value of an alias."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value
