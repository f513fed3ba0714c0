"""Trees to take down, staged on a real cluster: a raw endpoint, and those of KServe, Argo Rollouts and Crossplane.

    with raw_endpoint(cluster, namespace, "chat") as staged:
        …  # staged.objects, staged.phases, staged.left()

Each is ready when the function returns, and is taken away at the end of the block, or by `remove()`. Their kinds stay
for the session. `namespace` must be ready for pods (the fixture `namespace_for_pods`). `standins` has controllers that
remove finalizers and recreate objects; its block is the inner one.
"""

from collections.abc import Callable
from typing import Any

from controlplane import Access
from tests.teardown.staged import Json, Placed, Staged, definition, install, theirs
from tests.teardown.standins import (
    COMPOSITE,
    COMPOSITE_FINALIZER,
    IN_USE,
    KSERVE_FINALIZER,
    MANAGED_FINALIZER,
    PROVIDER_CONFIG,
    PROVIDER_CONFIG_FINALIZER,
    PROVIDER_GROUP,
    USAGE_FINALIZER,
    XR_GROUP,
)

MONITORING_GROUP = "monitoring.staging.example.com"
ROLLOUT_HASH = "rollouts-pod-template-hash"


def raw_endpoint(cluster: Access, namespace: str, name: str) -> Staged:
    """Endpoint as people write it by hand: ten objects with the label ``app=NAME``, two pods, no owner above them.

    Expected phases:
    - detach: Ingress, HTTPRoute
    - quiesce: HorizontalPodAutoscaler
    - stop: Deployment (with its ReplicaSet and pods)
    - remove: Service, ServiceMonitor, PodDisruptionBudget, ConfigMap, Secret, PersistentVolumeClaim (where it is not
      kept; in use until the pods are gone)
    """
    install(cluster, theirs("gateway-api", "httproutes.gateway.networking.k8s.io"))
    install(cluster, [definition(MONITORING_GROUP, "ServiceMonitor", "servicemonitors")])
    labels = {"app": name}
    meta = {"name": name, "labels": labels}
    with Staged(cluster, namespace, name).or_nothing() as staged:
        at = _collections(namespace)
        staged.create(at("v1", "configmaps"), {"metadata": meta, "data": {"MODEL": "small"}})
        staged.create(at("v1", "secrets"), {"metadata": meta, "stringData": {"TOKEN": "none"}})
        staged.create(
            at("v1", "persistentvolumeclaims"),
            {
                "metadata": {"name": f"{name}-cache", "labels": labels},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        )
        pod = {
            "nodeName": _node(cluster),  # past the scheduler, which would wait for a volume
            "containers": [
                _container(
                    envFrom=[{"configMapRef": {"name": name}}, {"secretRef": {"name": name}}],
                    volumeMounts=[{"name": "cache", "mountPath": "/models"}],
                )
            ],
            "volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": f"{name}-cache"}}],
        }
        deployment = staged.create(at("apps/v1", "deployments"), _workload(meta, labels, pod, replicas=2))
        staged.create(at("v1", "services"), _service(meta, labels))
        staged.create(
            at("autoscaling/v2", "horizontalpodautoscalers"), _autoscaler(meta, "apps/v1", "Deployment", name)
        )
        staged.create(
            at("policy/v1", "poddisruptionbudgets"),
            {"metadata": meta, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}},
        )
        staged.create(at("networking.k8s.io/v1", "ingresses"), _ingress(meta, name))
        staged.create(
            at("gateway.networking.k8s.io/v1", "httproutes"),
            {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "HTTPRoute",
                "metadata": meta,
                "spec": {
                    "parentRefs": [{"name": "edge", "namespace": "edge"}],
                    "hostnames": [f"{name}.example.com"],
                    "rules": [{"backendRefs": [{"name": name, "port": 80}]}],
                },
            },
        )
        staged.create(
            at(f"{MONITORING_GROUP}/v1", "servicemonitors"),
            {
                "apiVersion": f"{MONITORING_GROUP}/v1",
                "kind": "ServiceMonitor",
                "metadata": meta,
                "spec": {"selector": {"matchLabels": labels}, "endpoints": [{"port": "http"}]},
            },
        )
        staged.wait(deployment, lambda now: now["status"].get("availableReplicas") == 2)
        staged.phases = {
            "detach": (f"ingresses/{name}", f"httproutes/{name}"),
            "quiesce": (f"horizontalpodautoscalers/{name}",),
            "stop": (f"deployments/{name}",),
            "remove": (
                f"services/{name}",
                f"servicemonitors/{name}",
                f"poddisruptionbudgets/{name}",
                f"configmaps/{name}",
                f"secrets/{name}",
                f"persistentvolumeclaims/{name}-cache",
            ),
        }
        return staged


def kserve_tree(cluster: Access, namespace: str, name: str) -> Staged:
    """An InferenceService with its finalizer, and the objects of KServe's RawDeployment mode, each owned by it.

    Expected phases:
    - detach: Ingress
    - quiesce: HorizontalPodAutoscaler
    - stop: Deployment
    - remove: Service
    - release: InferenceService

    With `standins.kserve_controller` at work, whatever goes before the InferenceService is Terminating comes back (but
    for the HPA), and once it is, its finalizer goes within 30 ms and the garbage collector takes the rest in any order.
    """
    install(cluster, theirs("kserve", "inferenceservices.serving.kserve.io"))
    with Staged(cluster, namespace, name).or_nothing() as staged:
        at = _collections(namespace)
        service = staged.create(
            at("serving.kserve.io/v1beta1", "inferenceservices"),
            {
                "apiVersion": "serving.kserve.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {
                    "name": name,
                    "annotations": {"serving.kserve.io/deploymentMode": "RawDeployment"},
                    "finalizers": [KSERVE_FINALIZER],
                },
                "spec": {"predictor": {"minReplicas": 2, "maxReplicas": 4, "containers": [_container()]}},
            },
        )
        predictor = f"{name}-predictor"
        labels = {"app": f"isvc.{predictor}", "component": "predictor", "serving.kserve.io/inferenceservice": name}
        meta = {"name": predictor, "labels": labels, "ownerReferences": [service.owner()]}
        pod = {"nodeName": _node(cluster), "containers": [_container()]}
        selector = {"app": labels["app"]}
        workload = _workload(meta, labels, pod, replicas=2, selector=selector)
        deployment = staged.create(at("apps/v1", "deployments"), workload)
        staged.create(at("v1", "services"), _service(meta, selector))
        staged.create(
            at("autoscaling/v2", "horizontalpodautoscalers"), _autoscaler(meta, "apps/v1", "Deployment", predictor)
        )
        staged.create(at("networking.k8s.io/v1", "ingresses"), _ingress(meta | {"name": name}, predictor))
        staged.wait(deployment, lambda now: now["status"].get("availableReplicas") == 2)
        staged.set_status(service, _conditions("PredictorReady", "IngressReady", "Ready"))
        staged.phases = {
            "detach": (f"ingresses/{name}",),
            "quiesce": (f"horizontalpodautoscalers/{predictor}",),
            "stop": (f"deployments/{predictor}",),
            "remove": (f"services/{predictor}",),
            "release": (f"inferenceservices/{name}",),
        }
        return staged


def rollout_tree(cluster: Access, namespace: str, name: str) -> Staged:
    """An Argo Rollout in the middle of an experiment: two ReplicaSets with pods, a third of the Experiment's.

    It owns its ReplicaSets, the canary Ingress and the Experiment, which owns a ReplicaSet, a Service and an
    AnalysisRun. Both Services, the stable Ingress, the AnalysisTemplate and the HPA stand beside it.

    Expected phases:
    - detach: Ingress NAME, Ingress NAME-NAME-canary
    - quiesce: HorizontalPodAutoscaler
    - stop: Experiment and Rollout, whose ReplicaSets go with them; never a ReplicaSet first, which would come back
    - remove: Services, AnalysisTemplate
    """
    install(
        cluster,
        theirs(
            "argo-rollouts",
            "rollouts.argoproj.io",
            "experiments.argoproj.io",
            "analysistemplates.argoproj.io",
            "analysisruns.argoproj.io",
        ),
    )
    api = "argoproj.io/v1alpha1"
    labels = {"app": name}
    meta = {"name": name, "labels": labels}
    experiment_name = f"{name}-trial"
    with Staged(cluster, namespace, name).or_nothing() as staged:
        at = _collections(namespace)
        pod = {"nodeName": _node(cluster), "containers": [_container()]}
        metrics = [{"name": "errors", "provider": {"prometheus": {"query": "vector(0)"}}, "interval": "1m"}]
        for service in (f"{name}-stable", f"{name}-canary"):
            selector = labels | {ROLLOUT_HASH: service.removeprefix(f"{name}-")}
            staged.create(at("v1", "services"), _service({"name": service, "labels": labels}, selector))
        staged.create(at("networking.k8s.io/v1", "ingresses"), _ingress(meta, f"{name}-stable"))
        staged.create(
            at(api, "analysistemplates"),
            {"apiVersion": api, "kind": "AnalysisTemplate", "metadata": meta, "spec": {"metrics": metrics}},
        )
        rollout = staged.create(
            at(api, "rollouts"),
            {"apiVersion": api, "kind": "Rollout", **_workload(meta, labels, pod, replicas=2)}
            | {"spec": _rollout_spec(name, labels, pod)},
        )
        staged.create(at("autoscaling/v2", "horizontalpodautoscalers"), _autoscaler(meta, api, "Rollout", name))
        canary = {"name": f"{name}-{name}-canary", "ownerReferences": [rollout.owner()]}
        staged.create(at("networking.k8s.io/v1", "ingresses"), _ingress(canary, f"{name}-canary"))
        experiment = staged.create(
            at(api, "experiments"),
            {
                "apiVersion": api,
                "kind": "Experiment",
                "metadata": {"name": experiment_name, "labels": labels, "ownerReferences": [rollout.owner()]},
                "spec": {
                    "templates": [
                        {
                            "name": "trial",
                            "replicas": 1,
                            "service": {},
                            "selector": {"matchLabels": labels | {"role": "trial"}},
                            "template": {"metadata": {"labels": labels | {"role": "trial"}}, "spec": _pod(pod)},
                        }
                    ],
                    "analyses": [{"name": "errors", "templateName": name}],
                },
            },
        )
        sets = [
            _replica_set(staged, f"{name}-stable", labels | {ROLLOUT_HASH: "stable"}, pod, rollout, 2),
            _replica_set(staged, f"{name}-canary", labels | {ROLLOUT_HASH: "canary"}, pod, rollout, 1),
            _replica_set(staged, f"{experiment_name}-trial", labels | {"role": "trial"}, pod, experiment, 1),
        ]
        staged.create(
            at("v1", "services"),
            _service(
                {"name": f"{experiment_name}-trial", "ownerReferences": [experiment.owner()]},
                labels | {"role": "trial"},
            ),
        )
        staged.create(
            at(api, "analysisruns"),
            {
                "apiVersion": api,
                "kind": "AnalysisRun",
                "metadata": {"name": f"{experiment_name}-errors", "ownerReferences": [experiment.owner()]},
                "spec": {"metrics": metrics},
            },
        )
        for each in sets:
            staged.wait(each, lambda now: now["status"].get("availableReplicas") == now["spec"]["replicas"])
        staged.phases = {
            "detach": (f"ingresses/{name}", f"ingresses/{name}-{name}-canary"),
            "quiesce": (f"horizontalpodautoscalers/{name}",),
            "stop": (f"experiments/{experiment_name}", f"rollouts/{name}"),
            "remove": (
                f"services/{name}-stable",
                f"services/{name}-canary",
                f"analysistemplates/{name}",
            ),
        }
        return staged


def crossplane_tree(cluster: Access, namespace: str, name: str) -> Staged:
    """A composite ModelEndpoint, and what it is composed of: an Instance that uses a Database, and a ConfigMap.

    A Usage (Crossplane's own kind) protects the Database while the Instance is there. Both are managed resources with
    the provider's finalizer, and a ProviderConfigUsage each; the ProviderConfig stays while one of those is left, and
    without it the provider could not finalize them.

    Expected phases:
    - stop: Instance; then the Usage; then the Database, which is free only now
    - remove: ConfigMap; ProviderConfigUsages (they go with their owners); ProviderConfig, after all of these
    - release: ModelEndpoint

    With `standins.crossplane_controllers` at work, composed resources come back while the ModelEndpoint is not
    Terminating; once it is, its finalizer goes within 30 ms and the garbage collector takes the rest in any order.
    """
    install(cluster, theirs("crossplane", "usages.protection.crossplane.io"))
    install(
        cluster,
        [
            definition(XR_GROUP, "ModelEndpoint", "modelendpoints"),
            definition(PROVIDER_GROUP, "Database", "databases"),
            definition(PROVIDER_GROUP, "Instance", "instances"),
            definition(PROVIDER_GROUP, "ProviderConfig", "providerconfigs"),
            definition(PROVIDER_GROUP, "ProviderConfigUsage", "providerconfigusages"),
        ],
    )
    provider = f"{PROVIDER_GROUP}/v1"
    with Staged(cluster, namespace, name).or_nothing() as staged:
        at = _collections(namespace)
        config = staged.create(
            at(provider, "providerconfigs"),
            {
                "apiVersion": provider,
                "kind": "ProviderConfig",
                "metadata": {"name": name, "finalizers": [PROVIDER_CONFIG_FINALIZER]},
                "spec": {"credentials": {"source": "None"}},
            },
        )
        composed = [("Database", f"{name}-db"), ("Instance", f"{name}-app"), ("ConfigMap", f"{name}-config")]
        composite = staged.create(
            at(f"{XR_GROUP}/v1", "modelendpoints"),
            {
                "apiVersion": f"{XR_GROUP}/v1",
                "kind": "ModelEndpoint",
                "metadata": {"name": name, "finalizers": [COMPOSITE_FINALIZER]},
                "spec": {
                    "crossplane": {
                        "resourceRefs": [
                            {"apiVersion": "v1" if kind == "ConfigMap" else provider, "kind": kind, "name": each}
                            for kind, each in composed
                        ]
                    }
                },
            },
        )
        meta: Json = {"labels": {COMPOSITE: name}, "ownerReferences": [composite.owner()]}
        staged.create(at("v1", "configmaps"), {"metadata": meta | {"name": f"{name}-config"}})
        for (kind, each), plural in zip(composed[:2], ("databases", "instances"), strict=True):
            used = {IN_USE: "true"} if kind == "Database" else {}
            managed = staged.create(
                at(provider, plural),
                {
                    "apiVersion": provider,
                    "kind": kind,
                    "metadata": meta
                    | {"name": each, "labels": meta["labels"] | used, "finalizers": [MANAGED_FINALIZER]},
                    "spec": {"providerConfigRef": {"kind": "ProviderConfig", "name": config.name}, "forProvider": {}},
                },
            )
            staged.create(at(provider, "providerconfigusages"), _provider_config_usage(managed, config.name))
        instance = staged.find("Instance")
        staged.create(
            at("protection.crossplane.io/v1beta1", "usages"),
            {
                "apiVersion": "protection.crossplane.io/v1beta1",
                "kind": "Usage",
                "metadata": meta
                | {
                    "name": f"{name}-app-uses-db",
                    "finalizers": [USAGE_FINALIZER],
                    "ownerReferences": [composite.owner(), instance.owner() | {"controller": False}],
                },
                "spec": {
                    "of": {"apiVersion": provider, "kind": "Database", "resourceRef": {"name": f"{name}-db"}},
                    "by": {"apiVersion": provider, "kind": "Instance", "resourceRef": {"name": f"{name}-app"}},
                },
            },
        )
        staged.phases = {
            "stop": (f"instances/{name}-app", f"usages/{name}-app-uses-db", f"databases/{name}-db"),
            "remove": (f"configmaps/{name}-config", f"providerconfigs/{name}"),
            "release": (f"modelendpoints/{name}",),
        }
        return staged


def _collections(namespace: str) -> Callable[[str, str], str]:
    """The path of a collection in a namespace, by apiVersion and plural."""

    def at(api_version: str, plural: str) -> str:
        root = "/apis" if "/" in api_version else "/api"
        return f"{root}/{api_version}/namespaces/{namespace}/{plural}"

    return at


def _node(cluster: Access) -> str:
    """Node on which kwok runs pods."""
    name: str = cluster.request("GET", "/api/v1/nodes?limit=1")["items"][0]["metadata"]["name"]
    return name


def _container(**more: Any) -> Json:
    return {"name": "server", "image": "registry.example/server:1.0", "ports": [{"containerPort": 8080}], **more}


def _pod(pod: Json) -> Json:
    """Pod with a short grace period: kwok removes it at once, and no test should wait for one that is stuck."""
    return {"terminationGracePeriodSeconds": 1, **pod}


def _workload(meta: Json, labels: Json, pod: Json, *, replicas: int, selector: Json | None = None) -> Json:
    return {
        "metadata": meta,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector or labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(pod)},
        },
    }


def _replica_set(staged: Staged, name: str, labels: Json, pod: Json, owner: Placed, replicas: int) -> Placed:
    meta = {"name": name, "labels": labels, "ownerReferences": [owner.owner()]}
    return staged.create(
        _collections(staged.namespace)("apps/v1", "replicasets"), _workload(meta, labels, pod, replicas=replicas)
    )


def _rollout_spec(name: str, labels: Json, pod: Json) -> Json:
    return {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod(pod)},
        "strategy": {
            "canary": {
                "stableService": f"{name}-stable",
                "canaryService": f"{name}-canary",
                "trafficRouting": {"nginx": {"stableIngress": name}},
                "steps": [{"setWeight": 20}, {"pause": {}}],
            }
        },
    }


def _service(meta: Json, selector: Json) -> Json:
    return {
        "metadata": meta,
        "spec": {"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    }


def _autoscaler(meta: Json, api_version: str, kind: str, target: str) -> Json:
    reference = {"apiVersion": api_version, "kind": kind, "name": target}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    return {
        "metadata": meta,
        "spec": {"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 4, "metrics": [metric]},
    }


def _ingress(meta: Json, service: str) -> Json:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {"metadata": meta, "spec": {"rules": [{"host": f"{service}.example.com", "http": {"paths": [path]}}]}}


def _provider_config_usage(managed: Placed, config: str) -> Json:
    return {
        "apiVersion": f"{PROVIDER_GROUP}/v1",
        "kind": "ProviderConfigUsage",
        "metadata": {
            "name": managed.uid,
            "labels": {PROVIDER_CONFIG: config},
            "ownerReferences": [managed.owner()],
        },
        "providerConfigRef": {"kind": "ProviderConfig", "name": config},
        "resourceRef": {
            "apiVersion": managed.body["apiVersion"],
            "kind": managed.kind,
            "name": managed.name,
            "uid": managed.uid,
        },
    }


def _conditions(*types: str) -> Json:
    since = "2026-01-01T00:00:00Z"
    return {"conditions": [{"type": each, "status": "True", "lastTransitionTime": since} for each in types]}
