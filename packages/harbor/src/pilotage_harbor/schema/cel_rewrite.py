"""Rewrites expressions for cel-cpp where it differs from cel-go, and finds their variables. Pure.

- A variable of a policy (``variables.x``) becomes a lazy binding around the expression.
- ``has(a.b)`` is false in cel-go where ``a`` is null or a scalar, and an error in cel-cpp.
- The body of a loop asks first whether there is time left (`TICK`): cel-cpp bounds the number of iterations, and not
  what each of them does to a text that somebody else has sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKENS = re.compile(
    r"""(?:[rbRB]{1,2}(?=["']))?(?:\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|//[^\n]*|\s+|0[xX][0-9a-fA-F]+u?|(?:\d+)?\.?\d+(?:[eE][+-]?\d+)?u?|\w+|&&|\|\||[=!<>]=|.""",
    re.DOTALL,
)
TICK = "pilotage_tick"
"""The function that is called in each iteration. It fails when there is no time left."""
_PREFIX = "pilotage_variable_"
_LOOPS = frozenset(
    {"all", "exists", "exists_one", "existsOne", "filter", "map", "transformList", "transformMap", "sortBy"}
)
_LOOP = re.compile(rf"\b(?:{'|'.join(sorted(_LOOPS))})\b")
_OPENING, _CLOSING = "([{", ")]}"


def inlined(text: str, variables: Mapping[str, str]) -> str:
    """An expression as it runs: its variables are bound around it, in the order in which they are declared."""
    needed: dict[str, str] = {}
    waiting = [text]
    while waiting:
        for name in used_variables(waiting.pop()):
            if name in variables and name not in needed:
                needed[name] = variables[name]
                waiting.append(variables[name])
    whole = _rewritten(text, needed)
    for name in reversed([*variables]):
        if name not in needed:
            continue
        whole = f"cel.bind({_PREFIX}{name}, {_rewritten(needed[name], needed)}\n, {whole}\n)"
    return whole


def used_variables(text: str) -> list[str]:
    """The names in all ``variables.name`` of an expression."""
    return [name for name, _, _ in _references(_solid(_TOKENS.findall(text)))]


def wrong_selection(text: str, values: Mapping[str, Any]) -> str:
    """cel-go's words for the first selection of a field from what has none; nothing if it cannot be found."""
    solid = _solid(_TOKENS.findall(text))
    for at, token in enumerate(solid):
        if token not in values or (at and solid[at - 1] == "."):
            continue
        value = values[token]
        while at + 2 < len(solid) and solid[at + 1] == ".":
            at += 2
            if isinstance(value, list):
                return "unsupported index type 'string' in list"
            if not isinstance(value, dict):
                return f"no such key: {solid[at]}"
            if solid[at] not in value:
                break
            value = value[solid[at]]
    return ""


def with_ticks(text: str) -> str:
    """An expression whose loops end when there is no time left."""
    return " ".join(_with_ticks(_solid(_TOKENS.findall(text)))) if _LOOP.search(text) is not None else text


def _rewritten(text: str, names: Mapping[str, str]) -> str:
    """Expression with the names of bindings for `names`, and every ``has`` safe."""
    if not names and "has" not in text and _LOOP.search(text) is None:
        return text
    solid = _solid(_TOKENS.findall(text))
    for name, begin, end in reversed(_references(solid)):
        if name in names:
            solid[begin : end + 1] = [f"{_PREFIX}{name}"]
    return " ".join(_with_ticks(_with_safe_has(solid)))


def _with_safe_has(solid: list[str]) -> list[str]:
    """``has(a.b)`` as ``(type(a) == map && has(a.b))``; the innermost first."""
    for at in range(len(solid) - 1, -1, -1):
        if solid[at : at + 2] != ["has", "("] or (at and solid[at - 1] == "."):
            continue
        end = _closing(solid, at + 1)
        inside = solid[at + 2 : end]
        if len(inside) > 2 and inside[-2] == ".":
            operand = inside[:-2]
            solid[at : end + 1] = ["(", "type", "(", *operand, ")", "==", "map", "&&", "has", "(", *inside, ")", ")"]
    return solid


def _with_ticks(solid: list[str]) -> list[str]:
    """``a.all(x, body)`` as ``a.all(x, pilotage_tick() ? (body) : dyn(false))``; the innermost first.

    Of a filter and a transformation, both are bodies.
    """
    for at in range(len(solid) - 3, 0, -1):
        if solid[at] not in _LOOPS or solid[at - 1] != "." or solid[at + 1] != "(":
            continue
        end = _closing(solid, at + 1)
        commas = _commas(solid, at + 1, end)
        first = 1 if solid[at] == "map" or len(commas) < 2 else 2
        for begin, stop in reversed([*zip(commas, [*commas[1:], end], strict=True)][first - 1 :]):
            body = solid[begin + 1 : stop]
            solid[begin + 1 : stop] = [TICK, "(", ")", "?", "dyn", "(", *body, ")", ":", "dyn", "(", "false", ")"]
    return solid


def _commas(solid: list[str], opening: int, closing: int) -> list[int]:
    """The places of the commas between the arguments of a call."""
    found, depth = [], 0
    for place in range(opening, closing):
        depth += (solid[place] in _OPENING) - (solid[place] in _CLOSING)
        if solid[place] == "," and depth == 1:
            found.append(place)
    return found


def _closing(solid: list[str], at: int) -> int:
    depth = 0
    for place in range(at, len(solid)):
        depth += (solid[place] in _OPENING) - (solid[place] in _CLOSING)
        if not depth:
            return place
    return len(solid) - 1


def _solid(tokens: list[str]) -> list[str]:
    """The tokens that mean something."""
    return [token for token in tokens if not token.isspace() and not token.startswith("//")]


def _references(solid: list[str]) -> list[tuple[str, int, int]]:
    """Occurrences of ``variables.name``: the name, and the positions of its first and last token."""
    return [
        (solid[at + 2], at, at + 2)
        for at in range(len(solid) - 2)
        if solid[at : at + 2] == ["variables", "."] and (not at or solid[at - 1] != ".")
    ]
