"""The matchConditions of a webhook: CEL that decides whether it is asked at all.

The library is loaded when the first condition is seen. There is no `authorizer`: a condition that needs it fails.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from pilotage.harbor import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.harbor.kinds import Json, Kind

_STATUS = re.compile(r"^[A-Z_]+: ")
_NO_KEY = re.compile(r'Key not found in map : "?(.*?)"?$')


class Conditions:
    """All conditions of one webhook. They hold together, or it is not asked."""

    def __init__(self, conditions: Iterable[Json], ignores_failures: bool) -> None:
        self._expressions = [condition["expression"] for condition in conditions]
        self._ignores_failures = ignores_failures

    def met(self, request: Json, resource: Kind) -> bool:
        """Whether to ask. One that is false decides; one that fails does as the failure policy says."""
        if not self._expressions:
            return True
        data = {
            "object": request["object"],
            "oldObject": request["oldObject"],
            "request": {name: value for name, value in request.items() if name not in ("object", "oldObject")},
        }
        problems = []
        for expression in self._expressions:
            verdict, problem = _evaluate(expression, data)
            if problem:
                problems.append(f"expression '{expression}' resulted in error: {problem}")
            elif verdict is False:
                return False
        if problems and not self._ignores_failures:
            words = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise errors.forbidden(resource.group, resource.plural, request.get("name", ""), words)
        return not problems


def _evaluate(expression: str, data: Json) -> tuple[Any, str]:
    """Its value, and what went wrong."""
    try:
        result = _program(expression).eval(data=data)
    except RuntimeError as error:
        return None, f"compilation error: {error}"
    value = result.value()
    if result.type().name() == "ERROR":
        words = _STATUS.sub("", str(value))
        if words.startswith("No matching overloads found"):
            words = "no such overload"
        missing = _NO_KEY.search(words)
        return None, f"no such key: {missing[1]}" if missing else words
    return value, ""


@lru_cache(maxsize=1024)
def _program(expression: str) -> Any:  # noqa: ANN401 - loaded late
    return _environment().compile(expression)


@cache
def _environment() -> Any:  # noqa: ANN401 - loaded late
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_optional

    from pilotage.harbor.schema.cel_library import running_declarations

    return cel.NewEnv(
        variables=dict.fromkeys(("object", "oldObject", "request"), cel.Type.DYN),
        extensions=[ext_optional.ExtOptional(), ext_bindings.ExtBindings()],
        functions=running_declarations(),
    )
