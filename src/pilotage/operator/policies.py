"""ValidatingAdmissionPolicies: what RBAC cannot say. They are installed with the roles.

- Statuses are written by those who may write them in all namespaces: our programs, and administrators. A namespace
  owner who was given all of ``pilotage.dev`` cannot write what our programs go by: a ledger, or who holds a name.
- Placing on Hosts is a right of its own: the verb ``use`` on `hosts`, in the namespace of the endpoint. A machine runs
  what an endpoint says, so it is not part of ``edit``. A right for one Host (``resourceNames``) is enough where the
  endpoint names it; a selector needs the right for all.
- An agent's account is called like its Host and writes only what belongs to that Host. The Services that it may give
  addresses to are those that the operator has granted (`controllers.host.grants`).

Deleting is not restricted by the first, nor are writes that leave a spec as it is: finalizers can always be removed.
"""

from typing import NamedTuple

from pilotage.api.names import AGENTS_GROUP, GRANTED, HOST_LEASES, HOST_SERVICES, LABEL_HOST, PROCESS_FINALIZER
from pilotage.kube import Json

_API = "admissionregistration.k8s.io/v1"
_VERSION = f"{HOST_SERVICES.group}/{HOST_SERVICES.version}"
_SERVICE = "kubernetes.io/service-name"
_OURS = "pilotage.dev"
_AGENT = f"system:serviceaccount:{HOST_LEASES}:"


class Validation(NamedTuple):
    """`expression` has to be true; else the request is refused with the message."""

    expression: str
    message: str


class AdmissionPolicy(NamedTuple):
    """A policy with its binding, which is called like it."""

    name: str
    group: str
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    conditions: dict[str, str]
    """Conditions that a request has to meet for the policy to judge it, by name."""
    validations: tuple[Validation, ...]
    granted: bool = False
    """Whether the expressions read the grants, as `params`, and judge objects with the label of a Host alone.

    Where the grants are missing, everything that the policy could judge is refused, whatever its conditions say: so it
    must not be about the slices of others. That a slice of an agent has the label is another policy's to see to.
    """

    def written(self, labels: dict[str, str]) -> list[Json]:
        """Both objects."""
        metadata = {"name": self.name, "labels": labels}
        rule = {
            "apiGroups": [self.group],
            "apiVersions": ["*"],
            "operations": list(self.operations),
            "resources": list(self.resources),
        }
        spec: Json = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": name, "expression": text} for name, text in self.conditions.items()],
            "validations": [{**each._asdict(), "reason": "Forbidden"} for each in self.validations],
        }
        bound: Json = {"policyName": self.name, "validationActions": ["Deny"]}
        if self.granted:
            spec["matchConstraints"]["objectSelector"] = {
                "matchExpressions": [{"key": LABEL_HOST, "operator": "Exists"}]
            }
            spec["paramKind"] = {"apiVersion": _VERSION, "kind": HOST_SERVICES.kind}
            bound["paramRef"] = {"name": GRANTED, "parameterNotFoundAction": "Deny"}
        return [
            {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec},
            {"apiVersion": _API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": bound},
        ]


def _may_use(host: str) -> str:
    """Whether the author may place something on a Host, by an expression for its name; empty: on any."""
    named = f".name({host})" if host else ""
    hosts = f"authorizer.group('{_OURS}').resource('hosts').namespace(request.namespace)"
    return f"{hosts}{named}.check('use').allowed()"


def _same(field: str) -> str:
    """Expression: a field is unchanged, or absent as before."""
    new, old = f"object.{field}", f"oldObject.{field}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"


def _others(which: str) -> str:
    """The finalizers of an object but for that of agents."""
    all_ = f"{which}.metadata.finalizers"
    return f"(has({all_}) ? {all_}.filter(each, each != '{PROCESS_FINALIZER}') : [])"


def _labelled(which: str) -> str:
    """Expression: an object has the label of the author's Host."""
    labels = f"{which}.metadata.labels"
    label = f"'{LABEL_HOST}' in {labels} && request.userInfo.username == '{_AGENT}' + {labels}['{LABEL_HOST}']"
    return f"has({labels}) && {label}"


_NAME = "(object == null ? oldObject : object).metadata.name"
_NOT_YOURS = "the service account of an agent writes only what belongs to the Host of its own name"
_RIGHT = (
    "placing on Hosts needs the verb 'use' on hosts.pilotage.dev in this namespace: "
    "an administrator can bind the ClusterRole pilotage-place-on-hosts here"
)
_BY_AGENT = {"by-an-agent": f"'{AGENTS_GROUP}' in request.userInfo.groups"}

_WRITTEN_BY_PROGRAMS = ("servingendpoints", "experiments", "models", "teardowns", "gatewayroutes", "hostprocesses")

POLICIES = (
    AdmissionPolicy(
        "pilotage-statuses",
        _OURS,
        tuple(f"{each}/status" for each in _WRITTEN_BY_PROGRAMS),
        ("UPDATE",),
        {},
        (
            Validation(
                f"authorizer.group('{_OURS}').resource(request.resource.resource).subresource('status')"
                ".check('patch').allowed()",
                "the status of an object of pilotage.dev is written by those who may patch it in all namespaces: "
                "Pilotage's own programs, and administrators",
            ),
        ),
    ),
    AdmissionPolicy(
        "pilotage-place-endpoints",
        _OURS,
        ("servingendpoints",),
        ("CREATE", "UPDATE"),
        {
            "on-a-host": "has(object.spec.placement) && object.spec.placement.kind == 'Host'",
            "with-another-spec": "oldObject == null || object.spec != oldObject.spec",
        },
        (
            Validation(
                f"has(object.spec.placement.host) ? {_may_use('object.spec.placement.host')} : {_may_use('')}", _RIGHT
            ),
        ),
    ),
    AdmissionPolicy(
        "pilotage-place-variants",
        _OURS,
        ("experiments",),
        ("CREATE", "UPDATE"),
        {
            "on-hosts": "has(object.spec.onHosts) && object.spec.onHosts",
            "with-another-spec": "oldObject == null || object.spec != oldObject.spec",
        },
        (Validation(_may_use(""), _RIGHT),),
    ),
    AdmissionPolicy(
        "pilotage-place-processes",
        _OURS,
        ("hostprocesses",),
        ("CREATE", "UPDATE"),
        {"with-another-spec": "oldObject == null || object.spec != oldObject.spec"},
        (
            Validation(
                "has(object.spec.hostName) && (!has(object.spec.host) || object.spec.host == object.spec.hostName) ? "
                f"{_may_use('object.spec.hostName')} : {_may_use('')}",
                _RIGHT,
            ),
        ),
    ),
    AdmissionPolicy(
        "pilotage-agent-hosts",
        _OURS,
        ("hosts", "hosts/status"),
        ("CREATE", "UPDATE", "DELETE"),
        _BY_AGENT,
        (
            Validation(f"request.userInfo.username == '{_AGENT}' + {_NAME}", _NOT_YOURS),
            Validation(
                f"oldObject == null || object != null && {_same('spec')} && {_same('metadata.finalizers')}",
                "an agent changes the status and the labels of its Host, and neither its spec nor its finalizers",
            ),
        ),
    ),
    AdmissionPolicy(
        "pilotage-agent-leases",
        "coordination.k8s.io",
        ("leases",),
        ("CREATE", "UPDATE", "DELETE"),
        _BY_AGENT,
        (Validation(f"request.userInfo.username == '{_AGENT}' + {_NAME}", _NOT_YOURS),),
    ),
    AdmissionPolicy(
        "pilotage-agent-processes",
        _OURS,
        ("hostprocesses", "hostprocesses/status"),
        ("CREATE", "UPDATE", "DELETE"),
        _BY_AGENT,
        (
            Validation(
                "object != null && oldObject != null && has(oldObject.spec.host) && "
                f"request.userInfo.username == '{_AGENT}' + oldObject.spec.host",
                _NOT_YOURS,
            ),
            Validation(
                "object != null && oldObject != null && object.spec == oldObject.spec && "
                f"{_others('object')} == {_others('oldObject')} && "
                + " && ".join(_same(f"metadata.{each}") for each in ("labels", "annotations", "ownerReferences")),
                "an agent changes the status of a process and its own finalizer, and nothing else of it",
            ),
        ),
    ),
    AdmissionPolicy(
        "pilotage-agent-slices",
        "discovery.k8s.io",
        ("endpointslices",),
        ("CREATE", "UPDATE", "DELETE"),
        _BY_AGENT,
        (
            Validation(
                f"(object == null || {_labelled('object')}) && (oldObject == null || {_labelled('oldObject')})",
                _NOT_YOURS,
            ),
        ),
    ),
    AdmissionPolicy(
        "pilotage-agent-services",
        "discovery.k8s.io",
        ("endpointslices",),
        ("CREATE", "UPDATE"),
        _BY_AGENT,
        (
            Validation(
                f"has(object.metadata.labels) && '{LABEL_HOST}' in object.metadata.labels && "
                f"'{_SERVICE}' in object.metadata.labels && "
                f"has(params.spec.hosts) && object.metadata.labels['{LABEL_HOST}'] in params.spec.hosts && "
                f"(request.namespace + '/' + object.metadata.labels['{_SERVICE}']) in "
                f"params.spec.hosts[object.metadata.labels['{LABEL_HOST}']]",
                "an agent gives addresses to Services of processes that the operator has placed on its Host, and to no "
                "others",
            ),
        ),
        granted=True,
    ),
)


def policies(labels: dict[str, str]) -> list[Json]:
    """All of them, with their bindings."""
    return [obj for policy in POLICIES for obj in policy.written(labels)]
