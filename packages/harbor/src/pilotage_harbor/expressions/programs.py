"""Runs the expressions of admission: those of policies, and the conditions of webhooks.

An expression runs on plain dicts. A variable of a policy (``variables.x``) becomes a lazy binding around the
expressions that use it, so it is evaluated only when it is needed, and may be of any type (see `schema.cel_rewriting`).
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage_harbor.schema.cel_budget import Budget
from pilotage_harbor.schema.cel_rewrite import TICK, inlined, used_variables, wrong_selection
from pilotage_harbor.schema.cel_words import NOT_SELECTABLE, compiler_words, evaluation_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilotage_harbor.access.attributes import AccessAttributes
    from pilotage_harbor.access.rbac import AuthorizationDecision
    from pilotage_harbor.apimachinery.users import UserInfo

VARIABLES = ("object", "oldObject", "request", "namespaceObject", "params", "authorizer", "authorizer.requestResource")
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


_TOO_DEEP = "nested too deeply: each variable that an expression uses, by itself or by others, is one of 32 levels"
SECONDS_MAX = 0.25
"""Processor time that the expressions of one policy may take for one write and one parameter. kube-apiserver counts
costs instead, which cel-cpp does not; its budget stands for about a second."""


class EvaluationResult(NamedTuple):
    """The value of an expression and its type, or what went wrong with it."""

    value: Any = None
    type: str = ""
    problem: str = ""


class OutOfBudget(Exception):
    """An evaluation was ended because it took too much."""


class ExpressionVariables:
    """The variables of one write. Each is converted once, when the first expression uses it."""

    def __init__(self, environment: Any, data: Mapping[str, Any]) -> None:  # noqa: ANN401 - loaded late
        self._environment = environment
        self.data = data

    @cached_property
    def activation(self) -> Any:  # noqa: ANN401 - loaded late
        """Variables in the form of cel-cpp."""
        return self._environment.Activation(dict(self.data))

    @cached_property
    def unauthorized(self) -> ExpressionVariables:
        """The same without the authorizer: messages and annotations have none."""
        data = {name: value for name, value in self.data.items() if not name.startswith("authorizer")}
        return ExpressionVariables(self._environment, data)


class CelProgram:
    """A compiled expression, or one that does not compile: it then fails whenever it is evaluated.

    `parts` compiles the variables that it uses itself, to find out which of them has failed.
    """

    def __init__(
        self,
        text: str,
        run: Any,  # noqa: ANN401 - loaded late
        parts: Mapping[str, Callable[[], CelProgram]],
        budget: Budget,
        problem: str = "",
    ) -> None:
        self.text = text
        self._run = run
        self._budget = budget
        self._parts = parts
        self.problem = problem
        """Compiler error; empty if it compiles."""

    def evaluate(self, values: ExpressionVariables) -> EvaluationResult:
        """Its outcome. Raises OutOfBudget if it takes too much."""
        if self._run is None:
            return EvaluationResult(problem=f"compilation error: {self.problem}")
        try:
            result = self._run.eval(values.activation)
        except RuntimeError:  # too many iterations
            raise OutOfBudget from None
        if self._budget.exhausted:
            raise OutOfBudget
        kind: str = result.type().name()
        try:
            value = result.value()
        except TypeError:  # an optional, which Python cannot have
            return EvaluationResult(type="OPTIONAL")
        if kind != "ERROR":
            return EvaluationResult(value, kind)
        return EvaluationResult(
            problem=f"expression '{self.text}' resulted in error: {self._explained(str(value), values)}"
        )

    def _explained(self, said: str, values: ExpressionVariables) -> str:
        words = evaluation_words(said)
        for name, compiled in self._parts.items():
            part = compiled()
            inner = part.evaluate(values).problem.removeprefix(f"expression '{part.text}' resulted in error: ")
            if inner.endswith(words):
                return f'composited variable "{name}" fails to evaluate: {inner}'
        return wrong_selection(self.text, values.data) or words if words == NOT_SELECTABLE else words


class Expressions:
    """Compiles and runs expressions; `decide` is behind their ``authorizer``."""

    def __init__(self, decide: Callable[[UserInfo, AccessAttributes], AuthorizationDecision]) -> None:
        self._decide = decide
        self.budget = Budget(SECONDS_MAX)
        """Budget of all expressions. To be renewed before those of another policy."""

    @cached_property
    def _environment(self) -> Any:  # noqa: ANN401 - loaded late
        from cel_expr_python import cel

        from pilotage_harbor.expressions.authorizer import functions
        from pilotage_harbor.schema.cel_environments import running_environment
        from pilotage_harbor.schema.cel_library import Function, declared

        tick = Function(TICK, ("->bool",), self.budget.tick)
        more = declared((tick, *functions(self._decide)), running=True)
        return running_environment(dict.fromkeys(VARIABLES, cel.Type.DYN), more)

    def program(self, text: str, variables: Mapping[str, str] | None = None, *, namespace: bool = True) -> CelProgram:
        """Compile an expression that may use these `variables`. Without `namespace`, ``namespaceObject`` is null."""
        variables = variables or {}
        whole = inlined(text, variables)
        if not namespace:
            whole = f"cel.bind(namespaceObject, null, {whole}\n)"
        parts = {
            name: partial(self.program, variables[name], variables)
            for name in used_variables(text)
            if name in variables
        }
        try:
            return CelProgram(text, self._compiled(whole), parts, self.budget)
        except RuntimeError as error:
            words = _TOO_DEEP if "recursion" in str(error) else compiler_words(str(error), text)
            return CelProgram(text, None, parts, self.budget, words)

    def _compiled(self, text: str) -> Any:  # noqa: ANN401 - loaded late
        try:
            return self._environment.compile(text)
        except RuntimeError:  # literals of different types, such as ``1 < 1.5``, which cel-go compares
            return self._environment.compile(text, disable_check=True)

    def values(self, data: Mapping[str, Any]) -> ExpressionVariables:
        """Values that expressions are evaluated with: one for each of `VARIABLES`, of which others are absent."""
        return ExpressionVariables(self._environment, data)
