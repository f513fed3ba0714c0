"""The roles and bindings that a new API server begins with, as kube-apiserver makes them.

Those of kube-controller-manager's many controllers are left out: harbor runs none of them. The rules that `admin`,
`edit` and `view` gather are filled in, as the aggregation controller would do at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.access.rbac import GROUP, effective_rules
from pilotage_harbor.apimachinery.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.kinds import Json

_ANY = "get list watch"
_CHANGE = "create delete deletecollection patch update"
_ALL = "create delete deletecollection get list patch update watch"
_READ_UPDATE = "get list patch update watch"
_CORE = "-"
_API = f"{GROUP}/v1"

# Verbs, groups ("-" is the core one), resources, names.
_Rule = tuple[str, str, str] | tuple[str, str, str, str]

_ADMIN: tuple[_Rule, ...] = (
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    (_ALL, GROUP, "rolebindings roles"),
)
_EDIT: tuple[_Rule, ...] = (
    (_ANY, _CORE, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    ("impersonate", _CORE, "serviceaccounts"),
    (_CHANGE, _CORE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
    ("create", _CORE, "pods/eviction"),
    (
        _CHANGE,
        _CORE,
        (
            "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
            "serviceaccounts services services/proxy"
        ),
    ),
    ("create", _CORE, "serviceaccounts/token"),
    (_CHANGE, "- events.k8s.io", "events"),
    (
        _CHANGE,
        "apps",
        (
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
            "statefulsets/scale"
        ),
    ),
    (_CHANGE, "autoscaling", "horizontalpodautoscalers"),
    (_CHANGE, "batch", "cronjobs jobs"),
    (
        _CHANGE,
        "extensions",
        (
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
            "replicasets/scale replicationcontrollers/scale"
        ),
    ),
    (_CHANGE, "policy", "poddisruptionbudgets"),
    (_CHANGE, "networking.k8s.io", "ingresses networkpolicies"),
    (_ALL, "coordination.k8s.io", "leases"),
    (_CHANGE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
)
_VIEW: tuple[_Rule, ...] = (
    (
        _ANY,
        _CORE,
        (
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
            "replicationcontrollers/scale serviceaccounts services services/status"
        ),
    ),
    (
        _ANY,
        _CORE,
        (
            "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas "
            "resourcequotas/status"
        ),
    ),
    (_ANY, _CORE, "namespaces"),
    (_ANY, "- events.k8s.io", "events"),
    (_ANY, "discovery.k8s.io", "endpointslices"),
    (
        _ANY,
        "apps",
        (
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"
        ),
    ),
    (_ANY, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    (_ANY, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    (
        _ANY,
        "extensions",
        (
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status "
            "networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale"
        ),
    ),
    (_ANY, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    (_ANY, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    (_ANY, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
)
_DELEGATION: tuple[_Rule, ...] = (
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
)
_CONTROLLER_MANAGER: tuple[_Rule, ...] = (
    ("create patch update", "- events.k8s.io", "events"),
    ("create", "coordination.k8s.io", "leases"),
    ("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
    ("create", _CORE, "secrets serviceaccounts"),
    ("delete", _CORE, "secrets"),
    ("get", _CORE, "configmaps namespaces secrets serviceaccounts"),
    ("update", _CORE, "secrets serviceaccounts"),
    *_DELEGATION,
    ("list watch", "*", "*"),
    ("create", _CORE, "serviceaccounts/token"),
)
_SCHEDULER: tuple[_Rule, ...] = (
    ("create patch update", "- events.k8s.io", "events"),
    ("create", "coordination.k8s.io", "leases"),
    ("get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"),
    (_ALL, "coordination.k8s.io", "leasecandidates"),
    (_ANY, _CORE, "nodes"),
    ("delete get list watch", _CORE, "pods"),
    ("create", _CORE, "bindings pods/binding"),
    ("patch update", _CORE, "pods/status"),
    (_ANY, _CORE, "replicationcontrollers services"),
    (_ANY, "apps extensions", "replicasets"),
    (_ANY, "apps", "statefulsets"),
    (_ANY, "policy", "poddisruptionbudgets"),
    (_ANY, _CORE, "persistentvolumeclaims persistentvolumes"),
    *_DELEGATION,
    (_ANY, "storage.k8s.io", "csinodes"),
    (_ANY, "storage.k8s.io", "volumeattachments"),
    (_ANY, _CORE, "namespaces"),
    (_ANY, "storage.k8s.io", "csidrivers"),
    (_ANY, "storage.k8s.io", "csistoragecapacities"),
    (_ANY, "resource.k8s.io", "deviceclasses"),
    ("get list patch update watch", "resource.k8s.io", "resourceclaims"),
    ("get list patch update watch", "resource.k8s.io", "resourceclaims/status"),
    ("update", _CORE, "pods/finalizers"),
    (_ANY, "resource.k8s.io", "resourceslices"),
    ("create delete", "resource.k8s.io", "resourceclaims"),
    ("patch update", "resource.k8s.io", "resourceclaims/binding"),
)

_HEALTH = "/healthz /livez /readyz /version /version/"
_PATHS = {
    "cluster-admin": ("*", "*"),
    "system:discovery": (
        "get",
        "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/",
    ),
    "system:monitoring": (
        "get",
        "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz",
    ),
    "system:public-info-viewer": ("get", _HEALTH),
    "system:service-account-issuer-discovery": (
        "get",
        "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
    ),
}
_RESOURCES: dict[str, tuple[_Rule, ...]] = {
    "cluster-admin": (("*", "*", "*"),),
    "system:aggregate-to-admin": _ADMIN,
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-view": _VIEW,
    "system:auth-delegator": _DELEGATION,
    "system:basic-user": (
        ("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        ("create", "authentication.k8s.io", "selfsubjectreviews"),
    ),
    "system:kube-controller-manager": _CONTROLLER_MANAGER,
    "system:kube-scheduler": _SCHEDULER,
    "system:monitoring": (("get", _CORE, "nodes/metrics"),),
    "system:node-proxier": (
        ("list watch", _CORE, "endpoints services"),
        (_ANY, _CORE, "nodes"),
        ("create patch update", "- events.k8s.io", "events"),
        ("list watch", "networking.k8s.io", "servicecidrs"),
        ("list watch", "discovery.k8s.io", "endpointslices"),
    ),
    "system:volume-scheduler": (
        (_READ_UPDATE, _CORE, "persistentvolumes"),
        (_ANY, "storage.k8s.io", "storageclasses"),
        (_READ_UPDATE, _CORE, "persistentvolumeclaims"),
    ),
}
_AGGREGATES = {"admin": "", "edit": "admin", "view": "edit"}
"""Roles that aggregate others by label, each with the role that it is aggregated into."""

_BINDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", MASTERS),),
    "system:basic-user": (("Group", AUTHENTICATED),),
    "system:discovery": (("Group", AUTHENTICATED),),
    "system:kube-controller-manager": (("User", "system:kube-controller-manager"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:node-proxier": (("User", "system:kube-proxy"),),
    "system:public-info-viewer": (("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
}
_LABEL = "rbac.authorization.k8s.io/aggregate-to-"


def bootstrap_objects() -> list[Json]:
    """The objects to create at the first start: ClusterRoles first, then ClusterRoleBindings."""
    names = sorted({*_RESOURCES, *_PATHS})
    roles = [_cluster_role(name) for name in names]
    for name, into in _AGGREGATES.items():
        role = _object("ClusterRole", name, {f"{_LABEL}{into}": "true"} if into else {})
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{_LABEL}{name}": "true"}}]}
        role["rules"] = []
        roles.append(role)
    rules = effective_rules(roles)
    for role in roles:
        role["rules"] = rules[role["metadata"]["name"]]
    return [*roles, *(_cluster_role_binding(name, subjects) for name, subjects in _BINDINGS.items())]


def _cluster_role(name: str) -> Json:
    prefix, _, target = name.rpartition("aggregate-to-")
    role = _object("ClusterRole", name, {f"{_LABEL}{target}": "true"} if prefix == "system:" else {})
    rules = [_rule(*rule) for rule in _RESOURCES.get(name, ())]
    if name in _PATHS:
        verbs, urls = _PATHS[name]
        urls_rule = {"nonResourceURLs": urls.split(), "verbs": verbs.split()}
        rules.insert(0 if name == "system:monitoring" else len(rules), urls_rule)
    role["rules"] = rules
    return role


def _cluster_role_binding(name: str, subjects: Iterable[tuple[str, str]]) -> Json:
    binding = _object("ClusterRoleBinding", name, {})
    binding["roleRef"] = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    binding["subjects"] = [{"apiGroup": GROUP, "kind": kind, "name": subject} for kind, subject in subjects]
    return binding


def _object(kind: str, name: str, labels: dict[str, str]) -> Json:
    metadata: dict[str, Any] = {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    return {"apiVersion": _API, "kind": kind, "metadata": metadata}


def _rule(verbs: str, groups: str, resources: str, names: str = "") -> Json:
    rule: Json = {
        "apiGroups": ["" if group == _CORE else group for group in groups.split()],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    if names:
        rule["resourceNames"] = names.split()
    return rule
