"""The names of all causes. Scripts and tests rely on them: they are added, never changed.

Sorted by family. `NOTES` are those that are worth saying and hold nothing up; `UNCERTAIN` those that only say that too
little could be read.
"""

import enum
from typing import Self

NOTE = True
"""Marks a cause that is worth saying and holds nothing up."""


class CauseCode(enum.StrEnum):
    """Why something does not go away."""

    is_note: bool

    def __new__(cls, code: str, is_note: bool = False) -> Self:
        """`is_note`: see `NOTES`."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.is_note = is_note
        return member

    # finalizers
    FINALIZER = "finalizer"
    """A step: it waits for a finalizer to be removed."""
    FINALIZER_KEEPER = "finalizer-keeper"
    """A step: who would have to remove it."""
    FINALIZER_CONTROLLER_DEAD = "finalizer-controller-dead"
    """The controller that would remove it is known, and does not run."""
    FINALIZER_CONTROLLER_ERRORING = "finalizer-controller-erroring"
    """It runs, tries, and says on the object or in an Event why it fails."""
    FINALIZER_CONTROLLER_FORBIDDEN = "finalizer-controller-forbidden"
    """It runs and tries, and the API refuses it: it lacks a permission."""
    FINALIZER_CONTROLLER_MISSING = "finalizer-controller-missing"
    """It is known who that would be, and nothing of the kind is to be found in the cluster."""
    FINALIZER_CONTROLLER_SILENT = "finalizer-controller-silent"
    """It runs, says nothing, and has not let go for a long time."""
    FINALIZER_CONTROLLER_UNCLEAR = "finalizer-controller-unclear"
    """The responsible controller is known, but whether it runs could not be read."""
    FINALIZER_CONTROLLER_WORKING = "finalizer-controller-working", NOTE
    """It runs, and has not had much time yet. A note."""
    FINALIZER_TEARDOWN_UNFINISHED = "finalizer-teardown-unfinished"
    """It is our own: a `pilotage delete` holds the object until its parts are gone, and has not come to its end."""
    FINALIZER_UNCLAIMED = "finalizer-unclaimed"
    """No controller in the cluster was found that would ever remove it."""

    # owners
    FOREGROUND = "foreground"
    """A step: a foreground deletion waits for a dependent that blocks it."""
    FOREGROUND_DEPENDENT_NOT_DELETED = "foreground-dependent-not-deleted"
    """The dependent that blocks is not even being deleted: the collector's own delete was refused, or is to come."""
    FOREGROUND_LOST = "foreground-lost"
    """No dependent blocks it any more, and the garbage collector does not finish it."""
    FOREGROUND_WORKING = "foreground-working", NOTE
    """The garbage collector has not had much time yet. A note."""
    ORPHAN_PENDING = "orphan-pending"
    """The garbage collector has not yet taken its references off the dependents that are to stay."""
    OWNER_CYCLE = "owner-cycle", NOTE
    """It owns itself through a cycle: the garbage collector never collects it. A note."""
    OWNER_GONE = "owner-gone", NOTE
    """Its only owners are gone: the garbage collector deletes it, or has begun to. A note."""
    OWNER_IN_OTHER_NAMESPACE = "owner-in-other-namespace", NOTE
    """Its owner is in another namespace, which counts as gone. A note."""
    OWNER_KEEPS = "owner-keeps", NOTE
    """One owner is gone or going, another one lives: it stays. A note."""
    OWNER_NAMESPACED = "owner-namespaced"
    """It has no namespace, but its owner has: the garbage collector never collects it."""
    OWNER_UNREADABLE = "owner-unreadable"
    """The kind of its owner is not served, or not readable: the garbage collector cannot decide, and leaves it."""
    OWNER_WRONG_UID = "owner-wrong-uid", NOTE
    """An object of its owner's name is there, with another uid: the owner counts as gone. A note."""

    # namespaces
    NAMESPACE_CONTENT = "namespace-content"
    """A step: objects in the namespace have not gone yet."""
    NAMESPACE_CONTENT_FAILURE = "namespace-content-failure"
    """The namespace controller's own deletes fail, in its own words."""
    NAMESPACE_CONTENT_NOT_DELETED = "namespace-content-not-deleted"
    """Objects in it are not even being deleted, and no pod is the reason."""
    NAMESPACE_DISCOVERY_FAILURE = "namespace-discovery-failure"
    """Some API does not answer, so that no namespace can be proven empty."""
    NAMESPACE_EMPTY = "namespace-empty", NOTE
    """Nothing is left in it: the namespace controller looks again on its own back-off. A note."""
    NAMESPACE_GROUP_VERSION_FAILURE = "namespace-group-version-failure"
    """Discovery lists an API version that cannot be parsed."""
    NAMESPACE_OPERATOR_INSIDE = "namespace-operator-inside"
    """The controller of finalized objects lived in the same namespace, and went first."""
    NAMESPACE_PODS_FIRST = "namespace-pods-first"
    """A step: pods are left, and until they are gone nothing else is deleted (Kubernetes 1.33 and up)."""
    NAMESPACE_TERMINATING = "namespace-terminating", NOTE
    """The namespace it is in is being deleted, and it is not: it is to come. A note."""
    NAMESPACE_WORKING = "namespace-working", NOTE
    """The namespace controller has not had much time yet. A note."""

    # crds
    CRD_INSTANCES = "crd-instances"
    """A step: a CustomResourceDefinition waits for its instances to go."""
    CRD_INSTANCES_NOT_DELETED = "crd-instances-not-deleted"
    """Its instances are not even being deleted."""
    CRD_TERMINATING = "crd-terminating", NOTE
    """Its CustomResourceDefinition is being deleted, and all instances with it. A note."""
    CRD_WORKING = "crd-working", NOTE
    """No instance is left, or there has not been much time yet. A note."""

    # recreation
    CHANGED_WHILE_TERMINATING = "changed-while-terminating", NOTE
    """A client applied it again while it is being deleted: that change goes with it. A note."""
    RECREATED = "recreated", NOTE
    """Another object has its name by now; the one that was meant is gone. A note."""

    # what stands behind a Service (webhooks and aggregated APIs)
    SERVICE_MISSING = "service-missing"
    """The Service that is to answer does not exist."""
    SERVICE_WITHOUT_ENDPOINTS = "service-without-endpoints"
    """It exists, and no endpoint of it is ready."""
    WORKLOAD_NOT_RUNNING = "workload-not-running"
    """The workload behind it has no replica that is available."""

    # webhooks
    POLICY_DENIES_DELETE = "policy-denies-delete"
    """A ValidatingAdmissionPolicy refuses the delete."""
    POLICY_DENIES_UPDATE = "policy-denies-update"
    """It refuses the removal of the finalizer."""
    VALIDATION_REJECTS_UPDATE = "validation-rejects-update"
    """The object is not valid (any more) by its own schema, so that its finalizer cannot be removed."""
    WEBHOOK_CERTIFICATE_WRONG = "webhook-certificate-wrong"
    """The API server does not trust the webhook's certificate."""
    WEBHOOK_DENIES_DELETE = "webhook-denies-delete"
    """A webhook answers, and says no to the delete."""
    WEBHOOK_DENIES_UPDATE = "webhook-denies-update"
    """It says no to the removal of the finalizer."""
    WEBHOOK_ERRS = "webhook-errs"
    """It answers with an error."""
    WEBHOOK_FAILS_ON_DELETE = "webhook-fails-on-delete"
    """A step: a webhook that cannot be asked makes every delete fail."""
    WEBHOOK_FAILS_ON_UPDATE = "webhook-fails-on-update"
    """A step: it makes every update fail, the removal of a finalizer too."""
    WEBHOOK_TIMES_OUT = "webhook-times-out"
    """It does not answer in time."""
    WEBHOOK_UNREACHABLE = "webhook-unreachable"
    """Nothing listens where it should be."""

    # apiservices
    APISERVICE_DEAD = "apiservice-dead"
    """An aggregated API does not answer: no namespace can be proven empty."""

    # storage
    POD_USES_CLAIM = "pod-uses-claim"
    """A pod that is not being deleted mounts the claim."""
    PV_ATTACHED = "pv-attached"
    """A step: a volume is attached to a node, and cannot be deleted before it is not."""
    PV_BOUND = "pv-bound"
    """A volume is deleted while its claim still holds it."""
    PV_RETAINED = "pv-retained", NOTE
    """A volume without a claim stays by intent. A note."""
    PVC_IN_USE = "pvc-in-use"
    """A step: a claim waits for the pods that mount it."""
    PVC_KEPT_BY_STATEFULSET = "pvc-kept-by-statefulset", NOTE
    """A claim that outlives its StatefulSet. A note."""
    VOLUME_ATTACHED_TO_LOST_NODE = "volume-attached-to-lost-node"
    """A step: an attachment waits for a node that is lost."""

    # pods
    NODE_GONE = "node-gone"
    """The Node object of a pod or an attachment does not exist any more."""
    NODE_LOST = "node-lost"
    """Its kubelet has stopped reporting."""
    NODE_NOT_READY = "node-not-ready"
    """Its kubelet reports that it is not well."""
    POD_CANNOT_BE_KILLED = "pod-cannot-be-killed"
    """The kubelet says that it cannot stop the containers."""
    POD_CONFIRMING = "pod-confirming", NOTE
    """Its grace has just ended. A note."""
    POD_IN_GRACE = "pod-in-grace", NOTE
    """It still has time. A note."""
    POD_ON_LOST_NODE = "pod-on-lost-node"
    """A step: it waits for a kubelet that does not answer."""
    POD_OVERDUE = "pod-overdue"
    """Its grace is over, its node is there, and the kubelet has not confirmed its end."""
    POD_PRESTOP_FAILS = "pod-prestop-fails"
    """The kubelet says that its preStop hook fails."""
    POD_STATIC = "pod-static", NOTE
    """It mirrors a static pod, which the kubelet keeps. A note."""
    POD_VOLUME_STUCK = "pod-volume-stuck"
    """The kubelet says that it cannot unmount a volume."""

    # services
    ENDPOINTSLICE_WITHOUT_SERVICE = "endpointslice-without-service", NOTE
    """A slice whose Service is gone. A note."""
    ENDPOINTSLICES_STAY = "endpointslices-stay", NOTE
    """Slices made by hand, which outlive their Service. A note."""
    LOAD_BALANCER_CONTROLLER_DEAD = "load-balancer-controller-dead"
    """The cloud controller is known, and does not run."""
    LOAD_BALANCER_CONTROLLER_MISSING = "load-balancer-controller-missing"
    """No cloud controller is to be found."""
    LOAD_BALANCER_CONTROLLER_SILENT = "load-balancer-controller-silent"
    """It runs, and says nothing."""
    LOAD_BALANCER_FAILS = "load-balancer-fails"
    """It says why it cannot give the load balancer back."""
    LOAD_BALANCER_NOT_RELEASED = "load-balancer-not-released"
    """A step: a Service waits for its load balancer to be given back."""

    # usages
    USAGE_LABEL_LEFT = "usage-label-left", NOTE
    """It is marked as in use, and no usage says so. A note."""
    USAGE_OF_WRONG_SCOPE = "usage-of-wrong-scope"
    """A ClusterUsage about an object in a namespace, which it never finds."""
    USAGE_PROTECTS = "usage-protects"
    """A usage has the delete refused."""
    USAGE_WAITS_FOR_USER = "usage-waits-for-user"
    """A usage that is being deleted waits for what uses."""
    USAGE_WEBHOOK_FAILS = "usage-webhook-fails"
    """A step: the webhook that keeps usages does not answer."""

    # fighting
    AUTOSCALER_FIGHTS = "autoscaler-fights", NOTE
    """An autoscaler has just scaled it up again. A note: it fights a scale-down, not a delete."""
    AUTOSCALER_SCALES = "autoscaler-scales", NOTE
    """An autoscaler would. A note."""
    GITOPS_MANAGED = "gitops-managed", NOTE
    """A GitOps tool or Helm made it. A note."""
    GITOPS_REAPPLIES = "gitops-reapplies"
    """It is seen to apply the object again on its own."""
    MADE_BY_CONTROLLER = "made-by-controller", NOTE
    """A controller makes it again when it is deleted. A note."""

    # permissions
    MAY_NOT_DELETE = "may-not-delete"
    """We may not delete it."""
    MAY_NOT_LIST = "may-not-list"
    """We may not see what could hold it."""
    MAY_NOT_PATCH = "may-not-patch", NOTE
    """We could not remove a finalizer of it. A note: whoever keeps it can."""

    # guards
    BUDGET_REFUSES_EVICTION = "budget-refuses-eviction", NOTE
    """A disruption budget, which a delete ignores. A note."""

    # our own kinds, while they are deleted
    HOST_NOT_EMPTY = "host-not-empty"
    """A step: a Host waits for a process on it to go."""
    MODEL_FILES_STAY = "model-files-stay"
    """The operator cannot remove the files of a Model."""
    MODEL_IN_USE = "model-in-use"
    """An endpoint uses the Model."""
    PROCESS_DRAINS = "process-drains", NOTE
    """A server ends its requests before it stops. A note."""
    PROCESS_NOT_STOPPED = "process-not-stopped"
    """The agent says why it cannot stop or remove a server."""
    TEARDOWN = "teardown"
    """A step: an endpoint waits for its Teardown."""
    TEARDOWN_NOT_BEGUN = "teardown-not-begun"
    """The operator cannot create the Teardown of an endpoint, and says why."""
    TEARDOWN_REFUSED = "teardown-refused"
    """The operator does not act on a Teardown, and says why."""
    TEARDOWN_WAITS = "teardown-waits"
    """A Teardown has waited for a part for longer than it should; or a step, where the part tells why."""
    TEARDOWN_WORKING = "teardown-working", NOTE
    """A Teardown waits for something that takes its time. A note."""

    # our own kinds, while they do not get ready
    ENDPOINT_MISSING = "endpoint-missing"
    """The endpoint of an Experiment does not exist."""
    ENDPOINT_NOT_READY = "endpoint-not-ready"
    """An endpoint does not serve as it should, and says why; or a step to what holds it up."""
    ENDPOINT_STARTING = "endpoint-starting", NOTE
    """An endpoint, a part of it or an Experiment is starting, and nothing is wrong so far. A note."""
    EXPERIMENT_REFUSED = "experiment-refused"
    """An Experiment cannot be taken up as it is, and its status says why."""
    EXPERIMENT_WAITS = "experiment-waits"
    """An Experiment does not go on, and its status says for what it waits; or a step to its endpoint."""
    HOST_LOST = "host-lost"
    """The agent of a Host does not run."""
    MODEL_MISSING = "model-missing"
    """The Model of an endpoint does not exist."""
    MODEL_UNAVAILABLE = "model-unavailable"
    """The weights of a Model cannot be fetched."""
    OPERATOR_NOT_RUNNING = "operator-not-running"
    """No operator acts on the object."""
    POD_NOT_READY = "pod-not-ready"
    """A pod of an endpoint cannot be scheduled, cannot get its image, or crashes."""
    PROCESS_NOT_READY = "process-not-ready"
    """A server on a Host does not run, and its agent says why; or a step to its Host."""
    ROLLOUT_WAITS = "rollout-waits"
    """A rollout is held, paused until somebody acts, was aborted, or has not begun; its status says why."""
    ROUTE_NOT_PROGRAMMED = "route-not-programmed"
    """The route of an endpoint is refused, or not taken up by whoever should program it."""

    # jobs
    JOB_MADE_BY_CRONJOB = "job-made-by-cronjob", NOTE
    """A CronJob makes the next one. A note."""
    JOB_POD_ORPHANED = "job-pod-orphaned", NOTE
    """A pod that outlived its Job. A note."""
    JOB_PODS_NOT_OWNED = "job-pods-not-owned", NOTE
    """Pods that will outlive their Job. A note."""
    JOB_TRACKING_LEFT = "job-tracking-left"
    """A pod is held by the finalizer of a Job that is gone."""

    # the walk itself
    CYCLE = "cycle"
    """It waits, over others, for itself."""
    TOO_DEEP = "too-deep"
    """The chain goes on beyond what is shown."""
    UNREADABLE = "unreadable"
    """The objects that would tell could not be read."""


NOTES: frozenset[str] = frozenset(code for code in CauseCode if code.is_note)
"""Root causes of these codes hold nothing up: they alone make no verdict of stuck."""

UNCERTAIN: frozenset[str] = frozenset({CauseCode.MAY_NOT_LIST, CauseCode.TOO_DEEP, CauseCode.UNREADABLE})
"""Root causes of these codes say that too little was seen: they alone make the verdict unknown."""

UNREADY: frozenset[str] = frozenset(
    {
        CauseCode.ENDPOINT_NOT_READY,
        CauseCode.EXPERIMENT_REFUSED,
        CauseCode.EXPERIMENT_WAITS,
        CauseCode.HOST_LOST,
        CauseCode.MODEL_UNAVAILABLE,
        CauseCode.OPERATOR_NOT_RUNNING,
        CauseCode.PROCESS_NOT_READY,
        CauseCode.ROLLOUT_WAITS,
    }
)
"""Causes of these codes, at the top of a chain, keep an object of ours from getting ready, not from being deleted."""

UNFINISHED: frozenset[str] = frozenset({CauseCode.TEARDOWN_REFUSED, CauseCode.TEARDOWN_WAITS})
"""Causes of these codes, at the top of a chain, keep a Teardown from its end."""

STAYS: frozenset[str] = frozenset({CauseCode.OWNER_NAMESPACED, CauseCode.OWNER_UNREADABLE})
"""Root causes of these codes keep an object from being collected, but not from being deleted."""
