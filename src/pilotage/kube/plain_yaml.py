"""YAML as kubectl writes it: block mappings and lists of words without spaces, and nothing that could mean two things.

The import of a YAML library takes longer than a request to the API server. Nearly every kubeconfig is as plain as this
reads it; whatever is not is left to the library: None here means "read it with that", never "wrong".
"""

import re
from typing import Any

import msgspec

_LINE = re.compile(
    r"""(?P<indent>\ *) (?P<item>-\ )?
        (?: (?P<key>[A-Za-z][A-Za-z0-9_.-]*) : (?:\ (?P<value>\S+))? | (?P<word>\S+) )""",
    re.VERBOSE,
)
# A word that begins with a letter or a slash is no number and no date. That leaves those that are no text, too.
_WORD = re.compile(r"[A-Za-z/][A-Za-z0-9+/=._@:-]*")
_QUOTED = re.compile(r'"[A-Za-z0-9+/=._@:-]*"')
_NO_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_KNOWN = {"true": True, "false": False}


class NotPlain(Exception):
    """There is something in it that is for a real parser."""


class _Line(msgspec.Struct, frozen=True):
    indent: int
    item: bool
    key: str
    """Empty for a word in a list."""
    value: str
    """Empty where more lines below belong to the key."""


def parse_plain(text: bytes) -> dict[str, Any] | None:
    """The content of the file, as a YAML library would read it. None: it is not as plain as that."""
    try:
        lines = [_line(line) for line in text.decode("ascii").splitlines() if line.strip(" ")]
        if not lines or lines[0].item or lines[0].indent:
            return None
        content, end = _mapping(lines, 0, 0)
    except (NotPlain, UnicodeDecodeError):
        return None
    return content if end == len(lines) else None


def _line(line: str) -> _Line:
    match = _LINE.fullmatch(line)
    if match is None or (match["key"] is None and not match["item"]) or (match["key"] or "").lower() in _NO_TEXT:
        raise NotPlain
    return _Line(len(match["indent"]), bool(match["item"]), match["key"] or "", match["value"] or match["word"] or "")


def _mapping(lines: list[_Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    """The mapping whose keys stand at this indent, from this line on, and the line after it.

    Its first key may stand behind the dash of a list.
    """
    found: dict[str, Any] = {}
    first = at
    while at < len(lines):
        line = lines[at]
        column = line.indent + 2 if line.item else line.indent
        if column < indent or (line.item and at > first) or not line.key:
            break
        if column > indent or line.key in found:
            raise NotPlain
        if line.value:
            found[line.key], at = _scalar(line.value), at + 1
        else:
            found[line.key], at = _below(lines, at + 1, indent)
    return found, at


def _below(lines: list[_Line], at: int, indent: int) -> tuple[Any, int]:
    """The value of a key at this indent: a list, maybe at the same one, or a mapping further in, or nothing."""
    if at == len(lines) or lines[at].indent < indent or (lines[at].indent == indent and not lines[at].item):
        return None, at
    if lines[at].item:
        return _list(lines, at, lines[at].indent)
    return _mapping(lines, at, lines[at].indent)


def _list(lines: list[_Line], at: int, indent: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while at < len(lines) and lines[at].item and lines[at].indent == indent:
        if lines[at].key:
            each, at = _mapping(lines, at, indent + 2)
        else:
            each, at = _scalar(lines[at].value), at + 1
        found.append(each)
    if at < len(lines) and lines[at].indent > indent:
        raise NotPlain
    return found, at


def _scalar(word: str) -> Any:  # noqa: ANN401 - a value of YAML
    if word in ("{}", "[]"):
        return {} if word == "{}" else []
    if word in _KNOWN:
        return _KNOWN[word]
    if _QUOTED.fullmatch(word):
        return word[1:-1]
    if _WORD.fullmatch(word) and word.lower() not in _NO_TEXT and not word.endswith(":"):
        return word
    raise NotPlain
