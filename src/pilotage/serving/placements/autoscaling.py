"""Autoscalers: a HorizontalPodAutoscaler by CPU, or a ScaledObject of KEDA by requests in flight."""

from pilotage.api.endpoint import EndpointSpec
from pilotage.kube import Resource
from pilotage.kube.wire import Json
from pilotage.serving.manifests import manifest
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, revision_name
from pilotage.serving.resources import AUTOSCALERS, SCALED_OBJECTS
from pilotage.serving.runtimes import RUNTIMES
from pilotage.serving.runtimes.contract import METRICS_PATH


def scaler_of(spec: EndpointSpec, capabilities: Capabilities) -> Resource | None:
    """The kind of object that scales it; None for a fixed number of replicas."""
    if spec.autoscaling is None:
        return None
    counted = spec.autoscaling.target_concurrency is not None and RUNTIMES[spec.runtime.name].request_metrics
    return SCALED_OBJECTS if counted and capabilities.keda else AUTOSCALERS


def scaler(endpoint: EndpointRef, revision: int, capabilities: Capabilities, service_port: int) -> list[DesiredObject]:
    """The autoscaler of the Deployment of a revision."""
    kind = scaler_of(endpoint.spec, capabilities)
    if kind is None:
        return []
    make = _by_requests if kind is SCALED_OBJECTS else _by_cpu
    return [
        manifest(
            kind, endpoint, revision_name(endpoint.name, revision), revision, make(endpoint, revision, service_port)
        )
    ]


def _by_cpu(endpoint: EndpointRef, revision: int, _: int) -> Json:
    autoscaling = endpoint.spec.autoscaling
    assert autoscaling is not None
    target = {"type": "Utilization", "averageUtilization": autoscaling.target_cpu_percent}
    return {
        "scaleTargetRef": _target(endpoint, revision),
        "minReplicas": autoscaling.min,
        "maxReplicas": autoscaling.max,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }


def _by_requests(endpoint: EndpointRef, revision: int, service_port: int) -> Json:
    """KEDA asks the Service, so one replica answers for all: its value is not divided by their number (``Value``)."""
    autoscaling = endpoint.spec.autoscaling
    assert autoscaling is not None
    host = f"{revision_name(endpoint.name, revision)}.{endpoint.namespace}.svc"
    metadata = {
        "url": f"http://{host}:{service_port}{METRICS_PATH}",
        "format": "prometheus",
        "valueLocation": RUNTIMES[endpoint.spec.runtime.name].request_metrics[0],
        "targetValue": str(autoscaling.target_concurrency),
    }
    return {
        "scaleTargetRef": _target(endpoint, revision),
        "minReplicaCount": autoscaling.min,
        "maxReplicaCount": autoscaling.max,
        "triggers": [{"type": "metrics-api", "metricType": "Value", "metadata": metadata}],
    }


def _target(endpoint: EndpointRef, revision: int) -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": revision_name(endpoint.name, revision)}
