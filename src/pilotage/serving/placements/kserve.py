"""KServe: an InferenceService in RawDeployment mode for each revision, with our server as its container.

KServe makes of it a Deployment, a Service and, where it scales, a HorizontalPodAutoscaler, all called NAME-N-predictor.
Our labels are on them, too, because KServe copies those of the InferenceService. What was read from its sources (0.15):

- The label ``networking.kserve.io/visibility: cluster-local`` keeps it from making an Ingress or HTTPRoutes of its own.
- Without an autoscaler it takes the replicas from ``minReplicas``, if the class is ``external``; with the class
  ``hpa`` there are always one or more. The class is an annotation, which it copies to the pods: another class would
  mean other pods.
- Its ``status.observedGeneration`` is the Deployment's, so we look at the Deployment.
- It makes a host name of the names of its Service and the namespace, also where nobody asks for one, and does nothing
  at all where a part of that is too long. How it is made is a setting of KServe's (``domainTemplate``).
- Its deadline for progress is 600 seconds, always, which a large model exceeds.
"""

from collections.abc import Iterator

from pilotage.kube import Object, Resource
from pilotage.kube.wire import Json
from pilotage.serving.manifests import TEMPLATE, claims, digest, manifest
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, Readiness, ResolvedModel, revision_name
from pilotage.serving.placements.contract import Find, ServiceBackend
from pilotage.serving.pod import pod_of
from pilotage.serving.resources import DEPLOYMENTS, INFERENCE_SERVICES
from pilotage.serving.revision import replicas_of
from pilotage.serving.workload import condition, readiness_of

SERVICE_PORT = 80
SCALING_FIELDS = frozenset({"minReplicas", "maxReplicas", "scaleMetric", "scaleTarget"})
"""Fields that change without a restart of pods."""
NAME_MAX = 42
"""KServe writes ``isvc.NAME-N-predictor`` into a label, which has 63 characters: this leaves five for the revision."""
HOST_LABEL_MAX = 63
_CONTAINER = "kserve-container"
_VISIBILITY = "networking.kserve.io/visibility"


class _KServe:
    kind = "KServe"
    observed: tuple[Resource, ...] = (INFERENCE_SERVICES, DEPLOYMENTS)

    def desired(
        self, endpoint: EndpointRef, revision: int, model: ResolvedModel, capabilities: Capabilities
    ) -> list[DesiredObject]:
        """A claim and an InferenceService."""
        pod = pod_of(endpoint, model, capabilities, _CONTAINER)
        predictor: Json = dict(pod.spec)
        if pod.annotations:
            predictor["annotations"] = pod.annotations
        annotations = {
            "serving.kserve.io/deploymentMode": "RawDeployment",
            "serving.kserve.io/autoscalerClass": "external" if endpoint.spec.autoscaling is None else "hpa",
            TEMPLATE: digest(predictor),
        }
        name = revision_name(endpoint.name, revision)
        spec = {"predictor": predictor | _scaling(endpoint)}
        made = manifest(INFERENCE_SERVICES, endpoint, name, revision, spec, annotations)
        made.body["metadata"]["labels"][_VISIBILITY] = "cluster-local"
        return [*claims(endpoint, model), made]

    def readiness(self, endpoint: EndpointRef, revision: int, find: Find) -> Readiness:
        """Readiness of the Deployment that KServe creates, and of the InferenceService."""
        name = revision_name(endpoint.name, revision)
        service = find(INFERENCE_SERVICES, name)
        if service is None:
            return Readiness(
                0, replicas_of(endpoint.spec), False, "NotCreated", f"InferenceService {name} does not exist yet."
            )
        deployment = find(DEPLOYMENTS, f"{name}-predictor")
        if deployment is None:
            return _not_deployed(endpoint, revision, service)
        found = readiness_of(endpoint.spec, deployment, whole_deadline=False)
        ready = condition(service, "Ready")
        if found.available and ready.get("status") != "True":
            said = ready.get("message") or "KServe has not said that it is ready"
            return found._replace(
                available=False, reason=ready.get("reason") or "NotReady", message=f"{said}.".replace("..", ".")
            )
        return found

    def backend(self, endpoint: EndpointRef, revision: int) -> ServiceBackend:
        """The Service that KServe creates."""
        return ServiceBackend(f"{revision_name(endpoint.name, revision)}-predictor", SERVICE_PORT)

    def problems(self, endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities) -> Iterator[str]:  # noqa: ARG002
        """A cluster without KServe, or a name that is too long for it."""
        if not capabilities.kserve:
            yield "This cluster has no KServe (no kind InferenceService). Install it, or use placement Deployment."
        if len(endpoint.name) > NAME_MAX:
            yield f"With placement KServe a name has at most {NAME_MAX} characters: KServe makes longer ones of it."


def _scaling(endpoint: EndpointRef) -> Json:
    autoscaling = endpoint.spec.autoscaling
    if autoscaling is None:
        return {"minReplicas": endpoint.spec.replicas, "maxReplicas": endpoint.spec.replicas}
    return {
        "minReplicas": autoscaling.min,
        "maxReplicas": autoscaling.max,
        "scaleMetric": "cpu",
        "scaleTarget": autoscaling.target_cpu_percent,
    }


def _not_deployed(endpoint: EndpointRef, revision: int, service: Object) -> Readiness:
    """KServe has not made anything of it, or cannot."""
    status = service.get("status", "modelStatus", default={}) or {}
    failure = status.get("lastFailureInfo") or {}
    failed = status.get("transitionStatus") == "InvalidSpec"
    message = failure.get("message") or "KServe has not created its Deployment yet."
    label = f"{PLACEMENT.backend(endpoint, revision).service}-{endpoint.namespace}"
    if not failure and len(label) > HOST_LABEL_MAX:
        failed = True  # but for another domainTemplate: then there is a Deployment at once
        message = (
            f"KServe has not created its Deployment. By default it derives the host name {label}, which has"
            f" {len(label)} characters; {HOST_LABEL_MAX} are allowed. Use a shorter name or namespace."
        )
    return Readiness(
        0, replicas_of(endpoint.spec), False, failure.get("reason") or "WaitingForKServe", message, failed=failed
    )


PLACEMENT = _KServe()
