"""A Deployment and a Service for each revision, and what scales it."""

from collections.abc import Iterator

from pilotage.kube import Resource
from pilotage.kube.wire import Json
from pilotage.serving.manifests import SCALED_BY, TEMPLATE, claims, digest, manifest, service
from pilotage.serving.parts import (
    Capabilities,
    DesiredObject,
    EndpointRef,
    Readiness,
    ResolvedModel,
    labels,
    revision_name,
)
from pilotage.serving.placements.autoscaling import scaler, scaler_of
from pilotage.serving.placements.contract import Find, ServiceBackend
from pilotage.serving.pod import PORT_NAME, pod_of
from pilotage.serving.resources import DEPLOYMENTS
from pilotage.serving.revision import replicas_of
from pilotage.serving.workload import readiness_of

SERVICE_PORT = 80


class _Deployment:
    kind = "Deployment"
    observed: tuple[Resource, ...] = (DEPLOYMENTS,)

    def desired(
        self, endpoint: EndpointRef, revision: int, model: ResolvedModel, capabilities: Capabilities
    ) -> list[DesiredObject]:
        """A claim, a Service, a Deployment and its autoscaler. The autoscaler comes last: it needs a target."""
        return [
            *claims(endpoint, model),
            _service(endpoint, revision),
            _deployment(endpoint, revision, model, capabilities),
            *scaler(endpoint, revision, capabilities, SERVICE_PORT),
        ]

    def readiness(self, endpoint: EndpointRef, revision: int, find: Find) -> Readiness:
        """Readiness of the Deployment."""
        return readiness_of(endpoint.spec, find(DEPLOYMENTS, revision_name(endpoint.name, revision)))

    def backend(self, endpoint: EndpointRef, revision: int) -> ServiceBackend:
        """The Service of the revision."""
        return ServiceBackend(revision_name(endpoint.name, revision), SERVICE_PORT)

    def problems(self, endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities) -> Iterator[str]:  # noqa: ARG002
        """None of its own: those of all placements in pods are in `serving.problems`."""
        return iter(())


def _service(endpoint: EndpointRef, revision: int) -> DesiredObject:
    spec = {
        "selector": labels(endpoint, revision),
        "ports": [{"name": PORT_NAME, "port": SERVICE_PORT, "targetPort": PORT_NAME}],
    }
    return service(endpoint, revision, spec)


def _deployment(
    endpoint: EndpointRef, revision: int, model: ResolvedModel, capabilities: Capabilities
) -> DesiredObject:
    pod = pod_of(endpoint, model, capabilities)
    metadata: Json = {"labels": labels(endpoint, revision)}
    if pod.annotations:
        metadata["annotations"] = pod.annotations
    template = {"metadata": metadata, "spec": pod.spec}
    annotations = {TEMPLATE: digest(template)}
    if (scaled_by := scaler_of(endpoint.spec, capabilities)) is not None:
        annotations[SCALED_BY] = scaled_by.kind
    spec = {
        "replicas": replicas_of(endpoint.spec),
        "selector": {"matchLabels": labels(endpoint, revision)},
        # Its pods are never changed in place. Should somebody do so: one more before one goes.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "progressDeadlineSeconds": pod.start_seconds + 60,
        "revisionHistoryLimit": 0,
        "template": template,
    }
    return manifest(DEPLOYMENTS, endpoint, revision_name(endpoint.name, revision), revision, spec, annotations)


PLACEMENT = _Deployment()
