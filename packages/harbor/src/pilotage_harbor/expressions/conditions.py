"""The matchConditions of a webhook or a policy: CEL that decides whether it is asked at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.expressions.programs import OUT_OF_BUDGET, OutOfBudget

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pilotage_harbor.expressions.programs import Expressions, ExpressionVariables
    from pilotage_harbor.kinds import Json, Kind


class ConditionOutcome(NamedTuple):
    """Whether all conditions are met, and what is wrong if that cannot be said."""

    met: bool
    problem: str = ""


class Conditions:
    """All conditions of one webhook or policy. They hold together, or it is not asked."""

    def __init__(
        self, conditions: Iterable[Json], expressions: Expressions, variables: Mapping[str, str] | None = None
    ) -> None:
        self._expressions = expressions
        self._programs = [
            expressions.program(condition["expression"], variables, namespace=False) for condition in conditions
        ]

    def verdict(self, values: ExpressionVariables) -> ConditionOutcome:
        """One that is false decides, even if others fail. Raises OutOfBudget."""
        problems: list[str] = []
        for program in self._programs:
            outcome = program.evaluate(values)
            if outcome.problem:
                problems.append(outcome.problem)
            elif outcome.value is False:
                return ConditionOutcome(False)
        unique = list(dict.fromkeys(problems))
        return ConditionOutcome(not problems, f"[{', '.join(unique)}]" if len(unique) > 1 else "".join(unique))

    def met(self, data: Mapping[str, object], resource: Kind, name: str, *, ignores_failures: bool) -> bool:
        """Whether to ask a webhook; 403 if that cannot be said and failures are not to be ignored."""
        if not self._programs:
            return True
        self._expressions.budget.renew()
        try:
            verdict = self.verdict(self._expressions.values(data))
        except OutOfBudget:
            verdict = ConditionOutcome(False, OUT_OF_BUDGET)
        if verdict.problem and not ignores_failures:
            raise errors.forbidden(resource.group, resource.plural, name, verdict.problem)
        return verdict.met
