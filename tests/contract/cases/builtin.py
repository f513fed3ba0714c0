"""Built-in kinds: what is filled in, what is refused, what may not change. One create each."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import (
    DEPLOYMENTS,
    container,
    deployment,
    job,
    lease,
    obj,
    pod,
    secret,
    stateful_set,
    template,
    with_service_account,
)

theme = Theme("kind")

RBAC = "rbac.authorization.k8s.io/v1"


def creates(name: str, resource: str, body: Any, facts: tuple[int, ...] = ()) -> None:
    theme.creates(name, resource, body, facts=facts)


def pods(name: str, **spec: Any) -> None:
    """A case of one Pod."""

    async def run(kit: Kit) -> None:
        await with_service_account(kit)
        await kit.create("pods", pod("a", **spec))

    theme.add(f"pod {name}", run)


# Pods
pods("minimal")
pods("without containers", containers=[])
pods("container without name", containers=[{"image": "i"}])
pods("container without image", containers=[{"name": "a"}])
pods("container name invalid", containers=[container(name="Not_Valid")])
pods("container twice", containers=[container(), container()])
pods("image without tag", containers=[container(image="example.com/app")])
pods("image latest", containers=[container(image="example.com/app:latest")])
pods("restart policy unknown", restartPolicy="Sometimes")
pods(
    "ports",
    containers=[
        container(ports=[{"containerPort": 80}, {"containerPort": 0}, {"containerPort": 80, "protocol": "XYZ"}])
    ],
)
pods(
    "environment",
    containers=[
        container(
            env=[
                {"name": "A", "value": "1"},
                {"name": "", "value": "2"},
                {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ]
        )
    ],
)
pods("requests above limits", containers=[container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})])
pods("requests from limits", containers=[container(resources={"limits": {"cpu": "1000m", "memory": "1Gi"}})])
pods(
    "volumes",
    volumes=[{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x"}}],
    containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])],
)
pods("mount without volume", containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])])
pods("volume of no kind", volumes=[{"name": "v"}])
pods(
    "probes",
    containers=[
        container(
            livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"exec": {"command": ["x"]}, "periodSeconds": 3}
        )
    ],
)
pods("probe without handler", containers=[container(livenessProbe={})])
pods("lifecycle", containers=[container(lifecycle={"preStop": {"sleep": {"seconds": 5}}})])
pods("init containers", initContainers=[container(name="init"), container(name="side", restartPolicy="Always")])
pods(
    "node selector and tolerations",
    nodeSelector={"a": "b"},
    tolerations=[{"key": "k", "operator": "Exists"}, {"key": "x", "operator": "Wrong"}],
)
pods(
    "security",
    securityContext={"runAsUser": 5, "runAsNonRoot": True},
    containers=[container(securityContext={"privileged": True, "allowPrivilegeEscalation": False})],
)
pods("host network", hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])])
pods("grace negative", terminationGracePeriodSeconds=-5)
pods("deadline zero", activeDeadlineSeconds=0)
pods("priority class unknown", priorityClassName="never-made")
pods("priority class of the system", priorityClassName="system-cluster-critical")
pods("service account absent", serviceAccountName="never-made")
pods(
    "affinity", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}
)


@theme.case()
async def pod_with_a_token(kit: Kit) -> None:
    await with_service_account(kit)
    body = pod("a")
    del body["spec"]["automountServiceAccountToken"]
    await kit.picking(lambda b: [b["spec"]["volumes"], b["spec"]["containers"][0]["volumeMounts"]]).create("pods", body)


@theme.case()
async def pod_spec_is_immutable(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.quiet.create("pods", pod("a"))
    await kit.picking(lambda b: b["spec"]["containers"][0]["image"]).strategic(
        "pods", "a", {"spec": {"containers": [container(image="example.com/app:2")]}}
    )
    await kit.picking(
        lambda b: (
            b
            if b["kind"] != "Status"
            else [b["code"], b["reason"], b["details"]["causes"][0]["field"], b["message"].splitlines()[0]]
        )
    ).patch("pods", "a", {"spec": {"restartPolicy": "Never"}})
    await kit.picking(lambda b: b["metadata"]).patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})


# Workloads
creates("deployment minimal", DEPLOYMENTS, deployment("a"))
creates(
    "deployment full",
    DEPLOYMENTS,
    deployment(
        "a",
        replicas=0,
        strategy={"type": "Recreate"},
        minReadySeconds=3,
        revisionHistoryLimit=2,
        progressDeadlineSeconds=60,
        paused=True,
    ),
)
creates("deployment without selector", DEPLOYMENTS, obj("apps/v1", "Deployment", "a", spec={"template": template("a")}))
creates("deployment selector empty", DEPLOYMENTS, deployment("a", selector={}))
creates("deployment selector does not match", DEPLOYMENTS, deployment("a", selector={"matchLabels": {"app": "b"}}))
creates("deployment without spec", DEPLOYMENTS, obj("apps/v1", "Deployment", "a"))
creates("deployment replicas negative", DEPLOYMENTS, deployment("a", replicas=-1))
creates("deployment restart policy", DEPLOYMENTS, deployment("a", template=template("a", restartPolicy="Never")))
creates(
    "deployment rolling update of nothing",
    DEPLOYMENTS,
    deployment("a", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
)
creates(
    "deployment rolling update of percents",
    DEPLOYMENTS,
    deployment("a", strategy={"rollingUpdate": {"maxSurge": "150%", "maxUnavailable": "150%"}}),
)
creates(
    "deployment recreate with rolling update",
    DEPLOYMENTS,
    deployment("a", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
)
creates("deployment strategy unknown", DEPLOYMENTS, deployment("a", strategy={"type": "Magic"}))
creates(
    "deployment deadline below ready seconds",
    DEPLOYMENTS,
    deployment("a", minReadySeconds=60, progressDeadlineSeconds=30),
)
creates(
    "deployment without containers",
    DEPLOYMENTS,
    deployment("a", template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}}),
)
creates("deployment name with dots", DEPLOYMENTS, deployment("a.b"))
creates(
    "replica set",
    "apps/v1/replicasets",
    obj("apps/v1", "ReplicaSet", "a", spec={"selector": {"matchLabels": {"app": "a"}}, "template": template("a")}),
)
creates(
    "replica set without template",
    "apps/v1/replicasets",
    obj("apps/v1", "ReplicaSet", "a", spec={"selector": {"matchLabels": {"app": "a"}}}),
)
creates("stateful set", "apps/v1/statefulsets", stateful_set("a"))
claim = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
creates(
    "stateful set with claims",
    "apps/v1/statefulsets",
    stateful_set("a", volumeClaimTemplates=[claim], podManagementPolicy="Parallel"),
    (5,),
)
creates("stateful set management unknown", "apps/v1/statefulsets", stateful_set("a", podManagementPolicy="Random"))
creates(
    "stateful set retention unknown",
    "apps/v1/statefulsets",
    stateful_set("a", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Sell"}),
)
creates(
    "daemon set",
    "apps/v1/daemonsets",
    obj("apps/v1", "DaemonSet", "a", spec={"selector": {"matchLabels": {"app": "a"}}, "template": template("a")}),
)
creates("job minimal", "batch/v1/jobs", job("a"))
creates(
    "job full",
    "batch/v1/jobs",
    job(
        "a",
        parallelism=3,
        completions=5,
        backoffLimit=1,
        ttlSecondsAfterFinished=9,
        activeDeadlineSeconds=100,
        completionMode="Indexed",
    ),
)
creates("job restart policy", "batch/v1/jobs", job("a", template={"spec": {"containers": [container()]}}))
creates("job negative", "batch/v1/jobs", job("a", parallelism=-1, backoffLimit=-1))
creates("job selector given", "batch/v1/jobs", job("a", selector={"matchLabels": {"x": "y"}}))
creates(
    "cron job",
    "batch/v1/cronjobs",
    obj("batch/v1", "CronJob", "a", spec={"schedule": "* * * * *", "jobTemplate": {"spec": job("x")["spec"]}}),
)
creates(
    "cron job schedule",
    "batch/v1/cronjobs",
    obj("batch/v1", "CronJob", "a", spec={"schedule": "often", "jobTemplate": {"spec": job("x")["spec"]}}),
)


@theme.case()
async def stateful_set_update(kit: Kit) -> None:
    await kit.quiet.create("apps/v1/statefulsets", stateful_set("a"))
    await kit.patch("apps/v1/statefulsets", "a", {"spec": {"serviceName": "other"}})
    await kit.picking(lambda b: [b["metadata"]["generation"], b["spec"]["replicas"]]).patch(
        "apps/v1/statefulsets", "a", {"spec": {"replicas": 3}}
    )


@theme.case()
async def job_update(kit: Kit) -> None:
    await kit.quiet.create("batch/v1/jobs", job("a"))
    await kit.patch("batch/v1/jobs", "a", {"spec": {"completions": 3}})
    await kit.picking(lambda b: [b["metadata"]["generation"], b["spec"]["parallelism"]]).patch(
        "batch/v1/jobs", "a", {"spec": {"parallelism": 3}}
    )


# Autoscaling, policy, networking
SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
HPA = "autoscaling/v2/horizontalpodautoscalers"


def scaler(**spec: Any) -> Any:
    return obj(
        "autoscaling/v2", "HorizontalPodAutoscaler", "a", spec={"scaleTargetRef": SCALED, "maxReplicas": 3, **spec}
    )


creates("autoscaler minimal", HPA, scaler())
creates(
    "autoscaler metrics",
    HPA,
    scaler(
        minReplicas=2,
        metrics=[
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    ),
)
creates("autoscaler max below min", HPA, scaler(minReplicas=5))
creates("autoscaler min zero", HPA, scaler(minReplicas=0))
creates("autoscaler max zero", HPA, scaler(maxReplicas=0))
creates(
    "autoscaler without target", HPA, obj("autoscaling/v2", "HorizontalPodAutoscaler", "a", spec={"maxReplicas": 3})
)
creates(
    "autoscaler metric without target",
    HPA,
    scaler(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]),
)
creates("autoscaler metric unknown", HPA, scaler(metrics=[{"type": "Moon"}]))
creates(
    "autoscaler behavior",
    HPA,
    scaler(
        behavior={
            "scaleDown": {
                "stabilizationWindowSeconds": 0,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}],
            }
        }
    ),
)

PDB = "policy/v1/poddisruptionbudgets"


def budget(**spec: Any) -> Any:
    return obj("policy/v1", "PodDisruptionBudget", "a", spec=spec)


creates("budget minimum", PDB, budget(minAvailable=1, selector={"matchLabels": {"app": "a"}}), (20,))
creates("budget percent", PDB, budget(maxUnavailable="30%", selector={}))
creates("budget both", PDB, budget(minAvailable=1, maxUnavailable=1))
creates("budget neither", PDB, budget(selector={}))
creates("budget percent too high", PDB, budget(minAvailable="130%"))
creates("budget negative", PDB, budget(minAvailable=-1))
creates("budget policy unknown", PDB, budget(minAvailable=1, unhealthyPodEvictionPolicy="Maybe"))

INGRESS = "networking.k8s.io/v1/ingresses"


def ingress(**spec: Any) -> Any:
    return obj("networking.k8s.io/v1", "Ingress", "a", spec=spec)


BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
creates(
    "ingress",
    INGRESS,
    ingress(
        rules=[{"host": "example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}]
    ),
)
creates("ingress default backend", INGRESS, ingress(defaultBackend=BACKEND), (25,))
creates("ingress empty", INGRESS, ingress())
creates("ingress without path type", INGRESS, ingress(rules=[{"http": {"paths": [{"path": "/", "backend": BACKEND}]}}]))
creates(
    "ingress path relative",
    INGRESS,
    ingress(rules=[{"http": {"paths": [{"path": "x", "pathType": "Exact", "backend": BACKEND}]}}]),
)
creates("ingress host invalid", INGRESS, ingress(rules=[{"host": "Not Valid"}]))
creates("ingress backend without port", INGRESS, ingress(defaultBackend={"service": {"name": "s"}}))
creates(
    "ingress class annotation",
    INGRESS,
    ingress(defaultBackend=BACKEND) | {"metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}}},
)
creates(
    "network policy",
    "networking.k8s.io/v1/networkpolicies",
    obj("networking.k8s.io/v1", "NetworkPolicy", "a", spec={"podSelector": {}, "egress": []}),
)

SLICES = "discovery.k8s.io/v1/endpointslices"


def slice_(**fields: Any) -> Any:
    return obj("discovery.k8s.io/v1", "EndpointSlice", "a", addressType="IPv4", **fields)


creates(
    "endpoint slice",
    SLICES,
    slice_(
        endpoints=[{"addresses": ["10.9.0.1"], "conditions": {"ready": True, "serving": True, "terminating": False}}],
        ports=[{"port": 80}],
    ),
    (18, 19),
)
creates("endpoint slice empty", SLICES, slice_(endpoints=[]))
creates("endpoint slice loopback", SLICES, slice_(endpoints=[{"addresses": ["127.0.0.1"]}], ports=[{"port": 80}]))
creates("endpoint slice link local", SLICES, slice_(endpoints=[{"addresses": ["169.254.0.1"]}]))
creates("endpoint slice no address", SLICES, slice_(endpoints=[{"addresses": []}]))
creates("endpoint slice bad address", SLICES, slice_(endpoints=[{"addresses": ["example.com"]}]))
creates(
    "endpoint slice type unknown",
    SLICES,
    obj("discovery.k8s.io/v1", "EndpointSlice", "a", addressType="IPv5", endpoints=[]),
)
creates("endpoint slice without type", SLICES, obj("discovery.k8s.io/v1", "EndpointSlice", "a", endpoints=[]))
creates(
    "endpoint slice ports twice",
    SLICES,
    slice_(endpoints=[], ports=[{"name": "a", "port": 1}, {"name": "a", "port": 2}]),
)
creates(
    "endpoints",
    "endpoints",
    obj("v1", "Endpoints", "a", subsets=[{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 80}]}]),
)
creates("endpoints loopback", "endpoints", obj("v1", "Endpoints", "a", subsets=[{"addresses": [{"ip": "127.0.0.1"}]}]))


@theme.case(facts=(18,))
async def endpoint_slice_address_type_is_immutable(kit: Kit) -> None:
    await kit.quiet.create(SLICES, slice_(endpoints=[]))
    await kit.patch(SLICES, "a", {"addressType": "IPv6"})


# Small ones
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
creates("claim", "persistentvolumeclaims", obj("v1", "PersistentVolumeClaim", "a", spec=claim["spec"]))
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
