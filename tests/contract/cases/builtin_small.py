"""Built-in kinds: Secrets, ConfigMaps, Leases, claims, Nodes, roles, webhook configurations and other small ones."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import (
    lease,
    obj,
    secret,
)

theme = Theme("kind")
creates = theme.creates

RBAC = "rbac.authorization.k8s.io/v1"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

creates("secret typed", "secrets", secret("a", {}, type="kubernetes.io/tls"))
creates(
    "secret dockerconfig", "secrets", secret("a", {".dockerconfigjson": "e30="}, type="kubernetes.io/dockerconfigjson")
)
creates("secret basic auth", "secrets", secret("a", {}, type="kubernetes.io/basic-auth"))
creates("secret key invalid", "secrets", secret("a", {"a b": "eA=="}))
creates("secret for absent account", "secrets", secret("a", {}, type="kubernetes.io/service-account-token"))
creates("config map key invalid", "configmaps", obj("v1", "ConfigMap", "a", data={"a b": "c"}))
creates("config map key twice", "configmaps", obj("v1", "ConfigMap", "a", data={"k": "c"}, binaryData={"k": "eA=="}))
creates("config map too large", "configmaps", obj("v1", "ConfigMap", "a", data={"k": "x" * 1_048_577}))
creates("config map binary", "configmaps", obj("v1", "ConfigMap", "a", binaryData={"k": "eA=="}))
creates("service account", "serviceaccounts", obj("v1", "ServiceAccount", "a", automountServiceAccountToken=False))
creates(
    "lease",
    "coordination.k8s.io/v1/leases",
    lease(
        "a",
        holderIdentity="me",
        leaseDurationSeconds=15,
        renewTime="2001-02-03T04:05:06.000007Z",
        acquireTime="2001-02-03T04:05:06.000000Z",
        leaseTransitions=1,
    ),
)
creates("lease duration zero", "coordination.k8s.io/v1/leases", lease("a", leaseDurationSeconds=0, leaseTransitions=-1))
creates("lease time without fraction", "coordination.k8s.io/v1/leases", lease("a", renewTime="2001-02-03T04:05:06Z"))
creates("claim", "persistentvolumeclaims", obj("v1", "PersistentVolumeClaim", "a", spec=CLAIM))
creates(
    "claim without modes",
    "persistentvolumeclaims",
    obj("v1", "PersistentVolumeClaim", "a", spec={"resources": {"requests": {"storage": "1Gi"}}}),
)
creates(
    "claim without size",
    "persistentvolumeclaims",
    obj("v1", "PersistentVolumeClaim", "a", spec={"accessModes": ["ReadWriteOnce"]}),
)
creates(
    "priority class",
    "/scheduling.k8s.io/v1/priorityclasses",
    obj("scheduling.k8s.io/v1", "PriorityClass", "kind-priority", value=7, description="x"),
)
creates(
    "priority class too high",
    "/scheduling.k8s.io/v1/priorityclasses",
    obj("scheduling.k8s.io/v1", "PriorityClass", "kind-priority-high", value=2_000_000_000),
)
creates(
    "priority class of the system",
    "/scheduling.k8s.io/v1/priorityclasses",
    obj("scheduling.k8s.io/v1", "PriorityClass", "system-x", value=7),
)
creates(
    "node",
    "/nodes",
    obj(
        "v1",
        "Node",
        "kind-node",
        meta={"labels": {"a": "b"}},
        status={"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
    ),
)
creates(
    "node bad taint", "/nodes", obj("v1", "Node", "kind-node-taint", spec={"taints": [{"key": "k", "effect": "Wrong"}]})
)
creates(
    "role",
    f"{RBAC}/roles",
    obj(RBAC, "Role", "a", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
)
creates(
    "role without verbs", f"{RBAC}/roles", obj(RBAC, "Role", "a", rules=[{"apiGroups": [""], "resources": ["pods"]}])
)
creates(
    "role with urls", f"{RBAC}/roles", obj(RBAC, "Role", "a", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])
)
creates("role name with colon", f"{RBAC}/roles", obj(RBAC, "Role", "a:b", rules=[]))
creates(
    "cluster role aggregated",
    f"/{RBAC}/clusterroles",
    obj(
        RBAC,
        "ClusterRole",
        "kind-aggregated",
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"never": "made"}}]},
    ),
)
creates(
    "role binding",
    f"{RBAC}/rolebindings",
    obj(
        RBAC,
        "RoleBinding",
        "a",
        roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
        subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "x"}],
    ),
)
creates(
    "role binding without role",
    f"{RBAC}/rolebindings",
    obj(RBAC, "RoleBinding", "a", subjects=[{"kind": "User", "name": "u"}]),
)
creates(
    "role binding bad subject",
    f"{RBAC}/rolebindings",
    obj(
        RBAC,
        "RoleBinding",
        "a",
        roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
        subjects=[{"kind": "Robot", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
    ),
)


@theme.case()
async def role_ref_is_immutable(kit: Kit) -> None:
    body = obj(RBAC, "RoleBinding", "a", roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"})
    await kit.quiet.create(f"{RBAC}/rolebindings", body)
    await kit.patch(f"{RBAC}/rolebindings", "a", {"roleRef": {"name": "other"}})


@theme.case()
async def priority_class_value_is_immutable(kit: Kit) -> None:
    classes = "/scheduling.k8s.io/v1/priorityclasses"
    await kit.quiet.create(classes, obj("scheduling.k8s.io/v1", "PriorityClass", "kind-fixed", value=7))
    await kit.patch(classes, "kind-fixed", {"value": 8})


HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
VALIDATING = "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
API = "admissionregistration.k8s.io/v1"
creates(
    "validating webhook", VALIDATING, obj(API, "ValidatingWebhookConfiguration", "kind-validating", webhooks=[HOOK])
)
creates("mutating webhook", MUTATING, obj(API, "MutatingWebhookConfiguration", "kind-mutating", webhooks=[HOOK]))
creates(
    "webhook without side effects",
    VALIDATING,
    obj(
        API,
        "ValidatingWebhookConfiguration",
        "kind-hook",
        webhooks=[{k: v for k, v in HOOK.items() if k != "sideEffects"}],
    ),
)
creates(
    "webhook without versions",
    VALIDATING,
    obj(API, "ValidatingWebhookConfiguration", "kind-hook", webhooks=[HOOK | {"admissionReviewVersions": []}]),
)
creates(
    "webhook name short",
    VALIDATING,
    obj(API, "ValidatingWebhookConfiguration", "kind-hook", webhooks=[HOOK | {"name": "a"}]),
)
creates(
    "webhook url plain",
    VALIDATING,
    obj(
        API,
        "ValidatingWebhookConfiguration",
        "kind-hook",
        webhooks=[HOOK | {"clientConfig": {"url": "http://127.0.0.1/x"}}],
    ),
)
creates(
    "webhook policies unknown",
    VALIDATING,
    obj(
        API,
        "ValidatingWebhookConfiguration",
        "kind-hook",
        webhooks=[HOOK | {"failurePolicy": "Cry", "matchPolicy": "Some", "timeoutSeconds": 60}],
    ),
)
creates(
    "webhook rules wrong",
    VALIDATING,
    obj(
        API,
        "ValidatingWebhookConfiguration",
        "kind-hook",
        webhooks=[
            HOOK
            | {
                "rules": [
                    {"operations": ["READ"], "apiGroups": [], "apiVersions": ["*"], "resources": ["pods/*", "*/*"]}
                ]
            }
        ],
    ),
)

theme.asks("api services", "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")
