"""KEDA: scaled objects and jobs, and the credentials of their triggers."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SECRET, CONFIG_MAP, DEPLOYMENT
from pilotage.teardown.relations.families.pods import pod_rows
from pilotage.teardown.relations.rows import Kind, Named, Reference, Relation, Row, When

_GROUP = "keda.sh"
_HERE = Named((Kind(_GROUP, "TriggerAuthentication"),))
_CLUSTER_WIDE = Named((Kind(_GROUP, "ClusterTriggerAuthentication", namespaced=False),))
_AUTHENTICATION = "spec.triggers[].authenticationRef"

ROWS = (
    Row(_GROUP, "ScaledObject", Relation.SCALES, "spec.scaleTargetRef", Reference(default=DEPLOYMENT)),
    *(
        row
        for kind in ("ScaledObject", "ScaledJob")
        for row in (
            Row(
                _GROUP, kind, Relation.MOUNTS, _AUTHENTICATION, _HERE, When("kind", (None, "", "TriggerAuthentication"))
            ),
            Row(
                _GROUP,
                kind,
                Relation.MOUNTS,
                _AUTHENTICATION,
                _CLUSTER_WIDE,
                When("kind", ("ClusterTriggerAuthentication",)),
            ),
        )
    ),
    *pod_rows(_GROUP, "ScaledJob", "spec.jobTargetRef.template.spec"),
    Row(_GROUP, "TriggerAuthentication", Relation.MOUNTS, "spec.secretTargetRef[]", A_SECRET),
    Row(_GROUP, "TriggerAuthentication", Relation.MOUNTS, "spec.configMapTargetRef[]", Named((CONFIG_MAP,))),
)
