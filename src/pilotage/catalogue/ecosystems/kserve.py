"""KServe: inference services, their runtimes and where their models are."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.relation import ByName, NameForm, TargetKind, mounts, needs, routes_to, targets
from pilotage.catalogue.shared import (
    A_SERVICE_ACCOUNT,
    SERVICE,
    VOLUME_CLAIM,
    container_fields,
    pod_fields,
    volume_fields,
)

_GROUP = "serving.kserve.io"
_INFERENCE = TargetKind(_GROUP, "InferenceService")
_RUNTIME = ByName((TargetKind(_GROUP, "ServingRuntime"), TargetKind(_GROUP, "ClusterServingRuntime", namespaced=False)))
_STORED = ByName((VOLUME_CLAIM,), form=NameForm.VOLUME_URI)

ECOSYSTEM = Ecosystem(
    "KServe",
    (
        KnownKind(
            _GROUP,
            "InferenceService",
            relations=(
                needs("spec.predictor.model.runtime", _RUNTIME),
                # Under the predictor stands the model, or the name of a framework with the same fields.
                mounts("spec.predictor.*.storageUri", _STORED),
                mounts("spec.explainer.*.storageUri", _STORED),
                *container_fields("spec.predictor.*"),
                *container_fields("spec.explainer.*"),
                *pod_fields("spec.predictor"),
                *pod_fields("spec.predictor.workerSpec"),
                *pod_fields("spec.transformer"),
                *pod_fields("spec.explainer"),
            ),
        ),
        KnownKind(
            _GROUP,
            "TrainedModel",
            relations=(
                targets("spec.inferenceService", ByName((_INFERENCE,))),
                mounts("spec.model.storageUri", _STORED),
            ),
        ),
        KnownKind(
            _GROUP,
            "InferenceGraph",
            relations=(
                routes_to("spec.nodes.*.steps[]", ByName((_INFERENCE,), name="serviceName"), note="weight"),
                routes_to("spec.nodes.*.steps[].serviceUrl", ByName((SERVICE,), form=NameForm.HOST)),
                mounts("spec.serviceAccountName", A_SERVICE_ACCOUNT),
            ),
        ),
        KnownKind(_GROUP, "ServingRuntime", relations=(*volume_fields("spec"), *container_fields("spec.containers[]"))),
    ),
    (
        KnownFinalizer(
            ("inferenceservice.finalizers",),
            "KServe controller",
            "deletes what belongs to the service outside its ownership",
            "TrainedModels of this service, and whatever else that controller made outside this cluster.",
            ("kserve-controller-manager", "kserve-controller"),
            ("kserve", "kubeflow", "redhat-ods-applications", "opendatahub"),
            (("control-plane", "kserve-controller-manager"),),
            ("kserve-controller-manager-leader-lock",),
        ),
        KnownFinalizer(
            ("trainedmodel.finalizer",),
            "KServe controller",
            "takes the model out of its server's configuration",
            "the model's entry in the configuration of its server, which continues to serve it.",
            ("kserve-controller-manager", "kserve-controller"),
            ("kserve", "kubeflow"),
            (("control-plane", "kserve-controller-manager"),),
            ("kserve-controller-manager-leader-lock",),
        ),
        KnownFinalizer(
            ("localmodel.kserve.io/finalizer",),
            "KServe local model controller",
            "deletes the copies of the model on the nodes",
            "copies of the model on the nodes' disks.",
            ("kserve-localmodel-controller-manager",),
            ("kserve",),
            leases=("kserve-local-model-manager-leader-lock",),
        ),
    ),
    defined=True,
)
