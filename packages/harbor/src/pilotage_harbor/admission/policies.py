"""Admission by policies: which apply to a write, with which parameters, and what their refusals become.

Policies are compiled when they or their bindings change, and indexed by what is written: a write that no policy is
about costs one look into a dict. Nothing here waits: what was evaluated is what is stored, as long as the caller does
not wait either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube.selectors import LabelSelector
from pilotage_harbor.admission.match_resources import NAMESPACES, name_of, namespace_of
from pilotage_harbor.admission.policy import Denial, ValidatingAdmissionPolicy
from pilotage_harbor.admission.review import request
from pilotage_harbor.admission.values import values_of
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import warning_headers
from pilotage_harbor.core.objects import from_entry
from pilotage_harbor.expressions.programs import Expressions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pilotage_harbor.admission.policy import Binding
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.admission import AdmissionAttributes
    from pilotage_harbor.expressions.programs import ExpressionVariables
    from pilotage_harbor.kinds import Json, Kind
    from pilotage_harbor.storage.store import Event

GROUP = "admissionregistration.k8s.io"
POLICIES, BINDINGS = f"validatingadmissionpolicies.{GROUP}", f"validatingadmissionpolicybindings.{GROUP}"
_EXEMPT = frozenset({POLICIES, BINDINGS})
"""A policy about policies could make itself irrevocable. Webhook configurations are not exempt."""
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_NAMESPACE_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)

Refusal = tuple[ValidatingAdmissionPolicy, "Binding | None", Denial]


class Policies:
    """All policies that have a binding."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._expressions = Expressions(core.authorizer.decide)
        self._policies: list[ValidatingAdmissionPolicy] | None = None
        self._relevant: dict[tuple[Kind, str, str], list[ValidatingAdmissionPolicy]] = {}
        self._registry_changes = -1
        self._stop_listening: list[Callable[[], None]] = [
            core.store.listen(storage, self._changed) for storage in (POLICIES, BINDINGS)
        ]

    def close(self) -> None:
        """Follow changes no more."""
        for stop in self._stop_listening:
            stop()
        self._stop_listening.clear()

    def check(self, attributes: AdmissionAttributes) -> list[str]:
        """Raise the refusal of the first policy that refuses a write; returns the warnings of all."""
        if self._policies is None:
            self._compile()
        if not self._policies:
            return []
        relevant = self._concerned(attributes)
        return _Review(self._core, self._expressions, attributes).run(relevant) if relevant else []

    def _changed(self, _event: Event) -> None:
        self._policies = None
        self._relevant.clear()

    def _compile(self) -> None:
        bindings: dict[str, list[Json]] = {}
        for binding in self._core.objects(BINDINGS):
            bindings.setdefault(binding["spec"].get("policyName") or "", []).append(binding)
        self._policies = [
            ValidatingAdmissionPolicy(policy, bindings[name], self._expressions)
            for policy in (self._core.objects(POLICIES) if bindings else ())
            if (name := policy["metadata"]["name"]) in bindings
        ]

    def _concerned(self, attributes: AdmissionAttributes) -> list[ValidatingAdmissionPolicy]:
        core, scope = self._core, attributes.scope
        if self._registry_changes != core.registry.changes:
            self._registry_changes = core.registry.changes
            self._relevant.clear()
        key = (scope.kind, attributes.operation, scope.subresource)
        found = self._relevant.get(key)
        if found is None:
            found = self._relevant[key] = [
                policy
                for policy in (self._policies or () if scope.kind.storage not in _EXEMPT else ())
                if policy.matching.concerns(core, attributes.operation, scope.kind, scope.subresource)
            ]
        return found


class _Review:
    """One write before the policies that are about its resource."""

    def __init__(self, core: Core, expressions: Expressions, attributes: AdmissionAttributes) -> None:
        self._core = core
        self._expressions = expressions
        self._attributes = attributes
        self._warnings: list[str] = []
        self._values: dict[Kind, ExpressionVariables] = {}

    def run(self, policies: list[ValidatingAdmissionPolicy]) -> list[str]:
        """Ask all; see `Policies.check`."""
        refusals = [refusal for policy in policies for refusal in self._refusals(policy)]
        if refusals:
            raise self._refused(*refusals[0])
        return self._warnings

    def _refusals(self, policy: ValidatingAdmissionPolicy) -> Iterator[Refusal]:
        core, attributes = self._core, self._attributes
        try:
            kind = policy.matching.kind_for(core, attributes)
            if kind is None:
                return
            param_kind = kind_of(core, policy.param_kind) if policy.param_kind is not None else None
        except (errors.StatusError, Unconfigured) as error:
            if not policy.ignores_failures:
                yield policy, None, Denial(f"failed to configure policy: {error}")
            return
        for binding in policy.bindings:
            try:
                if binding.matching is not None and binding.matching.kind_for(core, attributes) is None:
                    continue
                params = params_of(core, param_kind, binding.param_ref, namespace_of(attributes))
            except (errors.StatusError, Unconfigured) as error:
                if not policy.ignores_failures:
                    yield policy, binding, Denial(f"failed to configure binding: {error}")
                continue
            self._expressions.budget.renew()  # not for each parameter: a tenant may be able to make many
            for param in params:
                for denial in policy.denials(self._values_as(kind, param)):
                    if "Deny" in binding.actions or denial.always:
                        yield policy, binding, denial
                    elif "Warn" in binding.actions:
                        self._warn(policy, binding, denial)

    def _warn(self, policy: ValidatingAdmissionPolicy, binding: Binding, denial: Denial) -> None:
        where = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
        self._warnings.append(f"Validation failed for {where}: {denial.message}")

    def _values_as(self, kind: Kind, param: Json | None) -> ExpressionVariables:
        """All that expressions see of a write that is seen as one of `kind`."""
        values = self._values.get(kind)
        if values is None:
            data = values_of(self._attributes, request(self._attributes, kind, ""))
            values = self._expressions.values({**data, "namespaceObject": self._namespace()})
            self._values[kind] = values
        return values if param is None else self._expressions.values({**values.data, "params": param})

    def _namespace(self) -> Json | None:
        scope = self._attributes.scope
        if not scope.kind.namespaced:
            return None
        namespace = self._core.get(NAMESPACES, "", scope.namespace)
        if namespace is None:
            raise errors.not_found("", NAMESPACES, scope.namespace)
        meta = {name: value for name, value in namespace["metadata"].items() if name in _NAMESPACE_METADATA}
        return {"metadata": meta, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}

    def _refused(
        self, policy: ValidatingAdmissionPolicy, binding: Binding | None, denial: Denial
    ) -> errors.StatusError:
        kind = self._attributes.scope.kind
        bound = f" with binding '{binding.name}'" if binding is not None else ""
        message = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {denial.message}"
        error = errors.forbidden(kind.group, kind.plural, name_of(self._attributes) or "Unknown", message)
        error.code, error.reason = _CODES.get(denial.reason, 422), denial.reason
        error.details = {**(error.details or {}), "causes": [{"message": message}]}
        error.headers = warning_headers(self._warnings)
        return error


class Unconfigured(Exception):
    """The parameters that a policy needs cannot be determined: its failure policy decides."""


def kind_of(core: Core, param_kind: Json) -> Kind:
    """The kind that a policy takes its parameters from."""
    api_version, name = param_kind.get("apiVersion") or "", param_kind.get("kind") or ""
    kind = core.registry.of(api_version, name)
    if kind is None:
        group, _, version = api_version.rpartition("/")
        raise Unconfigured(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'")
    return kind


def params_of(core: Core, kind: Kind | None, ref: Json | None, namespace: str) -> list[Json | None]:
    """The parameters, each of which is evaluated; a None is evaluated without any. Empty: nothing is.

    `namespace` is the request's, where the reference names none.
    """
    if kind is None or ref is None:
        return [None]
    own = ref.get("namespace") or ""
    if kind.namespaced and not (own or namespace):
        raise Unconfigured("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    if own and not kind.namespaced:
        raise Unconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    where = (own or namespace) if kind.namespaced else ""
    if ref.get("name"):
        entry = core.store.get(kind.storage, where, ref["name"])
        entries = [entry] if entry is not None else []
    else:
        selector = LabelSelector.from_object(ref.get("selector") or {})
        entries = [each for each in core.store.entries(kind.storage, where) if selector.matches(each.labels)]
    if not entries and ref.get("parameterNotFoundAction") == "Deny":
        raise Unconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [from_entry(kind, entry) for entry in entries]
