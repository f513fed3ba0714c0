"""Escaped names of properties that are no identifiers of CEL, or reserved words there."""

from __future__ import annotations

import re

RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


def escape(name: str) -> str | None:
    """Name of a property in a rule: ``x-y`` is ``x__dash__y``. None if it has none."""
    if name in RESERVED:
        return f"__{name}__"
    if _IDENTIFIER.fullmatch(name) and "__" not in name:
        return name
    for char, word in _ESCAPED:
        name = name.replace(char, word)
    return name if _IDENTIFIER.fullmatch(name) else None
