"""What changes the size of workloads."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import ANYTHING
from pilotage.teardown.relations.rows import Relation, Row

ROWS = (
    Row("autoscaling", "HorizontalPodAutoscaler", Relation.SCALES, "spec.scaleTargetRef", ANYTHING),
    Row("autoscaling.k8s.io", "VerticalPodAutoscaler", Relation.SCALES, "spec.targetRef", ANYTHING),
)
