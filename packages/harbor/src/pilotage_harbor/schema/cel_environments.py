"""The two environments of an expression: the one with types checks it, the one without runs it on plain dicts.

Importing this module loads cel-cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional

from pilotage_harbor.schema.cel_library import COMPARISONS, comparisons, declarations, running_declarations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CONFIG = """
stdlib:
  exclude_functions: [%s]
extensions:
  - name: two-var-comprehensions
  - name: lists
    version: latest
"""


def checking_environment(pool: Any, variables: Mapping[str, cel.Type], more: Iterable[cel.FunctionDecl] = ()) -> Any:  # noqa: ANN401
    """Environment in which expressions are checked. `pool` has the messages of the variables' types."""
    config = _CONFIG % ", ".join(f"{{name: {name}}}" for name in COMPARISONS)
    return cel.NewEnv(
        pool,
        config=cel.NewEnvConfigFromYaml(config),
        variables=dict(variables),
        extensions=[ext_optional.ExtOptional(), ext_bindings.ExtBindings()],
        functions=[*declarations(), *comparisons(), *more],
    )


def running_environment(variables: Mapping[str, cel.Type], more: Iterable[cel.FunctionDecl] = ()) -> Any:  # noqa: ANN401
    """Environment in which expressions run."""
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_CONFIG % ""),
        variables=dict(variables),
        extensions=[ext_optional.ExtOptional(), ext_bindings.ExtBindings()],
        functions=[*running_declarations(), *more],
    )
