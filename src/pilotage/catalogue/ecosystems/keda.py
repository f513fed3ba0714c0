"""KEDA: scaled objects and jobs, and the credentials of their triggers."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByName, ByReference, TargetKind, When, mounts, scales
from pilotage.catalogue.shared import A_CONFIG_MAP, A_SECRET, pod_fields

_GROUP = "keda.sh"
_AUTHENTICATIONS = (
    mounts(
        "spec.triggers[].authenticationRef",
        ByName((TargetKind(_GROUP, "TriggerAuthentication"),)),
        When("kind", (None, "", "TriggerAuthentication")),
    ),
    mounts(
        "spec.triggers[].authenticationRef",
        ByName((TargetKind(_GROUP, "ClusterTriggerAuthentication", namespaced=False),)),
        When("kind", ("ClusterTriggerAuthentication",)),
    ),
)

ECOSYSTEM = Ecosystem(
    "KEDA",
    (
        KnownKind(
            _GROUP,
            "ScaledObject",
            relations=(
                scales("spec.scaleTargetRef", ByReference(default=TargetKind("apps", "Deployment"))),
                *_AUTHENTICATIONS,
            ),
            phase=Phase.QUIESCE,
        ),
        KnownKind(
            _GROUP,
            "ScaledJob",
            relations=(*_AUTHENTICATIONS, *pod_fields("spec.jobTargetRef.template.spec")),
            phase=Phase.QUIESCE,
        ),
        KnownKind(
            _GROUP,
            "TriggerAuthentication",
            relations=(
                mounts("spec.secretTargetRef[]", A_SECRET),
                mounts("spec.configMapTargetRef[]", A_CONFIG_MAP),
            ),
        ),
    ),
    (
        KnownFinalizer(
            ("finalizer.keda.sh",),
            "KEDA operator",
            "stops its scale loop and restores the replicas, where asked to",
            "the autoscaler it made, until that is collected; replicas are not restored.",
            ("keda-operator",),
            ("keda",),
            (("app", "keda-operator"), ("app.kubernetes.io/name", "keda-operator")),
            ("operator.keda.sh",),
        ),
    ),
    defined=True,
)
