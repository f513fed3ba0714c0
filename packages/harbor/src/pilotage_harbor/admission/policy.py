"""One policy, compiled, and its bindings: what it decides about a write.

The order and the words are kube-apiserver's: conditions first, then all validations, then audit annotations, which are
evaluated because they can fail, and written nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage_harbor.admission.match_resources import MatchResources
from pilotage_harbor.expressions.conditions import Conditions
from pilotage_harbor.expressions.programs import OUT_OF_BUDGET, OutOfBudget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pilotage_harbor.expressions.programs import CelProgram, EvaluationResult, Expressions, ExpressionVariables
    from pilotage_harbor.kinds import Json

MESSAGE_BYTES_MAX = 5 * 1024


class Denial(NamedTuple):
    """Reason of a policy to refuse a write."""

    message: str
    reason: str = "Invalid"
    always: bool = False
    """Whether it refuses whatever the binding does about failed validations."""


class Binding:
    """A ValidatingAdmissionPolicyBinding."""

    def __init__(self, obj: Json) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.actions: list[str] = spec.get("validationActions") or []
        self.param_ref: Json | None = spec.get("paramRef")
        resources = spec.get("matchResources")
        self.matching = MatchResources(resources, everything=True) if resources is not None else None


class _Validation(NamedTuple):
    expression: CelProgram
    message_expression: CelProgram | None
    message: str
    reason: str


class ValidatingAdmissionPolicy:
    """A ValidatingAdmissionPolicy."""

    def __init__(self, obj: Json, bindings: Iterable[Json], expressions: Expressions) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.bindings = [Binding(binding) for binding in bindings]
        self.param_kind: Json | None = spec.get("paramKind")
        self.ignores_failures = spec.get("failurePolicy") == "Ignore"
        self.matching = MatchResources(spec.get("matchConstraints") or {})
        variables = {each["name"]: each["expression"] for each in spec.get("variables") or ()}
        self._conditions = Conditions(spec.get("matchConditions") or (), expressions, variables)
        self._validations = [
            _Validation(
                expressions.program(each["expression"], variables),
                expressions.program(text, variables) if (text := each.get("messageExpression")) else None,
                each.get("message") or "",
                each.get("reason") or "Invalid",
            )
            for each in spec.get("validations") or ()
        ]
        self._annotations = [
            expressions.program(each["valueExpression"].strip(), variables)
            for each in spec.get("auditAnnotations") or ()
        ]

    def denials(self, values: ExpressionVariables) -> Iterator[Denial]:
        """Reasons to refuse the write in `values`; none if it is allowed."""
        try:
            met, problem = self._conditions.verdict(values)
            if problem and not self.ignores_failures:
                yield Denial(problem)
            if not met:
                return
            found = [self._denial(validation, values) for validation in self._validations]
            annotated = [_annotation_problem(each.evaluate(values.unauthorized), each) for each in self._annotations]
        except OutOfBudget:
            if not self.ignores_failures:
                yield Denial(OUT_OF_BUDGET)
            return
        yield from (denial for denial in found if denial is not None)
        if not self.ignores_failures:
            yield from (Denial(problem, always=True) for problem in annotated if problem)

    def _denial(self, validation: _Validation, values: ExpressionVariables) -> Denial | None:
        outcome = validation.expression.evaluate(values)
        if outcome.problem:
            return None if self.ignores_failures else Denial(outcome.problem)
        return None if outcome.value is True else Denial(_message(validation, values), validation.reason)


def _annotation_problem(outcome: EvaluationResult, program: CelProgram) -> str:
    if outcome.problem or outcome.type in ("STRING", "NULL"):
        return outcome.problem
    what = f"valueExpression '{program.text}' resulted in unsupported return type: {outcome.type.lower()}"
    return f"{what}. Return type must be either string or null."


def _message(validation: _Validation, values: ExpressionVariables) -> str:
    if validation.message_expression is not None:
        outcome = validation.message_expression.evaluate(values.unauthorized)
        if outcome.type == "STRING":
            text: str = outcome.value.strip()
            if text and "\n" not in text and len(text.encode()) <= MESSAGE_BYTES_MAX:
                return text
    return validation.message.strip() or f"failed expression: {validation.expression.text.strip()}"
