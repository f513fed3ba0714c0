"""Built-in kinds: autoscalers, budgets, Ingresses, EndpointSlices."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import (
    obj,
)

theme = Theme("kind")
creates = theme.creates

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


creates("budget minimum", PDB, budget(minAvailable=1, selector={"matchLabels": {"app": "a"}}), facts=(20,))
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
creates("ingress default backend", INGRESS, ingress(defaultBackend=BACKEND), facts=(25,))
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
    facts=(18, 19),
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
