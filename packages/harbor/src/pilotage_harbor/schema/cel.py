"""The rules of custom resources: x-kubernetes-validations, in CEL.

They are checked and run by cel-expr-python, Google's cel-cpp. It was compared with common-expression-language (Rust,
`cel` crate), which has no type checker: a rule that names a field that does not exist is refused by kube-apiserver when
the definition is written, and would be taken there. cel-cpp refuses it in the same words as kube-apiserver's cel-go,
has its macros and optionals, and tells integers from doubles. It is also faster in handing over objects: with 200
fields in ``self`` a rule took 190 µs where the other took 860 µs.

A rule is compiled twice: with the types of the schema, to find what is wrong with it, and without, to run on dicts.
Both libraries are loaded when the first rule is seen. What kube-apiserver does and this does not: it estimates what a
rule may cost and refuses expensive ones, checks literals of patterns and times ahead, and counts costs as rules run.
(What ends an endless rule here is cel-cpp's own bound on iterations, and one on the time of loops: `cel_budget`.)
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage_harbor.schema.causes import NO_FIELD, child, duplicate, forbidden, invalid, invalid_object, key, required
from pilotage_harbor.schema.cel_budget import Budget
from pilotage_harbor.schema.cel_rewrite import TICK, with_ticks
from pilotage_harbor.schema.cel_words import compiler_words, evaluation_words
from pilotage_harbor.schema.correlate import NOTHING, old_field, old_item
from pilotage_harbor.schema.field_path import resolve

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.schema.node import Rule, SchemaNode, Value

Json = dict[str, Any]

_STRINGS = re.compile(
    r"""\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""",
    re.DOTALL,
)
_OLD_SELF = re.compile(r"(?<![\w.])oldSelf\b")
_MESSAGE_MAX = 5 * 1024
_BUDGET = Budget(1.0)
"""Limit for all rules of one object, as kube-apiserver's, which counts costs that stand for about a second."""
_TOO_EXPENSIVE = (
    "'operation cancelled: actual cost limit exceeded': "
    "no further validation rules will be run due to call cost exceeds limit for rule"
)


def has_rules(schema: SchemaNode) -> bool:
    """Whether there is any rule in a schema."""
    return schema.has_rules


def uses_old_self(rule: str) -> bool:
    """Whether a rule is about a change, and not about a state."""
    return _OLD_SELF.search(_STRINGS.sub("''", rule)) is not None


# checking rules


class RuleProblems(NamedTuple):
    """Problems of one rule: "" is nothing."""

    rule: str = ""
    message_expression: str = ""


def check_rules(node: SchemaNode, *, root: bool) -> list[RuleProblems] | None:
    """Problems of the rules of one node. None if there is nothing that rules could see."""
    from pilotage_harbor.schema.cel_types import SelfType

    self_type = SelfType(node, root=root)
    if self_type.type is None:
        return None
    env = _typed_env(self_type)
    return [_check_rule(env, rule) for rule in node.rules]


def _check_rule(env: Any, rule: Rule) -> RuleProblems:  # noqa: ANN401 - loaded late
    problem = _compile_problem(env, rule.rule, "BOOL", rule)
    if problem is None:
        problem = "cel expression must evaluate to a bool"
    elif problem:
        problem = f"compilation failed: {problem}"
    message = ""
    if rule.message_expression and not problem:
        found = _compile_problem(env, rule.message_expression, "STRING", rule)
        message = "messageExpression must evaluate to a string" if found is None else found
        if found:
            message = f"messageExpression compilation failed: {found}"
    return RuleProblems(problem, message)


_BIND = "cel.bind(oldSelf, optional.of(oldSelf), "


def _compile_problem(env: Any, text: str, wanted: str, rule: Rule) -> str | None:  # noqa: ANN401 - loaded late
    """ "" if an expression compiles to the type that is wanted, None if to another, else what the compiler says."""
    prefix = _BIND if rule.optional_old_self else ""
    try:
        compiled = env.compile(f"{prefix}{text}{')' if prefix else ''}")
        if compiled.return_type().name() != wanted:
            return None
        _program(text, optional=rule.optional_old_self)
    except RuntimeError as error:
        return compiler_words(str(error), text, len(prefix))
    return ""


def _typed_env(self_type: Any) -> Any:  # noqa: ANN401 - loaded late
    from pilotage_harbor.schema.cel_environments import checking_environment

    return checking_environment(self_type.pool, {"self": self_type.type, "oldSelf": self_type.type})


# running rules


@cache
def _running_env() -> Any:  # noqa: ANN401 - loaded late
    from cel_expr_python import cel

    from pilotage_harbor.schema.cel_environments import running_environment
    from pilotage_harbor.schema.cel_library import Function, declared

    variables = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "has_old_self": cel.Type.BOOL}
    tick = Function(TICK, ("->bool",), _BUDGET.tick)
    return running_environment(variables, declared((tick,), running=True))


_RUN_BIND = "cel.bind(oldSelf, has_old_self ? optional.of(oldSelf) : optional.none(), "


@lru_cache(maxsize=1024)
def _program(text: str, *, optional: bool) -> Any:  # noqa: ANN401 - loaded late
    bounded = with_ticks(text)
    return _running_env().compile(f"{_RUN_BIND}{bounded})" if optional else bounded)


class _Program(NamedTuple):
    rule: Rule
    run: Any
    message: Any
    uses_old_self: bool
    field_path: str


def _programs(node: SchemaNode) -> list[_Program]:
    if node.programs is None:
        node.programs = [_compiled(node, rule) for rule in node.rules if rule.rule.strip()]
    programs: list[_Program] = node.programs
    return programs


def _compiled(node: SchemaNode, rule: Rule) -> _Program:
    message = None
    if rule.message_expression:
        message = _program(rule.message_expression, optional=rule.optional_old_self)
    path = resolve(node, rule.field_path) if rule.field_path else None
    run = _program(rule.rule, optional=rule.optional_old_self)
    return _Program(rule, run, message, uses_old_self(rule.rule), path or "")


def rule_problems(schema: SchemaNode, obj: Json, old: Json | None) -> list[StatusCause]:
    """Rules that an object breaks, and rules that a change breaks."""
    causes: list[StatusCause] = []
    _BUDGET.renew()
    _walk(schema, obj, NOTHING if old is None else old, "", causes, unchanged=old is not None and old == obj)
    return causes


def _walk(node: SchemaNode, value: Value, old: Value, path: str, causes: list[StatusCause], *, unchanged: bool) -> None:
    """`unchanged` says that the nearest part that could be found in the old object is as it was."""
    if value is None:
        return
    if old is not NOTHING:
        unchanged = unchanged or old == value
    if node.rules:
        _run_rules(node, value, old, path, causes, unchanged=unchanged)
    if isinstance(value, dict):
        for name, part in value.items():
            known = node.properties.get(name)
            where = child(path, name) if known is not None else key(path, name)
            known = known or node.additional
            if known is not None and known.has_rules:
                _walk(known, part, old_field(old, name), where, causes, unchanged=unchanged)
    elif isinstance(value, list) and node.items is not None and node.items.has_rules:
        for at, part in enumerate(value):
            _walk(node.items, part, old_item(node, part, old), f"{path}[{at}]", causes, unchanged=unchanged)


def _run_rules(
    node: SchemaNode, value: Value, old: Value, path: str, causes: list[StatusCause], *, unchanged: bool
) -> None:
    from pilotage_harbor.schema.cel_values import converter

    convert = converter(node)
    data: dict[str, Any] = {"self": convert(value), "oldSelf": None, "has_old_self": False}
    if old is not NOTHING and old is not None:
        data["oldSelf"], data["has_old_self"] = convert(old), True
    values = _running_env().Activation(data)
    for program in _programs(node):
        rule = program.rule
        if program.uses_old_self and not data["has_old_self"] and not rule.optional_old_self:
            continue
        try:
            result = program.run.eval(values)
        except RuntimeError:  # it has taken too many steps
            result = None
        if result is None or _BUDGET.exhausted:
            causes.append(invalid(path or NO_FIELD, node.type, f"{_TOO_EXPENSIVE}: {_name(rule)}"))
            return
        verdict = result.value()
        if verdict is True:
            continue
        if result.type().name() == "ERROR":
            causes.append(invalid(path or NO_FIELD, node.type, _evaluation_words(str(verdict), rule)))
        elif program.uses_old_self or not unchanged:
            where = _below(path, program.field_path)
            causes.append(_broken(node, value, where or NO_FIELD, _message(program, values), rule.reason))


def _below(path: str, below: str) -> str:
    return f"{path}.{below}" if path and below else path or below


def _message(program: _Program, values: Any) -> str:  # noqa: ANN401 - loaded late
    rule = program.rule
    if program.message is not None:
        try:
            result = program.message.eval(values)
        except RuntimeError:
            result = None
        if result is not None and result.type().name() == "STRING":
            text = str(result.value()).strip()
            if text and "\n" not in text and len(text) <= _MESSAGE_MAX:
                return text
    return rule.message.strip() if rule.message else f"failed rule: {_name(rule)}"


def _name(rule: Rule) -> str:
    return (rule.message or rule.rule).strip()


def _broken(node: SchemaNode, value: Value, path: str, detail: str, reason: str) -> StatusCause:
    if reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    if node.type in ("object", "array"):
        if reason == "FieldValueDuplicate":
            return duplicate(path, value)._replace(message="Duplicate value")
        return invalid_object(path, detail)
    return duplicate(path, value) if reason == "FieldValueDuplicate" else invalid(path, value, detail)


def _evaluation_words(said: str, rule: Rule) -> str:
    words = evaluation_words(said)
    if words.startswith("no such overload"):
        kind = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{words}': {kind}: {_name(rule)}"
    return f"{words} evaluating rule: {_name(rule)}"
