"""Regular expressions as Go knows them (RE2), on Python's engine.

Both languages mostly agree. Where they do not, the pattern is rewritten (``$`` is the very end, ``[[:alpha:]]``, braces
that are no quantifier) or refused with Go's words (look-around, back references, possessive quantifiers). Classes are
ASCII in both. What Python has no words for (``\\p{Greek}``) is refused too: a deviation, and a rare one.
"""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
# Python has no Unicode categories; these two are what people write.
_CATEGORIES = {"L": "^\\W\\d_", "N": "\\d"}
_QUANTIFIER = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")
_FLAGS = re.compile(r"\(\?([imsU-]+)[:)]")
_NAMED = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")
_REPEAT_MAX = 1000
_ESCAPE_OK = frozenset("aftnrvdDsSwWbB")


class PatternError(ValueError):
    """Not a pattern that Go would take. The message is Go's."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {what}: `{where}`")


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, ready for `search`. Raises `PatternError`."""
    text = _Rewriter(pattern).rewritten()
    try:
        return re.compile(text, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error), pattern) from None


class _Rewriter:
    """One pass over a pattern, from Go's syntax to Python's."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []
        self.open: list[int] = []
        self.repeatable = False

    def rewritten(self) -> str:
        steps = {"\\": self._escape, "[": self._class, "(": self._group, ")": self._close, "{": self._brace}
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char in steps:
                steps[char]()
            elif char in "*+?":
                self._repeat(char)
            else:
                self.out.append("\\Z" if char == "$" else char)
                self.at += 1
                self.repeatable = char not in "|^"
        if self.open:
            raise PatternError("missing closing )", self.pattern)
        return "".join(self.out)

    def _take(self, text: str, length: int) -> None:
        self.out.append(text)
        self.at += length
        self.repeatable = True

    def _repeat(self, operator: str) -> None:
        if not self.repeatable:
            raise PatternError("missing argument to repetition operator", operator)
        end = self.at + len(operator)
        lazy = self.pattern[end : end + 1] == "?"
        end += lazy
        following = self.pattern[end : end + 1]
        if following and following in "*+?":
            raise PatternError("invalid nested repetition operator", self.pattern[self.at : end + 1])
        self._take(operator + ("?" if lazy else ""), end - self.at)

    def _brace(self) -> None:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if found is None:
            self._take("\\{", 1)
            return
        bounds = [int(bound) for bound in found.groups() if bound]
        if max(bounds) > _REPEAT_MAX or bounds != sorted(bounds):
            raise PatternError("invalid repeat count", found.group())
        self._repeat(found.group())

    def _group(self) -> None:
        rest = self.pattern[self.at :]
        self.open.append(self.at)
        if not rest.startswith("(?"):
            self._take("(", 1)
        elif rest.startswith("(?:"):
            self._take("(?:", 3)
        elif named := _NAMED.match(rest):
            self._take(f"(?P<{named.group(1)}>", named.end())
        elif (flags := _FLAGS.match(rest)) and "U" not in flags.group(1):
            self._flags(flags)
        elif rest.startswith(("(?<", "(?P<")):
            end = rest.find(">")
            raise PatternError("invalid named capture", rest[: end + 1] if end >= 0 else rest)
        else:
            raise PatternError("invalid or unsupported Perl syntax", rest[:3])
        self.repeatable = False

    def _flags(self, found: re.Match[str]) -> None:
        if found.group().endswith(":"):
            self._take(found.group(), found.end())
            return
        # Go's flags hold until the group ends; Python takes them so only at the very beginning.
        self.open.pop()
        self.at += found.end()
        if "".join(self.out):
            depth_end = len(self.pattern)
            inner = _Rewriter(self.pattern[self.at : depth_end]).rewritten()
            self.out.append(f"(?{found.group(1)}:{inner})")
            self.at = depth_end
        else:
            self.out.append(f"(?{found.group(1)})")

    def _close(self) -> None:
        if not self.open:
            raise PatternError("unexpected )", self.pattern)
        self.open.pop()
        self._take(")", 1)

    def _escape(self) -> None:
        self.out.append(self._escaped(in_class=False))
        self.repeatable = True

    def _escaped(self, *, in_class: bool) -> str:
        """Consume one escape and give Python's way of saying it."""
        rest = self.pattern[self.at : self.at + 2]
        if len(rest) == 1:
            raise PatternError("trailing backslash at end of expression", "")
        char = rest[1]
        self.at += 2
        if char in _ESCAPE_OK and not (in_class and char in "bB"):
            return rest
        if char in "AzQ" and not in_class:
            return self._literal() if char == "Q" else {"A": "\\A", "z": "\\Z"}[char]
        if char == "x":
            return self._hex()
        if char in "pP":
            return self._category(negated=char == "P", in_class=in_class)
        if char.isascii() and char.isalnum():
            raise PatternError("invalid escape sequence", rest)
        return re.escape(char)

    def _literal(self) -> str:
        end = self.pattern.find("\\E", self.at)
        text = self.pattern[self.at : end if end >= 0 else len(self.pattern)]
        self.at = end + 2 if end >= 0 else len(self.pattern)
        return re.escape(text)

    def _hex(self) -> str:
        found = re.compile(r"[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\}").match(self.pattern, self.at)
        if found is None or int(found.group().strip("{}"), 16) > 0x10FFFF:
            raise PatternError("invalid escape sequence", self.pattern[self.at - 2 : self.at + 2])
        self.at = found.end()
        return f"\\U{int(found.group().strip('{}'), 16):08x}"

    def _category(self, *, negated: bool, in_class: bool) -> str:
        found = re.compile(r"\w|\{\^?\w+\}").match(self.pattern, self.at)
        name = found.group().strip("{}") if found else ""
        if name not in _CATEGORIES or in_class or negated:
            raise PatternError("invalid character class range", f"\\p{{{name}}}")
        self.at += len(found.group()) if found else 0
        return f"(?u:[{_CATEGORIES[name]}])"

    def _class(self) -> None:
        start, self.at = self.at, self.at + 1
        parts = ["["]
        if self.pattern.startswith("^", self.at):
            parts.append("^")
            self.at += 1
        first = True
        while True:
            if self.at >= len(self.pattern):
                raise PatternError("missing closing ]", self.pattern[start:])
            char = self.pattern[self.at]
            if char == "]" and not first:
                break
            first = False
            parts.append(self._class_part(char))
        self._take("".join(parts) + "]", 1)

    def _class_part(self, char: str) -> str:
        if char == "\\":
            return self._escaped(in_class=True)
        posix = _POSIX_CLASS.match(self.pattern, self.at)
        if posix and posix.group(2) in _POSIX and not posix.group(1):
            self.at = posix.end()
            return _POSIX[posix.group(2)]
        self.at += 1
        # Python warns about what it may one day read as set operations.
        return f"\\{char}" if char in "[]&~|" else char
