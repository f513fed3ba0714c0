"""Argo Rollouts: the Services and routes that a rollout steers, its analyses, and experiments."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SECRET, A_SERVICE, ANYTHING, INGRESS
from pilotage.teardown.relations.families.pods import pod_rows
from pilotage.teardown.relations.rows import Kind, Named, Relation, Row, When

_GROUP = "argoproj.io"
_CANARY = "spec.strategy.canary"
_BLUE_GREEN = "spec.strategy.blueGreen"
_ROUTING = f"{_CANARY}.trafficRouting"
_INGRESS = Named((INGRESS,))
_VIRTUAL_SERVICE = Named((Kind("networking.istio.io", "VirtualService"),))
_SERVICES = (
    f"{_BLUE_GREEN}.activeService",
    f"{_BLUE_GREEN}.previewService",
    f"{_CANARY}.canaryService",
    f"{_CANARY}.stableService",
    f"{_CANARY}.pingPong.pingService",
    f"{_CANARY}.pingPong.pongService",
    f"{_ROUTING}.alb.rootService",
    f"{_ROUTING}.smi.rootService",
)
_ROUTES = (
    (f"{_ROUTING}.nginx.stableIngress", _INGRESS),
    (f"{_ROUTING}.nginx.stableIngresses[]", _INGRESS),
    (f"{_ROUTING}.alb.ingress", _INGRESS),
    (f"{_ROUTING}.alb.ingresses[]", _INGRESS),
    (f"{_ROUTING}.istio.virtualService", _VIRTUAL_SERVICE),
    (f"{_ROUTING}.istio.virtualServices[]", _VIRTUAL_SERVICE),
    (f"{_ROUTING}.istio.destinationRule", Named((Kind("networking.istio.io", "DestinationRule"),))),
    (f"{_ROUTING}.smi.trafficSplitName", Named((Kind("split.smi-spec.io", "TrafficSplit"),))),
    (f"{_ROUTING}.ambassador.mappings[]", Named((Kind("getambassador.io", "Mapping"),))),
    (
        f"{_ROUTING}.traefik.weightedTraefikServiceName",
        Named((Kind("traefik.io", "TraefikService"), Kind("traefik.containo.us", "TraefikService"))),
    ),
    (f"{_ROUTING}.apisix.route", Named((Kind("apisix.apache.org", "ApisixRoute"),))),
    (
        f"{_ROUTING}.plugins[argoproj-labs/gatewayAPI]",
        Named((Kind("gateway.networking.k8s.io", "HTTPRoute"),), name="httpRoute", namespace="namespace"),
    ),
    (
        f"{_ROUTING}.plugins[argoproj-labs/gatewayAPI].httpRoutes[]",
        Named((Kind("gateway.networking.k8s.io", "HTTPRoute"),)),
    ),
)
_ANALYSES = (
    f"{_CANARY}.analysis.templates[]",
    f"{_CANARY}.steps[].analysis.templates[]",
    f"{_CANARY}.steps[].experiment.analyses[]",
    f"{_BLUE_GREEN}.prePromotionAnalysis.templates[]",
    f"{_BLUE_GREEN}.postPromotionAnalysis.templates[]",
)


def _analysis(kind: str, field: str) -> tuple[Row, Row]:
    here = Named((Kind(_GROUP, "AnalysisTemplate"),), name="templateName")
    anywhere = Named((Kind(_GROUP, "ClusterAnalysisTemplate", namespaced=False),), name="templateName")
    return (
        Row(_GROUP, kind, Relation.NEEDS, field, here, When("clusterScope", (None, False))),
        Row(_GROUP, kind, Relation.NEEDS, field, anywhere, When("clusterScope", (True,))),
    )


ROWS = (
    Row(_GROUP, "Rollout", Relation.NEEDS, "spec.workloadRef", ANYTHING),
    *(Row(_GROUP, "Rollout", Relation.NEEDS, field, A_SERVICE) for field in _SERVICES),
    *(Row(_GROUP, "Rollout", Relation.NEEDS, field, target) for field, target in _ROUTES),
    *(row for field in _ANALYSES for row in _analysis("Rollout", field)),
    *pod_rows(_GROUP, "Rollout", "spec.template.spec"),
    *_analysis("Experiment", "spec.analyses[]"),
    Row(
        _GROUP,
        "Experiment",
        Relation.TARGETS,
        "status.templateStatuses[]",
        Named(A_SERVICE.kinds, name="serviceName"),
    ),
    *pod_rows(_GROUP, "Experiment", "spec.templates[].template.spec"),
    *_analysis("AnalysisTemplate", "spec.templates[]"),
    *_analysis("ClusterAnalysisTemplate", "spec.templates[]")[1:],
    Row(_GROUP, "AnalysisTemplate", Relation.MOUNTS, "spec.args[].valueFrom.secretKeyRef", A_SECRET),
    Row(_GROUP, "AnalysisRun", Relation.MOUNTS, "spec.args[].valueFrom.secretKeyRef", A_SECRET),
)
