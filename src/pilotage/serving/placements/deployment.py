"""A Deployment and a Service for each revision, and what scales it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.serving.manifests import SCALED_BY, TEMPLATE, claims, digest, manifest
from pilotage.serving.parts import labels, revision_name
from pilotage.serving.placements.autoscaling import scaler, scaler_of
from pilotage.serving.placements.contract import Backend
from pilotage.serving.pod import PORT_NAME, pod_of
from pilotage.serving.resources import DEPLOYMENTS, SERVICES
from pilotage.serving.revision import replicas_of
from pilotage.serving.workload import readiness_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.kube import Resource
    from pilotage.kube.wire import Json
    from pilotage.serving.parts import Capabilities, Readiness, ResolvedModel, Subject, Wanted
    from pilotage.serving.placements.contract import Find

SERVICE_PORT = 80


class _Deployment:
    kind = "Deployment"
    observed: tuple[Resource, ...] = (DEPLOYMENTS,)

    def wanted(self, subject: Subject, revision: int, model: ResolvedModel, capabilities: Capabilities) -> list[Wanted]:
        """See `Placement`. What scales comes last: it needs something to scale."""
        return [
            *claims(subject, model),
            _service(subject, revision),
            _deployment(subject, revision, model, capabilities),
            *scaler(subject, revision, capabilities, SERVICE_PORT),
        ]

    def readiness(self, subject: Subject, revision: int, find: Find) -> Readiness:
        """See `Placement`."""
        return readiness_of(subject.spec, find(DEPLOYMENTS, revision_name(subject.name, revision)))

    def backend(self, subject: Subject, revision: int) -> Backend:
        """See `Placement`."""
        return Backend(revision_name(subject.name, revision), SERVICE_PORT)

    def problems(self, subject: Subject, model: ResolvedModel, capabilities: Capabilities) -> Iterator[str]:  # noqa: ARG002
        """See `Placement`. What holds for all placements in pods is in `problems`."""
        return iter(())


def _service(subject: Subject, revision: int) -> Wanted:
    spec = {
        "selector": labels(subject, revision),
        "ports": [{"name": PORT_NAME, "port": SERVICE_PORT, "targetPort": PORT_NAME}],
    }
    return manifest(SERVICES, subject, revision_name(subject.name, revision), revision, spec)


def _deployment(subject: Subject, revision: int, model: ResolvedModel, capabilities: Capabilities) -> Wanted:
    pod = pod_of(subject, model, capabilities)
    metadata: Json = {"labels": labels(subject, revision)}
    if pod.annotations:
        metadata["annotations"] = pod.annotations
    template = {"metadata": metadata, "spec": pod.spec}
    annotations = {TEMPLATE: digest(template)}
    if (scaled_by := scaler_of(subject.spec, capabilities)) is not None:
        annotations[SCALED_BY] = scaled_by.kind
    spec = {
        "replicas": replicas_of(subject.spec),
        "selector": {"matchLabels": labels(subject, revision)},
        # Its pods are never changed in place. Should somebody do so: one more before one goes.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "progressDeadlineSeconds": pod.start_seconds + 60,
        "revisionHistoryLimit": 0,
        "template": template,
    }
    return manifest(DEPLOYMENTS, subject, revision_name(subject.name, revision), revision, spec, annotations)


PLACEMENT = _Deployment()
