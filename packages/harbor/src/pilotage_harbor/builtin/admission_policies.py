"""ValidatingAdmissionPolicies and their bindings, as objects; `pilotage_harbor.admission.policies` enforces them.

An expression that does not compile is refused when it is written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.apimachinery.names import dns1035, dns_subdomain, path_segment, qualified_name
from pilotage_harbor.builtin.admission import FAILURE_POLICIES, MATCH_POLICIES, rule_problems
from pilotage_harbor.builtin.base import Builtin, kind
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.kinds.table import AGE, NAME
from pilotage_harbor.schema.cel_names import RESERVED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.expressions.type_check import Checker
    from pilotage_harbor.kinds import Json, Kind

_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_CONDITIONS_MAX = 64
_ANNOTATIONS_MAX = 20
_ANNOTATION_BYTES_MAX = 5 * 1024
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


class _Strategy(Builtin):
    counts = ("spec",)
    unconditional_update = False
    qualified_finalizers = False


class PolicyStrategy(_Strategy):
    """A ValidatingAdmissionPolicy."""

    go_type = "admission.ValidatingAdmissionPolicy"
    reset_fields: Mapping[str, tuple[str, ...]] = {"": ("status",), "status": ("spec", "metadata")}

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        spec.setdefault("failurePolicy", "Fail")
        if (constraints := spec.get("matchConstraints")) is not None:
            _fill_resources(constraints)

    def check(self, obj: Json) -> list[StatusCause]:
        """Its constraints, and all its expressions."""
        from pilotage_harbor.expressions.type_check import Checker

        spec = obj["spec"]
        problems: list[StatusCause] = []
        if spec["failurePolicy"] not in FAILURE_POLICIES:
            problems.append(not_supported("spec.failurePolicy", spec["failurePolicy"], FAILURE_POLICIES))
        param_kind = spec.get("paramKind")
        if param_kind is not None:
            problems += _param_kind_problems(param_kind, "spec.paramKind")
        constraints = spec.get("matchConstraints")
        if constraints is None:
            problems.append(required("spec.matchConstraints"))
        else:
            problems += _resources_problems(constraints, "spec.matchConstraints")
            if not constraints.get("resourceRules"):
                problems.append(required("spec.matchConstraints.resourceRules"))
        checker = Checker(params=param_kind is not None)
        problems += _condition_problems(spec.get("matchConditions") or [], checker, "spec.matchConditions")
        for index, variable in enumerate(spec.get("variables") or ()):
            problems += _variable_problems(variable, checker, f"spec.variables[{index}]")
        validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not validations and not annotations:
            why = "validations or auditAnnotations must contain at least one item"
            return [*problems, required("spec.validations", why), required("spec.auditAnnotations", why)]
        for index, validation in enumerate(validations):
            problems += _validation_problems(validation, checker, f"spec.validations[{index}]")
        return problems + _annotation_problems(obj, annotations, checker, "spec.auditAnnotations")


class PolicyBindingStrategy(_Strategy):
    """A ValidatingAdmissionPolicyBinding."""

    go_type = "admission.ValidatingAdmissionPolicyBinding"
    status = False

    def fill(self, obj: Json) -> None:
        """Defaults."""
        if (resources := obj["spec"].get("matchResources")) is not None:
            _fill_resources(resources)

    def check(self, obj: Json) -> list[StatusCause]:
        """Problems of the policy name, the parameters and the writes that it names."""
        spec = obj["spec"]
        name = spec.get("policyName") or ""
        problems = each_invalid("spec.policyName", name, dns_subdomain(name)) if name else [required("spec.policyName")]
        if (ref := spec.get("paramRef")) is not None:
            problems += _param_ref_problems(ref, "spec.paramRef")
        if (resources := spec.get("matchResources")) is not None:
            problems += _resources_problems(resources, "spec.matchResources")
        return problems + _action_problems(spec.get("validationActions") or [], "spec.validationActions")


def _fill_resources(resources: Json) -> None:
    resources.setdefault("matchPolicy", "Equivalent")
    resources.setdefault("namespaceSelector", {})
    resources.setdefault("objectSelector", {})
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in resources.get(name) or ():
            rule.setdefault("scope", "*")


def _resources_problems(resources: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if resources["matchPolicy"] not in MATCH_POLICIES:
        problems.append(not_supported(f"{field}.matchPolicy", resources["matchPolicy"], MATCH_POLICIES))
    for name in ("namespaceSelector", "objectSelector"):
        problems += selector_problems(resources[name], f"{field}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(resources.get(name) or ()):
            here = f"{field}.{name}[{index}]"
            seen: set[str] = set()
            for place, each in enumerate(rule.get("resourceNames") or ()):
                problems += each_invalid(f"{here}.resourceNames[{place}]", each, path_segment(each))
                if each in seen:
                    problems.append(duplicate(f"{here}.resourceNames[{place}]", each))
                seen.add(each)
            problems += rule_problems(rule, here)
    return problems


def _param_kind_problems(param_kind: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    api_version, name = param_kind.get("apiVersion") or "", param_kind.get("kind") or ""
    group, slash, version = api_version.partition("/")
    if not slash:
        group, version = "", api_version
    here = f"{field}.apiVersion"
    if not api_version:
        problems.append(required(here))
    elif "/" in version:
        problems.append(invalid(here, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        if group and (why := dns_subdomain(group)):
            problems.append(invalid(here, group, ",".join(why)))
        if not version:
            problems.append(invalid(here, api_version, "version must be specified"))
        elif why := dns1035(version):
            problems.append(invalid(here, version, ",".join(why)))
    if not name:
        problems.append(required(f"{field}.kind"))
    elif why := dns1035(name.lower()):
        words = f"may have mixed case, but should otherwise match: {','.join(why)}"
        problems.append(invalid(f"{field}.kind", name, words))
    return problems


def _condition_problems(conditions: list[Json], checker: Checker, field: str) -> list[StatusCause]:
    problems = [too_many(field, len(conditions), _CONDITIONS_MAX)] if len(conditions) > _CONDITIONS_MAX else []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, name, expression = f"{field}[{index}]", condition["name"], condition["expression"].strip()
        if not expression:
            problems.append(required(f"{here}.expression"))
        elif why := checker.problem(expression, "BOOL", composed=False):
            problems.append(invalid(f"{here}.expression", expression, why))
        problems += each_invalid(f"{here}.name", name, qualified_name(name)) if name else [required(f"{here}.name")]
        if name and name in seen:
            problems.append(duplicate(f"{here}.name", name))
        seen.add(name)
    return problems


def _variable_problems(variable: Json, checker: Checker, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    name, expression = variable["name"], variable["expression"]
    if not name.strip():
        problems.append(required(f"{field}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in RESERVED:
        problems.append(invalid(f"{field}.name", name, "must be a valid CEL identifier"))
    if not expression.strip():
        problems.append(required(f"{field}.expression", "expression is not specified"))
    elif why := checker.add_variable(name, expression):
        problems.append(invalid(f"{field}.expression", expression, why))
    return problems


def _validation_problems(validation: Json, checker: Checker, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    expression, message = validation["expression"], validation.get("message") or ""
    words = validation.get("messageExpression") or ""
    if not expression.strip():
        problems.append(required(f"{field}.expression", "expression is not specified"))
    elif why := checker.problem(expression, "BOOL"):
        problems.append(invalid(f"{field}.expression", expression, why))
    if words and not words.strip():
        problems.append(invalid(f"{field}.messageExpression", words, "must be non-empty if specified"))
    elif words and (why := checker.problem(words, "STRING", authorizer=False)):
        problems.append(invalid(f"{field}.messageExpression", words, why))
    if message and not message.strip():
        problems.append(invalid(f"{field}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        problems.append(invalid(f"{field}.message", message, "must not contain line breaks"))
    if (reason := validation.get("reason")) is not None and reason not in _REASONS:
        problems.append(not_supported(f"{field}.reason", reason, _REASONS))
    return problems


def _annotation_problems(obj: Json, annotations: list[Json], checker: Checker, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if len(annotations) > _ANNOTATIONS_MAX:
        why = f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"
        problems.append(invalid(field, annotations, why))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        here, name = f"{field}[{index}]", f"{obj['metadata'].get('name', '')}/{annotation['key']}"
        problems += each_invalid(f"{here}.key", name, qualified_name(name))
        expression = annotation["valueExpression"].strip()
        if not expression:
            problems.append(required(f"{here}.valueExpression", "valueExpression is not specified"))
        elif len(expression.encode()) > _ANNOTATION_BYTES_MAX:
            why = f"must not exceed {_ANNOTATION_BYTES_MAX} bytes in length"
            problems.append(required(f"{here}.valueExpression", why))
        elif why := checker.problem(expression, "STRING", "NULL"):
            problems.append(invalid(f"{here}.valueExpression", annotation["valueExpression"], why))
        if annotation["key"] in seen:
            problems.append(duplicate(f"{here}.key", annotation["key"]))
        seen.add(annotation["key"])
    return problems


def _param_ref_problems(ref: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    name, selector, action = ref.get("name") or "", ref.get("selector"), ref.get("parameterNotFoundAction") or ""
    exclusive = "name and selector are mutually exclusive"
    if name:
        problems += each_invalid(f"{field}.name", name, path_segment(name))
        problems += [forbidden(f"{field}.name", exclusive)] if selector is not None else []
    if selector is not None:
        problems += selector_problems(selector, f"{field}.selector")
        problems += [forbidden(f"{field}.selector", exclusive)] if name else []
    if not name and selector is None:
        problems.append(required(field, "one of name or selector must be specified"))
    if not action:
        problems.append(required(f"{field}.parameterNotFoundAction"))
    elif action not in _NOT_FOUND_ACTIONS:
        problems.append(not_supported(f"{field}.parameterNotFoundAction", action, _NOT_FOUND_ACTIONS))
    return problems


def _action_problems(actions: list[str], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            problems.append(not_supported(f"{field}[{index}]", action, _ACTIONS))
        if action in seen:
            problems.append(duplicate(f"{field}[{index}]", action))
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        problems.append(invalid(field, actions, why))
    return problems if seen else [*problems, required(field, "at least one validation action is required")]


def _param_kind_cell(obj: Json) -> str:
    param_kind = obj["spec"].get("paramKind")
    return f"{param_kind.get('apiVersion', '')}/{param_kind.get('kind', '')}" if param_kind else "<unset>"


def _param_ref_cell(obj: Json) -> str:
    ref = obj["spec"].get("paramRef") or {}
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return "<unset>" if ref.get("selector") is None else _go_selector(ref["selector"])


def _go_selector(selector: Json) -> str:
    """A LabelSelector as Go shows one."""
    labels = "".join(f"{name}: {value}," for name, value in sorted((selector.get("matchLabels") or {}).items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    shown = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{terms}}}"
    return f"&LabelSelector{{{shown},}}"


def kinds() -> list[Kind]:
    """The kinds of this family."""
    api, name = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    rules = text("Validations", lambda obj: len(obj["spec"].get("validations") or ()), type_="integer")
    shown = (NAME, rules, text("ParamKind", _param_kind_cell), AGE)
    bound = (NAME, text("PolicyName", at("spec", "policyName")), text("ParamRef", _param_ref_cell), AGE)
    return [
        kind(
            api,
            "validatingadmissionpolicies",
            name,
            PolicyStrategy(),
            shown,
            categories="api-extensions",
            subresources="status",
            namespaced=False,
        ),
        kind(
            api,
            "validatingadmissionpolicybindings",
            f"{name}Binding",
            PolicyBindingStrategy(),
            bound,
            categories="api-extensions",
            namespaced=False,
        ),
    ]
