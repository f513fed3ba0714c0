"""The rules in a CustomResourceDefinition's schema: they must compile, and know what they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema import cel
from pilotage_harbor.schema.causes import child, invalid, key
from pilotage_harbor.schema.gotext import Struct
from pilotage_harbor.schema.openapi import from_openapi
from pilotage_harbor.schema.vocabulary import vocabulary_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.schema.node import SchemaNode

Json = dict[str, Any]

_VALIDATIONS = "x-kubernetes-validations"


def rule_problems(schema: Json, path: str) -> list[StatusCause]:
    """Problems of the rules of a schema that is structural. Where words are wrong, rules are not looked at."""
    root = from_openapi(schema)
    if not cel.has_rules(root):
        return []
    clean = not vocabulary_problems(schema, path)
    return [
        cause
        for at, cause in _problems(root, schema, path, "", root=True)
        if clean or not vocabulary_problems(at, path)
    ]


def _problems(
    node: SchemaNode, schema: Json, path: str, loose: str, *, root: bool = False
) -> Iterator[tuple[Json, StatusCause]]:
    """`loose` is the place above which parts of the old object cannot be found again; "" if they can."""
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(additional, dict) and node.additional is not None:
        yield from _problems(node.additional, additional, child(path, "additionalProperties"), loose)
    for name, part in (schema.get("properties") or {}).items():
        if root and name == "metadata":
            continue
        yield from _problems(node.properties[name], part, key(child(path, "properties"), name), loose)
    if isinstance(items, dict) and node.items is not None:
        inner = loose or ("" if node.list_type == "map" else path)
        yield from _problems(node.items, items, child(path, "items"), inner)
    if node.rules:
        yield from ((schema, cause) for cause in _own_problems(node, schema, path, loose, root=root))


def _own_problems(node: SchemaNode, schema: Json, path: str, loose: str, *, root: bool) -> Iterator[StatusCause]:
    found = cel.check_rules(node, root=root or node.embedded)
    if found is None:
        where = child(path, _VALIDATIONS)
        words = (
            "failed to construct type information for x-kubernetes-validations rules: "
            "unable to convert structural schema to CEL declarations"
        )
        yield invalid(where, None, words)._replace(
            reason="InternalError", message=f"Internal error: internal error: {words}"
        )
        return
    for at, (rule, problems) in enumerate(zip(node.rules, found, strict=True)):
        where = f"{child(path, _VALIDATIONS)}[{at}]"
        said = _as_go_shows(schema[_VALIDATIONS][at])
        if problems.rule:
            yield invalid(child(where, "rule"), said, problems.rule)
        if problems.message_expression:
            yield invalid(child(where, "messageExpression"), said, problems.message_expression)
        if cel.uses_old_self(rule.rule) and not problems.rule:
            if loose:
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
                yield invalid(child(where, "rule"), rule.rule, detail)
        elif schema[_VALIDATIONS][at].get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            yield invalid(child(where, "optionalOldSelf"), rule.optional_old_self, detail)


def _as_go_shows(rule: Json) -> Struct:
    return Struct(
        Rule=rule.get("rule", ""),
        Message=rule.get("message", ""),
        MessageExpression=rule.get("messageExpression", ""),
        Reason=rule.get("reason"),
        FieldPath=rule.get("fieldPath", ""),
        OptionalOldSelf=rule.get("optionalOldSelf"),
    )
