"""Text as strangers write it, taken apart into documents: JSON or YAML, each document as the bytes of its JSON.

YAML is read event by event, because the faster way through its library ends the process for a document that is nested
deeply enough, and because a dump can be large: the items of a list become JSON as soon as they are complete. Values
mean what they mean to kubectl: times stay text, ``yes`` is true, keys are text.
"""

import codecs
import gc
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pilotage.terminal import one_line

DEPTH_MAX = 200
NODES_BY_ALIAS_MAX = 1_000_000
BYTES_BY_ALIAS_MAX = 16 * 1024 * 1024
"""Bound of all that aliases stand for in one file. kubectl writes none."""

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_TABLE = re.compile(r"(NAMESPACE\s+)?NAME(\s+[A-Z][A-Z() -]+)*\s*$")
_DESCRIPTION = re.compile(r"Name:\s+\S+\s*$")
_COMPLAINT = re.compile(r"Error from server|error: |No resources found|Unable to connect|The connection to the server")
_SPACE = re.compile(r"\s*")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0x[0-9a-fA-F]{1,16}|0o?[0-7]{1,21}|0b[01]{1,64}|[1-9][0-9]{0,18}|0)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:[eE][-+]?[0-9]{1,2})?")
_STANDARD = "tag:yaml.org,2002:"


class DumpError(ValueError):
    """Files that cannot be used: one sentence, with the file, and the line where it is known."""

    def __init__(self, sentence: str) -> None:
        super().__init__(one_line(sentence))  # it may quote the file


def documents_untrusted(name: str, data: bytes, *, unique: bool = False) -> Iterator[tuple[str, bytes]]:
    """The documents of a file: where each is, and its JSON. Never none: raises DumpError.

    `unique`: a key that occurs twice in a mapping is refused; else the last one counts.
    """
    text = _text(name, data)
    _check_beginning(name, text)
    as_json = _json_documents(name, text)
    if as_json is not None:
        if unique:
            _check_keys(name, as_json)
        yield from ((name, each) for each in as_json)
        return
    found = False
    for line, raw in _yaml(name, text, unique=unique):
        found = True
        yield f"{name}, line {line}" if line > 1 else name, raw
    if not found:
        raise DumpError(f"{name}: there is no object in it.")


def _text(name: str, data: bytes) -> str:
    """PowerShell writes UTF-16; everybody else UTF-8."""
    encoding = next((each for bom, each in _BOMS if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DumpError(f"{name}: this is not text; objects are wanted as YAML or JSON.") from error
    if "\0" in text:
        raise DumpError(f"{name}: this is not text; objects are wanted as YAML or JSON.")
    if not text.strip():
        raise DumpError(f"{name}: it is empty. Give one with at least one object.")
    return text


def _check_beginning(name: str, text: str) -> None:
    """Refuse texts that people paste by mistake."""
    first = text.lstrip()[:500].partition("\n")[0]
    if _TABLE.match(first):
        raise DumpError(f"{name}: this is a table of kubectl; get the objects with -o yaml.")
    if _DESCRIPTION.match(first):
        raise DumpError(f"{name}: this is what kubectl describe prints; get the objects with `kubectl get -o yaml`.")
    if _COMPLAINT.match(first):
        raise DumpError(f"{name}: this is a message of kubectl, and no object: {first[:200].strip()}")


# JSON


def _json_documents(name: str, text: str) -> list[bytes] | None:
    """The documents, if it is JSON. YAML may begin with a brace, too."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return [*_json(text)]
    except json.JSONDecodeError as error:
        if name.endswith(".json"):
            raise DumpError(f"{name}, line {error.lineno}: this is not JSON ({error.msg}).") from error
        return None
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{name}: this JSON cannot be read ({error}).") from error


def _json(text: str) -> Iterator[bytes]:
    """One document after the other. JSONDecodeError says where it ends to be JSON."""
    whole = text.encode()
    try:
        msgspec.json.decode(whole, type=msgspec.Raw)
    except msgspec.DecodeError:
        decode = json.JSONDecoder().raw_decode
        at = _after_space(text, 0)
        while at < len(text):
            value, end = decode(text, at)
            yield msgspec.json.encode(value)
            at = _after_space(text, end)
    else:
        yield whole


def _check_keys(name: str, documents: list[bytes]) -> None:
    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key in made:
                raise DumpError(f"{name}: the field {key} occurs twice in one object. Remove one of them.")
            made[key] = value
        return made

    try:
        for document in documents:
            json.loads(document, object_pairs_hook=check)
    except RecursionError as error:
        raise DumpError(f"{name}: this JSON cannot be read ({error}).") from error


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


# YAML


def _yaml(name: str, text: str, *, unique: bool) -> Iterator[tuple[int, bytes]]:
    """The documents that are not empty, with the line where each begins."""
    import yaml

    collecting = gc.isenabled()
    gc.disable()  # it would look through all that is being built, again and again
    try:
        yield from _Builder(yaml, unique=unique).documents(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark else ""
        raise DumpError(f"{name}{place}: this is not YAML ({error.problem or error.context}).") from error
    except yaml.YAMLError as error:
        raise DumpError(f"{name}: this is not YAML ({' '.join(str(error).split())}).") from error
    except _BadValue as error:
        raise DumpError(f"{name}, line {error.line}: {error}.") from error
    finally:
        if collecting:
            gc.enable()


class _BadValue(Exception):
    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


class _Weight(NamedTuple):
    """Values, and bytes of their texts."""

    values: int
    bytes: int


class _Open:
    """A collection that is being read, the key whose value comes next, and all that was read before it."""

    __slots__ = ("anchor", "before", "into", "key", "merged")

    def __init__(self, into: dict[str, Any] | list[Any], anchor: str | None, before: _Weight) -> None:
        self.into = into
        self.key: str | None = None
        self.merged: list[dict[str, Any]] = []
        self.anchor = anchor
        self.before = before


class _Builder:
    """Makes values of events, without recursion. What aliases stand for is counted, so that they cannot explode."""

    def __init__(self, yaml: Any, *, unique: bool) -> None:  # noqa: ANN401 - a module, imported late
        self._yaml = yaml
        self._unique = unique
        self._known: dict[str, tuple[Any, _Weight]] = {}
        self._open: list[_Open] = []
        self._values = self._bytes = 0
        self._values_by_alias = self._bytes_by_alias = 0
        self._done: Any = None

    def documents(self, text: str) -> Iterator[tuple[int, bytes]]:
        yaml = self._yaml
        line = 1
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._values += 1
                self._bytes += len(event.value)
                value = _scalar(event)
                if event.anchor:
                    self._known[event.anchor] = (value, _Weight(1, len(event.value)))
                self._put(value, event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._start({} if kind is yaml.MappingStartEvent else [], event)
            elif kind is yaml.AliasEvent:
                self._put(self._alias(event), event)
            elif kind is yaml.DocumentStartEvent:
                self._known.clear()
                self._done = None
                line = event.start_mark.line + 1
            elif kind is yaml.DocumentEndEvent and self._done is not None:
                yield line, self._encode(self._done, event)

    def _start(self, into: dict[str, Any] | list[Any], event: Any) -> None:  # noqa: ANN401 - an event
        if len(self._open) == DEPTH_MAX:
            raise _BadValue("it is nested too deeply", _line(event))
        self._open.append(_Open(into, event.anchor, _Weight(self._values, self._bytes)))
        self._values += 1

    def _end(self, event: Any) -> None:  # noqa: ANN401 - an event
        done = self._open.pop()
        value: Any = done.into
        if done.merged:
            value = {name: each for source in reversed(done.merged) for name, each in source.items()} | value
        if done.anchor:
            weight = _Weight(self._values - done.before.values, self._bytes - done.before.bytes)
            self._known[done.anchor] = (value, weight)
        if len(self._open) == 2 and isinstance(self._open[1].into, list) and isinstance(value, dict):
            value = msgspec.Raw(self._encode(value, event))  # an item of a List
        self._put(value, event)

    def _alias(self, event: Any) -> Any:  # noqa: ANN401 - an event, a value
        if event.anchor not in self._known:
            raise _BadValue(f"*{event.anchor} stands for nothing that was complete before it", _line(event))
        value, weight = self._known[event.anchor]
        self._values += weight.values
        self._bytes += weight.bytes
        self._values_by_alias += weight.values
        self._bytes_by_alias += weight.bytes
        if self._values_by_alias > NODES_BY_ALIAS_MAX or self._bytes_by_alias > BYTES_BY_ALIAS_MAX:
            raise _BadValue("its aliases stand for too much", _line(event))
        return value

    def _put(self, value: Any, event: Any) -> None:  # noqa: ANN401 - a value, an event
        if not self._open:
            self._done = value
            return
        current = self._open[-1]
        into = current.into
        if isinstance(into, list):
            into.append(value)
        elif current.key is None:
            current.key = _key(value, event)
            if self._unique and current.key in into:
                raise _BadValue(f"the field {current.key} occurs twice in one object", _line(event))
        elif current.key == "<<" and isinstance(value, dict | list):
            self._merge(value, event)
            current.key = None
        else:
            into[current.key] = value
            current.key = None

    def _merge(self, value: dict[str, Any] | list[Any], event: Any) -> None:  # noqa: ANN401 - an event
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _BadValue("only mappings can be merged (<<)", _line(event))
        self._open[-1].merged += sources

    def _encode(self, value: Any, event: Any) -> bytes:  # noqa: ANN401 - a value, an event
        try:
            return msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise _BadValue(f"what ends here cannot be JSON ({error})", _line(event)) from error


def _line(event: Any) -> int:  # noqa: ANN401 - an event
    line: int = event.start_mark.line + 1
    return line


def _key(value: Any, event: Any) -> str:  # noqa: ANN401 - a value, an event
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise _BadValue("a key must be text", _line(event))


def _scalar(event: Any) -> Any:  # noqa: ANN401 - an event, a value
    text: str = event.value
    tag: str | None = event.tag
    plain = event.implicit[0] if tag is None else tag.startswith(_STANDARD) and not tag.endswith((":str", ":binary"))
    if not plain:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "+-.0123456789":
        return _number(text)
    return text


def _number(text: str) -> int | float | str:
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        number = int(digits, 8 if octal else 0) * (-1 if text[0] == "-" else 1)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(text):
        real = float(text)
        return int(real) if real.is_integer() and abs(real) < 2**53 else real
    return text
