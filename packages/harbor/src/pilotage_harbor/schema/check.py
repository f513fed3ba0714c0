"""Whether a custom resource is what its schema says, in kube-apiserver's words.

The order is kube-apiserver's: the JSON schema first, then embedded objects, lists that are sets or maps, and last the
rules in CEL, which are skipped when the shape is wrong. On an update, what is wrong in a part that did not change is
let through ("ratcheting"): a part is the same part if it is under the same key, or in the same entry of a list map.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage_harbor.schema import cel
from pilotage_harbor.schema.causes import (
    NO_FIELD,
    child,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)
from pilotage_harbor.schema.correlate import NOTHING, old_field, old_item
from pilotage_harbor.schema.embedded import embedded_problems
from pilotage_harbor.schema.formats import checker, supported
from pilotage_harbor.schema.gotext import dumps, number, quote
from pilotage_harbor.schema.lists import list_problems
from pilotage_harbor.schema.patterns import PatternError, compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.schema.node import SchemaNode, Value

Json = dict[str, Any]

_BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def validate(schema: SchemaNode, obj: Json, old: Json | None = None, *, part: str = "") -> list[StatusCause]:
    """Problems of an object; with `old`, what is wrong with the change.

    `part` is ``status`` for a write to the status alone: only that field is held against the JSON schema then.
    """
    causes = _shape_problems(schema, obj, old, part)
    causes += embedded_problems(schema, obj)
    if old is None or not list_problems(schema, old):
        causes += list_problems(schema, obj)
    if cel.has_rules(schema):
        if any(cause.reason in _BLOCKING for cause in causes):
            causes.append(invalid(NO_FIELD, None, _NOT_CHECKED))
        else:
            causes += cel.rule_problems(schema, obj, old)
    return causes


def validate_value(schema: SchemaNode, value: Value) -> list[StatusCause]:
    """Problems of a part of an object, such as a default. Fields are named from that part on."""
    causes: list[StatusCause] = []
    _check_part(schema, value, "", causes, NOTHING)
    if not causes and cel.has_rules(schema):
        causes = cel.rule_problems(schema, value, None)
    return causes


def _shape_problems(schema: SchemaNode, obj: Json, old: Json | None, part: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if not part:
        _check_part(schema, obj, "", causes, NOTHING if old is None else old)
        return causes
    known = schema.properties.get(part)
    if known is not None and part in obj:
        _check_part(known, obj[part], "", causes, NOTHING if old is None else old.get(part, NOTHING))
    return [cause._replace(field=part if cause.field == NO_FIELD else child(part, cause.field)) for cause in causes]


class _Plan(NamedTuple):
    """Facts about a node that are computed once."""

    types: tuple[str, ...]
    python_types: frozenset[type]
    """A value of one of these has the right type; others may have it."""
    format: str
    format_ok: Callable[[str], bool] | None
    pattern: re.Pattern[str] | None
    pattern_problem: str
    has_number_bounds: bool
    has_branches: bool


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _plan(node: SchemaNode) -> _Plan:
    types = ("integer", "string") if node.int_or_string else ((node.type,) if node.type else ())
    format_name = supported(types[0] if len(types) == 1 else "", node.format) if node.format else ""
    pattern, problem = None, ""
    if node.pattern:
        try:
            pattern = compile_pattern(node.pattern)
        except PatternError as error:
            problem = f"{node.pattern}, but pattern is invalid: {error}"
    plan = _Plan(
        types=types,
        python_types=frozenset(found for name in types for found in _PYTHON_TYPES.get(name, ())),
        format=format_name,
        format_ok=checker(format_name) if format_name else None,
        pattern=pattern,
        pattern_problem=problem,
        has_number_bounds=not (node.minimum is None and node.maximum is None and node.multiple_of is None),
        has_branches=bool(node.all_of or node.any_of or node.one_of or node.not_),
    )
    node.prepared = plan
    return plan


def _check_part(node: SchemaNode, value: Value, path: str, causes: list[StatusCause], old: Value) -> int:
    """Check a value; if it is the same as before, what is wrong with it is let through."""
    before = len(causes)
    matched = _check(node, value, path, causes, old)
    if len(causes) > before and old is not NOTHING and old == value:
        del causes[before:]
    return matched


def _check(node: SchemaNode, value: Value, path: str, causes: list[StatusCause], old: Value) -> int:
    """Check a value. The result counts what was right: of several branches, the one with the most is reported."""
    plan: _Plan = node.prepared or _plan(node)
    if value is None:
        matched = _check_null(node, plan, path, causes)
        _check_enum(node, value, path, causes)
        return matched
    matched = 4  # this node, the branches and what they count for themselves, the enum
    if plan.types or plan.format:
        before = len(causes)
        if type(value) not in plan.python_types:
            _check_type(plan, value, path, causes)
        matched += 2 if len(causes) == before else 1
    if plan.has_branches:
        matched += _check_branches(node, value, path, causes, old)
    if isinstance(value, str):
        matched += 1 + (plan.format_ok is not None)
        _check_string(node, plan, value, path, causes)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        matched += 2
        _check_number(node, plan, value, path, causes)
    elif isinstance(value, list):
        matched += 2 + _check_list(node, value, path, causes, old)
    if node.enum is not None:
        _check_enum(node, value, path, causes)
    if isinstance(value, dict):
        matched += 1 + _check_object(node, value, path, causes, old)
    return matched


def _field(path: str) -> str:
    path = path.removeprefix(".")
    return path or NO_FIELD


def _check_null(node: SchemaNode, plan: _Plan, path: str, causes: list[StatusCause]) -> int:
    if plan.types and not node.nullable:
        causes.append(_wrong_type(path, ",".join(plan.types), "null"))
        return 0
    return 1


def _json_type(value: object) -> tuple[str, str]:
    """The JSON type of a value, and the format that Go sees in it."""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def _check_type(plan: _Plan, value: Value, path: str, causes: list[StatusCause]) -> None:
    json_type, json_format = _json_type(value)
    fits = (
        json_type in plan.types
        or (json_type == "number" and "integer" in plan.types and value.is_integer())
        or (json_type == "integer" and "number" in plan.types)
    )
    textual = json_type in ("string", "array")
    if not textual and plan.format and not fits and json_format != plan.format:
        causes.append(_wrong_type(path, plan.format, json_format))
    elif textual and plan.format and "number" not in plan.types and "integer" not in plan.types:
        return  # a format is checked for itself
    elif not fits:
        causes.append(_wrong_type(path, ",".join(plan.types), json_type))


def _wrong_type(path: str, wanted: str, found: str) -> StatusCause:
    return type_invalid(_field(path), found, f"{path} in body must be of type {wanted}: {quote(found)}")


def _check_string(node: SchemaNode, plan: _Plan, value: str, path: str, causes: list[StatusCause]) -> None:
    if node.max_length is not None and len(value) > node.max_length:
        causes.append(too_long(_field(path), node.max_length))
    elif node.min_length is not None and len(value) < node.min_length:
        detail = f"{path} in body should be at least {node.min_length} chars long"
        causes.append(invalid(_field(path), value, detail))
    elif plan.pattern is not None:
        if plan.pattern.search(value) is None:
            causes.append(invalid(_field(path), value, f"{path} in body should match '{node.pattern}'"))
    elif plan.pattern_problem:
        causes.append(invalid(_field(path), value, f"{path} in body should match '{plan.pattern_problem}'"))
    if plan.format_ok is not None and not plan.format_ok(value):
        detail = f"{path} in body must be of type {plan.format}: {quote(value)}"
        causes.append(type_invalid(_field(path), value, detail))


_RANGES = {"int32": 2**31, "int64": 2**63, "": 2**63}


def _check_number(node: SchemaNode, plan: _Plan, value: float, path: str, causes: list[StatusCause]) -> None:
    if plan.types == ("integer",):
        limit = _RANGES[plan.format]
        if not -limit <= value < limit or value != int(value):
            kind = f"with format {plan.format}" if plan.format else "(default format)"
            causes.append(invalid(NO_FIELD, "", f"Checked value must be of type integer {kind} in {path}"))
    if not plan.has_number_bounds:
        return
    for bound, name in ((node.multiple_of, "MultipleOf"), (node.maximum, "Maximum boundary")):
        _check_bound(plan, bound, name, path, causes)
    _check_bound(plan, node.minimum, "Minimum boundary", path, causes)
    if node.multiple_of is not None:
        _check_multiple(value, _bound(plan, node.multiple_of, value), path, causes)
    if node.minimum is not None:
        low = _bound(plan, node.minimum, value)
        if value <= low if node.exclusive_minimum else value < low:
            relation = "greater than" if node.exclusive_minimum else "greater than or equal to"
            causes.append(invalid(_field(path), value, f"{path} in body should be {relation} {number(low)}"))
    if node.maximum is not None:
        high = _bound(plan, node.maximum, value)
        if value >= high if node.exclusive_maximum else value > high:
            relation = "less than" if node.exclusive_maximum else "less than or equal to"
            causes.append(invalid(_field(path), value, f"{path} in body should be {relation} {number(high)}"))


def _check_bound(plan: _Plan, bound: float | None, name: str, path: str, causes: list[StatusCause]) -> None:
    if bound is not None and plan.types == ("integer",) and bound != int(bound):
        kind = f"with format {plan.format}" if plan.format else "(default format)"
        causes.append(invalid(NO_FIELD, "", f"{name} value must be of type integer {kind} in {path}"))


def _bound(plan: _Plan, bound: float, value: float) -> float:
    """The bound to compare with: an integer for an integer value, unless the bound of an integer schema is none."""
    fits = plan.types != ("integer",) or bound == int(bound)
    return int(bound) if isinstance(value, int) and fits else bound


def _check_multiple(value: float, factor: float, path: str, causes: list[StatusCause]) -> None:
    if factor <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {number(factor)}"
        causes.append(invalid(_field(path), factor, detail))
        return
    if isinstance(value, int) and isinstance(factor, int):
        right = value % factor == 0
    else:
        ratio = 1 / factor * value if factor < 1 else value / factor
        right = math.isfinite(ratio) and abs(ratio - round(ratio)) < 1e-9
    if not right:
        causes.append(invalid(_field(path), value, f"{path} in body should be a multiple of {number(factor)}"))


def _check_list(node: SchemaNode, value: list[Any], path: str, causes: list[StatusCause], old: Value) -> int:
    matched = 0
    if node.items is not None:
        items = node.items
        if old is NOTHING or node.list_type != "map":
            for at, element in enumerate(value):
                matched += _check_part(items, element, f"{path}[{at}]", causes, NOTHING)
        else:
            for at, element in enumerate(value):
                matched += _check_part(items, element, f"{path}[{at}]", causes, old_item(node, element, old))
    size = len(value)
    if node.min_items is not None and size < node.min_items:
        causes.append(invalid(_field(path), size, f"{path} in body should have at least {node.min_items} items"))
    if node.max_items is not None and size > node.max_items:
        causes.append(too_many(_field(path), size, node.max_items))
    if node.unique_items and len({dumps(element) for element in value}) < size:
        causes.append(invalid(_field(path), "", f"{path} in body shouldn't contain duplicates"))
    return matched


def _check_enum(node: SchemaNode, value: Value, path: str, causes: list[StatusCause]) -> None:
    if node.enum is None or any(value == allowed and type(value) is type(allowed) for allowed in node.enum):
        return
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value in node.enum:
        return
    words = [allowed if isinstance(allowed, str) else dumps(allowed) for allowed in node.enum]
    causes.append(not_supported(_field(path), value, words))


def _check_object(node: SchemaNode, value: Json, path: str, causes: list[StatusCause], old: Value) -> int:
    size = len(value)
    if node.min_properties is not None and size < node.min_properties:
        detail = f"{path} in body should have at least {node.min_properties} properties"
        causes.append(invalid(_field(path), size, detail))
    if node.max_properties is not None and size > node.max_properties:
        causes.append(too_many(_field(path), size, node.max_properties))
    matched = 0
    properties, additional = node.properties, node.additional
    for name, part in value.items():
        known = properties.get(name)
        if known is not None:
            if not known.go_name:  # the metadata is known, and checked elsewhere
                where = f"{path}.{name}" if path else name
                matched += _check_part(known, part, where, causes, old_field(old, name))
        elif additional is not None:
            matched += _check_part(additional, part, f"{path}.{name}", causes, old_field(old, name))
    causes += [required(_field(f"{path}.{name}")) for name in node.required if name not in value]
    return matched


def _check_branches(node: SchemaNode, value: Value, path: str, causes: list[StatusCause], old: Value) -> int:
    matched = 0
    if node.any_of:
        tried = [_try(branch, value, path, old) for branch in node.any_of]
        right = next((branch for branch in tried if not branch[1]), None)
        best = right or max(tried, key=lambda branch: branch[0])
        if right is None:
            causes.append(invalid(NO_FIELD, "", f"{quote(path)} must validate at least one schema (anyOf)"))
        causes += best[1]
        matched += best[0]
    if node.one_of:
        matched += _check_one_of(node, value, path, causes, old)
    if node.all_of:
        tried = [_try(branch, value, path, old) for branch in node.all_of]
        for count, found in tried:
            causes += [cause for cause in found if cause not in causes]
            matched += count
        wrong = sum(1 for _, found in tried if found)
        if wrong:
            none = ". None validated" if wrong == len(tried) else ""
            causes.append(invalid(NO_FIELD, "", f"{quote(path)} must validate all the schemas (allOf){none}"))
    if node.not_ is not None and not _try(node.not_, value, path, old)[1]:
        causes.append(invalid(NO_FIELD, "", f"{quote(path)} must not validate the schema (not)"))
    return matched


def _check_one_of(node: SchemaNode, value: Value, path: str, causes: list[StatusCause], old: Value) -> int:
    tried = [_try(branch, value, path, old) for branch in node.one_of]
    right = [branch for branch in tried if not branch[1]]
    if len(right) == 1:
        return right[0][0]
    count = f"Found {len(right)} valid alternatives" if right else "Found none valid"
    causes.append(invalid(NO_FIELD, "", f"{quote(path)} must validate one and only one schema (oneOf). {count}"))
    if right:
        return 0
    best = max(tried, key=lambda branch: branch[0])
    causes += best[1]
    return best[0]


def _try(node: SchemaNode, value: Value, path: str, old: Value) -> tuple[int, list[StatusCause]]:
    found: list[StatusCause] = []
    return _check(node, value, path, found, old), found
