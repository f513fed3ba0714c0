"""Knative Serving: where traffic goes, and what revisions mount."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import ANYTHING
from pilotage.teardown.relations.families.pods import pod_rows
from pilotage.teardown.relations.rows import Kind, Named, Reference, Relation, Row

_GROUP = "serving.knative.dev"
_CONFIGURATION = Named((Kind(_GROUP, "Configuration"),), name="configurationName")
_REVISION = Named((Kind(_GROUP, "Revision"),), name="revisionName")

ROWS = (
    Row(_GROUP, "Service", Relation.ROUTES_TO, "spec.traffic[]", _REVISION, note="percent"),
    *pod_rows(_GROUP, "Service", "spec.template.spec"),
    Row(_GROUP, "Route", Relation.ROUTES_TO, "spec.traffic[]", _REVISION, note="percent"),
    Row(_GROUP, "Route", Relation.ROUTES_TO, "spec.traffic[]", _CONFIGURATION, note="percent"),
    Row(_GROUP, "Route", Relation.ROUTES_TO, "status.traffic[]", _REVISION, note="percent"),
    *pod_rows(_GROUP, "Configuration", "spec.template.spec"),
    *pod_rows(_GROUP, "Revision", "spec", demand=False),
    Row(_GROUP, "DomainMapping", Relation.ROUTES_TO, "spec.ref", Reference(namespace="namespace")),
    Row("autoscaling.internal.knative.dev", "PodAutoscaler", Relation.SCALES, "spec.scaleTargetRef", ANYTHING),
)
