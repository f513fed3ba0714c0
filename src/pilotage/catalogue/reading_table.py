"""Generated from the ecosystems by `make manifests`: do not edit. `reading` has the meaning of each table.

A line has a group and kinds of it.
"""

IN_FULL = """
core PersistentVolume+ PersistentVolumeClaim+ PodTemplate ReplicationController
core Service ServiceAccount
admissionregistration.k8s.io MutatingAdmissionPolicyBinding MutatingWebhookConfiguration+
admissionregistration.k8s.io ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration+
apiextensions.crossplane.io Composition Usage
apiregistration.k8s.io APIService+
apps DaemonSet Deployment StatefulSet
argoproj.io AnalysisRun AnalysisTemplate ClusterAnalysisTemplate Experiment Rollout+
autoscaling HorizontalPodAutoscaler
autoscaling.internal.knative.dev PodAutoscaler
autoscaling.k8s.io VerticalPodAutoscaler
batch CronJob Job
cert-manager.io Certificate CertificateRequest Issuer
gateway.networking.k8s.io BackendTLSPolicy GRPCRoute+ Gateway+ GatewayClass+ HTTPRoute+ ReferenceGrant
gateway.networking.k8s.io TCPRoute+ TLSRoute+ UDPRoute+
keda.sh ScaledJob ScaledObject TriggerAuthentication
monitoring.coreos.com PodMonitor+ ServiceMonitor+
networking.istio.io DestinationRule+ Gateway+ VirtualService+
networking.k8s.io Ingress IngressClass+ NetworkPolicy
pilotage.dev ClusterUsage+ Experiment GatewayRoute HostProcess Model ServingEndpoint Usage+
pkg.crossplane.io Function FunctionRevision Provider ProviderRevision
policy PodDisruptionBudget
projectcontour.io ExtensionService HTTPProxy+ TLSCertificateDelegation
protection.crossplane.io ClusterUsage Usage+
rbac.authorization.k8s.io ClusterRoleBinding+ RoleBinding+
serving.knative.dev Configuration DomainMapping+ Route Service
serving.kserve.io InferenceGraph+ InferenceService ServingRuntime TrainedModel
snapshot.storage.k8s.io VolumeSnapshot VolumeSnapshotContent+
storage.k8s.io VolumeAttachment
"""

FOR_FINALIZERS = """
admissionregistration.k8s.io MutatingWebhookConfiguration ValidatingWebhookConfiguration
coordination.k8s.io Lease
"""

FOR_HAZARDS = """
admissionregistration.k8s.io ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
"""

FOR_LEAKS = """
discovery.k8s.io EndpointSlice
"""

ONLY_IF_ASKED = """
core Event
coordination.k8s.io Lease
events.k8s.io Event
"""

COMPUTED = """
core ComponentStatus
"""

MADE = """
core Endpoints PersistentVolumeClaim Pod
apps ControllerRevision ReplicaSet
batch Job
discovery.k8s.io EndpointSlice
"""

CATEGORIES = """
claim
composite+
managed+
"""

OF_ANY_GROUP = """
ProviderConfigUsage
"""
