"""Workloads of Kubernetes itself, and the kinds that scale them and guard their pods."""

from pilotage.catalogue.kind import Ecosystem, Guard, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByName, NameForm, claims, needs, protects, scales
from pilotage.catalogue.shared import (
    A_POD_BY_LABELS,
    A_SERVICE,
    ANYTHING,
    VOLUME_CLAIM,
    workload,
    workload_fields,
)
from pilotage.kube import GroupKind

_POD = GroupKind("", "Pod")
_REPLICA_SET = GroupKind("apps", "ReplicaSet")
_CONTROLLER_REVISION = GroupKind("apps", "ControllerRevision")
_TEMPLATE = workload_fields("spec.template.spec")

ECOSYSTEM = Ecosystem(
    "Workloads",
    (
        workload(
            "apps",
            "Deployment",
            short_names=("deploy",),
            relations=_TEMPLATE,
            makes=(_REPLICA_SET,),
            serves=True,
            scaled=True,
        ),
        workload(
            "apps",
            "StatefulSet",
            short_names=("sts",),
            relations=(
                *_TEMPLATE,
                needs("spec.serviceName", A_SERVICE),
                claims("spec.volumeClaimTemplates[].metadata.name", ByName((VOLUME_CLAIM,), form=NameForm.NUMBERED)),
            ),
            makes=(_POD, GroupKind("", "PersistentVolumeClaim"), _CONTROLLER_REVISION),
            serves=True,
            scaled=True,
        ),
        workload(
            "apps",
            "DaemonSet",
            short_names=("ds",),
            relations=_TEMPLATE,
            makes=(_POD, _CONTROLLER_REVISION),
            serves=True,
        ),
        workload(
            "apps", "ReplicaSet", short_names=("rs",), relations=_TEMPLATE, needs_body=False, makes=(_POD,), scaled=True
        ),
        workload("batch", "Job", relations=_TEMPLATE, makes=(_POD,)),
        KnownKind(
            "batch",
            "CronJob",
            short_names=("cj",),
            relations=workload_fields("spec.jobTemplate.spec.template.spec"),
            phase=Phase.QUIESCE,
            pod_labels="spec.jobTemplate.spec.template.metadata.labels",
            makes=(GroupKind("batch", "Job"),),
        ),
        KnownKind(
            "autoscaling",
            "HorizontalPodAutoscaler",
            short_names=("hpa",),
            relations=(scales("spec.scaleTargetRef", ANYTHING),),
            phase=Phase.QUIESCE,
        ),
        KnownKind(
            "autoscaling.k8s.io",
            "VerticalPodAutoscaler",
            relations=(scales("spec.targetRef", ANYTHING),),
            phase=Phase.QUIESCE,
        ),
        KnownKind(
            "policy",
            "PodDisruptionBudget",
            short_names=("pdb",),
            relations=(protects("spec.selector", A_POD_BY_LABELS),),
            guard=Guard(
                disruptions_allowed="status.disruptionsAllowed",
                healthy="status.currentHealthy",
                healthy_wanted="status.desiredHealthy",
                settings=("spec.minAvailable", "spec.maxUnavailable", "spec.unhealthyPodEvictionPolicy"),
            ),
        ),
        KnownKind("scheduling.k8s.io", "PriorityClass", short_names=("pc",)),
    ),
)
