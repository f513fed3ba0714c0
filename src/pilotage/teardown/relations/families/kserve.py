"""KServe: inference services, their runtimes and where their models are."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import SERVICE, SERVICE_ACCOUNT, VOLUME_CLAIM
from pilotage.teardown.relations.families.pods import container_rows, pod_rows, volume_rows
from pilotage.teardown.relations.rows import Form, Kind, Named, Relation, Row

_GROUP = "serving.kserve.io"
_INFERENCE = Named((Kind(_GROUP, "InferenceService"),))
_RUNTIME = Named((Kind(_GROUP, "ServingRuntime"), Kind(_GROUP, "ClusterServingRuntime", namespaced=False)))
_STORED = Named((VOLUME_CLAIM,), form=Form.VOLUME_URI)

ROWS = (
    Row(_GROUP, "InferenceService", Relation.NEEDS, "spec.predictor.model.runtime", _RUNTIME),
    # Under the predictor stands the model, or the name of a framework with the same fields.
    Row(_GROUP, "InferenceService", Relation.MOUNTS, "spec.predictor.*.storageUri", _STORED),
    Row(_GROUP, "InferenceService", Relation.MOUNTS, "spec.explainer.*.storageUri", _STORED),
    *container_rows(_GROUP, "InferenceService", "spec.predictor.*"),
    *container_rows(_GROUP, "InferenceService", "spec.explainer.*"),
    *(
        entry
        for part in ("predictor", "predictor.workerSpec", "transformer", "explainer")
        for entry in pod_rows(_GROUP, "InferenceService", f"spec.{part}")
    ),
    Row(_GROUP, "TrainedModel", Relation.TARGETS, "spec.inferenceService", _INFERENCE),
    Row(_GROUP, "TrainedModel", Relation.MOUNTS, "spec.model.storageUri", _STORED),
    Row(
        _GROUP,
        "InferenceGraph",
        Relation.ROUTES_TO,
        "spec.nodes.*.steps[]",
        Named(_INFERENCE.kinds, name="serviceName"),
        note="weight",
    ),
    Row(
        _GROUP,
        "InferenceGraph",
        Relation.ROUTES_TO,
        "spec.nodes.*.steps[].serviceUrl",
        Named((SERVICE,), form=Form.HOST),
    ),
    Row(_GROUP, "InferenceGraph", Relation.MOUNTS, "spec.serviceAccountName", Named((SERVICE_ACCOUNT,))),
    *volume_rows(_GROUP, "ServingRuntime", "spec"),
    *container_rows(_GROUP, "ServingRuntime", "spec.containers[]"),
)
