"""Everything that has to be on a cluster for the operator, as plain objects. The Helm chart is made of the same.

The order is that in which they can be created one after the other.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import yaml

from pilotage import __version__
from pilotage.api import rbac_rules
from pilotage.api.names import AGENTS_GROUP, HOST_LEASES
from pilotage.kube import Json
from pilotage.operator import rbac
from pilotage.operator.crds import crds
from pilotage.operator.policies import policies
from pilotage.operator.settings import OperatorSettings, load_settings, variable_name
from pilotage.runtime.settings import SettingsError, camel_case

NAME = "pilotage-operator"
LABELS = {"app.kubernetes.io/name": "pilotage", "app.kubernetes.io/component": "operator"}
"""Labels of the operator's own objects, without `managed-by`: that marks the parts of endpoints."""
PORT = 8081
CACHE = "/var/cache/pilotage"


class Values(NamedTuple):
    """Values of an installation: those that differ from one to the next."""

    image: str = f"pilotage:{__version__}"
    namespace: str = "pilotage-system"
    replicas: Any = 2
    settings: Mapping[str, str] = {}
    """More settings, by their fields, as variables of the environment have them."""


def manifests(values: Values) -> list[Json]:
    """All objects."""
    return [
        _namespace(values.namespace),
        *crds(),
        *_access(values.namespace),
        *_beside(values.namespace),
        *policies(LABELS),
        *_program(values),
    ]


def as_yaml(objects: Iterable[Json]) -> str:
    """One document for each object."""
    return "".join(f"---\n{_dump(obj)}" for obj in objects)


def _dump(obj: Json) -> str:
    return yaml.dump(obj, Dumper=_Plain, sort_keys=False, width=116, allow_unicode=True)


class _Plain(yaml.SafeDumper):
    """YAML without anchors and references, and with lists indented as people do."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - yaml's signature
        """None is wanted."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent lists, too."""
        super().increase_indent(flow, indentless=False)


def _namespace(name: str) -> Json:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**LABELS, **enforced}}}


def _beside(namespace: str) -> list[Json]:
    """Objects for programs beside the cluster: the gateway, and agents with a namespace for their accounts and Leases.

    An administrator makes an account for each Host, called like it: the roles are bound to all accounts there.
    """
    agent, gateway = "pilotage-agent", "pilotage-gateway"
    hosts = HOST_LEASES
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": _meta(hosts)},
        _role("Role", _meta(f"{NAME}-hosts", hosts), rbac.AT_HOSTS),
        _binding("RoleBinding", _meta(f"{NAME}-hosts", hosts), f"{NAME}-hosts", namespace),
        _role("ClusterRole", _meta(agent), rbac_rules.AGENT),
        _bound_to_agents("ClusterRoleBinding", _meta(agent), agent),
        _role("Role", _meta(agent, hosts), rbac_rules.AGENT_LEASES),
        _bound_to_agents("RoleBinding", _meta(agent, hosts), agent),
        _role("ClusterRole", _meta(f"{agent}-read-secrets"), rbac_rules.AGENT_READ_SECRETS),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(gateway, namespace)},
        _role("ClusterRole", _meta(gateway), rbac_rules.GATEWAY),
        _binding("ClusterRoleBinding", _meta(gateway), gateway, namespace, account=gateway),
    ]


def _meta(name: str, namespace: str = "", **labels: str) -> Json:
    made: Json = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {**made, "labels": {**LABELS, **labels}}


def _role(kind: str, metadata: Json, rules: Iterable[rbac_rules.RbacRule]) -> Json:
    written = [rule.written() for rule in rules]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": written}


def _binding(kind: str, metadata: Json, role: str, namespace: str, *, account: str = NAME) -> Json:
    """`account`: whose it is, in `namespace`."""
    return _bound(kind, metadata, role, {"kind": "ServiceAccount", "name": account, "namespace": namespace})


def _bound_to_agents(kind: str, metadata: Json, role: str) -> Json:
    group = {"kind": "Group", "name": AGENTS_GROUP, "apiGroup": "rbac.authorization.k8s.io"}
    return _bound(kind, metadata, role, group)


def _bound(kind: str, metadata: Json, role: str, subject: Json) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind.removesuffix("Binding"),
            "name": role,
        },
        "subjects": [subject],
    }


def _access(namespace: str) -> list[Json]:
    aggregated = "rbac.authorization.k8s.io/aggregate-to-"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(NAME, namespace)},
        _role("ClusterRole", _meta(NAME), rbac.EVERYWHERE),
        _binding("ClusterRoleBinding", _meta(NAME), NAME, namespace),
        _role("Role", _meta(NAME, namespace), rbac.AT_HOME),
        _binding("RoleBinding", _meta(NAME, namespace), NAME, namespace),
        _role("ClusterRole", _meta(f"{NAME}-read-secrets"), rbac.READ_SECRETS),
        _role("ClusterRole", _meta(f"{NAME}-read-envoys"), rbac.READ_ENVOYS),
        _role(
            "ClusterRole",
            _meta("pilotage-view", **{f"{aggregated}{role}": "true" for role in ("view", "edit", "admin")}),
            rbac.VIEW,
        ),
        _role(
            "ClusterRole",
            _meta("pilotage-edit", **{f"{aggregated}{role}": "true" for role in ("edit", "admin")}),
            rbac.EDIT,
        ),
        _role("ClusterRole", _meta("pilotage-place-on-hosts"), rbac.PLACE_ON_HOSTS),
    ]


def _program(values: Values) -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _meta(f"{NAME}-metrics", values.namespace),
            "spec": {"selector": LABELS, "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics"}]},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _meta(NAME, values.namespace),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": _meta(NAME, values.namespace),
            "spec": {
                "replicas": values.replicas,
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": _pod(values)},
            },
        },
    ]


def _pod(values: Values) -> Json:
    spread = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}
    return {
        "serviceAccountName": NAME,
        "enableServiceLinks": False,  # their variables would begin as our settings do
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": spread}]
            }
        },
        "containers": [_container(values)],
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "cache", "emptyDir": {}}],
    }


def own_settings(image: str) -> dict[str, str]:
    """The settings that come from how it is installed; all but these are as they are without any."""
    return {"metrics_address": f"0.0.0.0:{PORT}", "fetch": "pods", "fetch_image": image, "cache_root": CACHE}


def _container(values: Values) -> Json:
    settings = {**own_settings(values.image), **values.settings}
    own: Json = {"name": variable_name("namespace"), "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    return {
        "name": "operator",
        "image": values.image,
        "command": ["pilotage", "operator"],
        "env": [
            own,
            *({"name": variable_name(name), "value": settings[name]} for name in sorted(settings, key=camel_case)),
        ],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "metrics"},
            "initialDelaySeconds": 5,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "metrics"},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
        },
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "cache", "mountPath": CACHE}],  # noqa: S108
    }


def chosen_settings(given: Iterable[str]) -> dict[str, str]:
    """``fetchImage=x``, by its field and checked as the operator will check it. Raises SettingsError."""
    names = {camel_case(field): field for field in OperatorSettings.__struct_fields__ if field != "namespace"}
    chosen: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            raise SettingsError(f"--setting: {text}: is not SETTING=VALUE with one of {', '.join(names)}.")
        chosen[names[name]] = value
        try:
            load_settings(env={variable_name(names[name]): value})
        except SettingsError as error:
            raise SettingsError(f"--setting: {error}") from error
    return chosen
