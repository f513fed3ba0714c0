"""Argo: the Services and routes that a rollout steers, its analyses and experiments; finalizers of CD and Workflows."""

import functools

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.relation import ByName, RelationField, TargetKind, When, mounts, needs, targets
from pilotage.catalogue.shared import A_SECRET, A_SERVICE, AN_INGRESS, ANYTHING, SERVICE, pod_fields, workload

_GROUP = "argoproj.io"
_CANARY = "spec.strategy.canary"
_BLUE_GREEN = "spec.strategy.blueGreen"
_ROUTING = f"{_CANARY}.trafficRouting"
_VIRTUAL_SERVICE = ByName((TargetKind("networking.istio.io", "VirtualService"),))
_HTTP_ROUTE = TargetKind("gateway.networking.k8s.io", "HTTPRoute")
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
    needs(f"{_ROUTING}.nginx.stableIngress", AN_INGRESS),
    needs(f"{_ROUTING}.nginx.stableIngresses[]", AN_INGRESS),
    needs(f"{_ROUTING}.alb.ingress", AN_INGRESS),
    needs(f"{_ROUTING}.alb.ingresses[]", AN_INGRESS),
    needs(f"{_ROUTING}.istio.virtualService", _VIRTUAL_SERVICE),
    needs(f"{_ROUTING}.istio.virtualServices[]", _VIRTUAL_SERVICE),
    needs(f"{_ROUTING}.istio.destinationRule", ByName((TargetKind("networking.istio.io", "DestinationRule"),))),
    needs(f"{_ROUTING}.smi.trafficSplitName", ByName((TargetKind("split.smi-spec.io", "TrafficSplit"),))),
    needs(f"{_ROUTING}.ambassador.mappings[]", ByName((TargetKind("getambassador.io", "Mapping"),))),
    needs(
        f"{_ROUTING}.traefik.weightedTraefikServiceName",
        ByName((TargetKind("traefik.io", "TraefikService"), TargetKind("traefik.containo.us", "TraefikService"))),
    ),
    needs(f"{_ROUTING}.apisix.route", ByName((TargetKind("apisix.apache.org", "ApisixRoute"),))),
    needs(
        f"{_ROUTING}.plugins[argoproj-labs/gatewayAPI]",
        ByName((_HTTP_ROUTE,), name="httpRoute", namespace="namespace"),
    ),
    needs(f"{_ROUTING}.plugins[argoproj-labs/gatewayAPI].httpRoutes[]", ByName((_HTTP_ROUTE,))),
)
_ANALYSES = (
    f"{_CANARY}.analysis.templates[]",
    f"{_CANARY}.steps[].analysis.templates[]",
    f"{_CANARY}.steps[].experiment.analyses[]",
    f"{_BLUE_GREEN}.prePromotionAnalysis.templates[]",
    f"{_BLUE_GREEN}.postPromotionAnalysis.templates[]",
)
_ARGUMENT = mounts("spec.args[].valueFrom.secretKeyRef", A_SECRET)
_by_argo_cd = functools.partial(
    KnownFinalizer,
    who="Argo CD application controller",
    workloads=("argocd-application-controller", "*-application-controller"),
    namespaces=("argocd", "openshift-gitops"),
    labels=(("app.kubernetes.io/name", "argocd-application-controller"),),
)


def _analysis(field: str) -> tuple[RelationField, RelationField]:
    here = ByName((TargetKind(_GROUP, "AnalysisTemplate"),), name="templateName")
    anywhere = ByName((TargetKind(_GROUP, "ClusterAnalysisTemplate", namespaced=False),), name="templateName")
    return (
        needs(field, here, When("clusterScope", (None, False))),
        needs(field, anywhere, When("clusterScope", (True,))),
    )


ECOSYSTEM = Ecosystem(
    "Argo",
    (
        workload(
            _GROUP,
            "Rollout",
            relations=(
                needs("spec.workloadRef", ANYTHING),
                *(needs(field, A_SERVICE) for field in _SERVICES),
                *_ROUTES,
                *(row for field in _ANALYSES for row in _analysis(field)),
                *pod_fields("spec.template.spec"),
            ),
            serves=True,
            scaled=True,
        ),
        KnownKind(
            _GROUP,
            "Experiment",
            relations=(
                *_analysis("spec.analyses[]"),
                targets("status.templateStatuses[]", ByName((SERVICE,), name="serviceName")),
                *pod_fields("spec.templates[].template.spec"),
            ),
        ),
        KnownKind(_GROUP, "AnalysisTemplate", relations=(*_analysis("spec.templates[]"), _ARGUMENT)),
        KnownKind(_GROUP, "ClusterAnalysisTemplate", relations=_analysis("spec.templates[]")[1:]),
        KnownKind(_GROUP, "AnalysisRun", relations=(_ARGUMENT,)),
    ),
    (
        _by_argo_cd(
            ("resources-finalizer.argocd.argoproj.io", "resources-finalizer.argocd.argoproj.io/*"),
            does="deletes everything that the Application deployed",
            leaks="everything that the Application deployed: it stays, and no controller manages it.",
        ),
        _by_argo_cd(
            ("post-delete-finalizer.argocd.argoproj.io*", "pre-delete-finalizer.argocd.argoproj.io*"),
            does="runs the Application's delete hooks",
            leaks="whatever the Application's delete hooks would have cleaned up.",
        ),
        KnownFinalizer(
            ("workflows.argoproj.io/*",),
            "Argo Workflows controller",
            "deletes the workflow's artifacts",
            "the workflow's artifacts in their bucket.",
            ("workflow-controller", "argo-workflows-workflow-controller", "argo-workflow-controller"),
            ("argo", "argo-workflows"),
            (("app", "workflow-controller"),),
            ("workflow-controller",),
        ),
    ),
)
