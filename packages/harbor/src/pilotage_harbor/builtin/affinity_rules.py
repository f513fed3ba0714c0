"""Validation of a pod's affinity and anti-affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.field_errors import each_invalid, forbidden, invalid, required
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.apimachinery.names import dns_label, dns_subdomain, label_value, qualified_name

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause

Json = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATOR = "not a valid selector operator"


def affinity_problems(affinity: Json | None, field: str) -> list[StatusCause]:
    """Problems of a pod's affinity to nodes and to other pods, and with its anti-affinity."""
    if not affinity:
        return []
    problems: list[StatusCause] = []
    if (nodes := affinity.get("nodeAffinity")) is not None:
        problems += _node_affinity(nodes, f"{field}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(name) or {}
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            problems += _pod_term(term, f"{field}.{name}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            here = f"{field}.{name}.{_PREFERRED}[{index}]"
            problems += _weight(weighted, here)
            problems += _pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")
    return problems


def _weight(weighted: Json, field: str) -> list[StatusCause]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{field}.weight", weight, "must be in the range 1-100")]


def _pod_term(term: Json, field: str) -> list[StatusCause]:
    problems = selector_problems(term.get("labelSelector"), f"{field}.labelSelector")
    problems += selector_problems(term.get("namespaceSelector"), f"{field}.namespaceSelector")
    for namespace in term.get("namespaces") or ():
        problems += each_invalid(f"{field}.namespace", namespace, dns_label(namespace))
    key = term.get("topologyKey", "")
    if not key:
        problems.append(required(f"{field}.topologyKey", "can not be empty"))
    return problems + each_invalid(f"{field}.topologyKey", key, qualified_name(key))


def _node_affinity(affinity: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if (selector := affinity.get(_REQUIRED)) is not None:
        here = f"{field}.{_REQUIRED}.nodeSelectorTerms"
        terms = selector.get("nodeSelectorTerms") or ()
        if not terms:
            problems.append(required(here, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            problems += _node_term(term, f"{here}[{index}]", check_values=True)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{field}.{_PREFERRED}[{index}]"
        problems += _weight(weighted, here)
        problems += _node_term(weighted.get("preference") or {}, f"{here}.preference", check_values=False)
    return problems


def _node_term(term: Json, field: str, *, check_values: bool) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, wanted in enumerate(term.get("matchExpressions") or ()):
        problems += _label_wanted(wanted, f"{field}.matchExpressions[{index}]", check_values=check_values)
    for index, wanted in enumerate(term.get("matchFields") or ()):
        problems += _field_wanted(wanted, f"{field}.matchFields[{index}]")
    return problems


def _label_wanted(wanted: Json, field: str, *, check_values: bool) -> list[StatusCause]:
    problems: list[StatusCause] = []
    key, operator, values = wanted.get("key", ""), wanted.get("operator", ""), wanted.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            problems.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(forbidden(f"{field}.values", why))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            problems.append(required(f"{field}.values", why))
    else:
        problems.append(invalid(f"{field}.operator", operator, _OPERATOR))
    problems += each_invalid(f"{field}.key", key, qualified_name(key))
    if check_values:
        for index, value in enumerate(values):
            problems += each_invalid(f"{field}.values[{index}]", value, label_value(value))
    return problems


def _field_wanted(wanted: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    key, operator, values = wanted.get("key", ""), wanted.get("operator", ""), wanted.get("values") or []
    if operator not in ("In", "NotIn"):
        problems.append(invalid(f"{field}.operator", operator, _OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        problems.append(required(f"{field}.values", why))
    if key != "metadata.name":
        return [*problems, invalid(f"{field}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        problems += each_invalid(f"{field}.values[{index}]", value, dns_subdomain(value))
    return problems
