"""References in realistic manifests of each family. One edge per line; `!` marks a target that does not exist."""

from __future__ import annotations

import textwrap

import pytest

from pilotage.catalogue.registry import ecosystems
from tests.teardown.relations.worlds import edges_of

CASES: dict[str, tuple[str, str]] = {}


def case(name: str, manifests: str, want: str) -> None:
    assert name not in CASES
    CASES[name] = (textwrap.dedent(manifests), textwrap.dedent(want))


case(
    "Core: a pod and all that it needs",
    """
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      nodeName: gpu-1
      serviceAccountName: web
      priorityClassName: high
      imagePullSecrets: [{name: pull}]
      volumes:
      - {name: a, configMap: {name: conf}}
      - {name: b, secret: {secretName: keys}}
      - {name: c, persistentVolumeClaim: {claimName: data}}
      - name: d
        projected:
          sources:
          - serviceAccountToken: {path: token}
          - configMap: {name: more}
          - secret: {name: extra}
      - {name: e, csi: {driver: x, nodePublishSecretRef: {name: csi}}}
      - {name: f, configMap: {name: not-needed, optional: true}}
      initContainers:
      - {name: init, envFrom: [{secretRef: {name: boot}}]}
      containers:
      - name: web
        envFrom: [{configMapRef: {name: conf}}]
        env:
        - {name: A, value: b}
        - {name: K, valueFrom: {secretKeyRef: {name: keys, key: k}}}
    ---
    {apiVersion: v1, kind: ConfigMap, metadata: {name: conf}}
    """,
    """
    pod/web mounts configmap/conf @ spec.containers[0].envFrom[0].configMapRef
    pod/web mounts configmap/conf @ spec.volumes[0].configMap
    pod/web mounts configmap/more ! @ spec.volumes[3].projected.sources[1].configMap
    pod/web mounts persistentvolumeclaim/data ! @ spec.volumes[2].persistentVolumeClaim
    pod/web mounts priorityclass/high ! @ spec.priorityClassName
    pod/web mounts secret/boot ! @ spec.initContainers[0].envFrom[0].secretRef
    pod/web mounts secret/csi ! @ spec.volumes[4].csi.nodePublishSecretRef
    pod/web mounts secret/extra ! @ spec.volumes[3].projected.sources[2].secret
    pod/web mounts secret/keys ! @ spec.containers[0].env[1].valueFrom.secretKeyRef
    pod/web mounts secret/keys ! @ spec.volumes[1].secret
    pod/web mounts secret/pull ! @ spec.imagePullSecrets[0]
    pod/web mounts serviceaccount/web ! @ spec.serviceAccountName
    pod/web needs node/gpu-1 ! @ spec.nodeName
    """,
)
case(
    "Core: a Service selects pods and the workloads that would make them, of its namespace alone",
    """
    {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web, tier: front}}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: by-hand}, spec: {selector: {}}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: web-1, labels: {app: web, tier: front, x: y}}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: other, labels: {app: web}}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: far, namespace: elsewhere, labels: {app: web, tier: front}}}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {replicas: 0, template: {metadata: {labels: {app: web, tier: front}}}}
    ---
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: nightly}
    spec: {jobTemplate: {spec: {template: {metadata: {labels: {app: web, tier: front}}}}}}
    """,
    """
    service/web selects cronjob/nightly @ spec.selector
    service/web selects deployment/web @ spec.selector
    service/web selects pod/web-1 @ spec.selector
    """,
)
case(
    "Core: slices by label, Endpoints by name, token Secrets by annotation",
    """
    {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {}}
    ---
    apiVersion: discovery.k8s.io/v1
    kind: EndpointSlice
    metadata: {name: web-abc, labels: {kubernetes.io/service-name: web}}
    endpoints: [{targetRef: {kind: Pod, name: web-1, namespace: shop}}]
    ---
    {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: x, labels: {kubernetes.io/service-name: y}}}
    ---
    {apiVersion: v1, kind: Endpoints, metadata: {name: web}}
    ---
    {apiVersion: v1, kind: Secret, metadata: {name: token, annotations: {kubernetes.io/service-account.name: robot}}}
    ---
    {apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}, secrets: [{name: token}]}
    """,
    """
    endpoints/web targets service/web @ metadata.name
    endpointslice/web-abc routes to pod/web-1 ! @ endpoints[0].targetRef
    endpointslice/web-abc targets service/web @ metadata.labels[kubernetes.io/service-name]
    endpointslice/x targets service/y ! @ metadata.labels[kubernetes.io/service-name]
    secret/token targets serviceaccount/robot @ metadata.annotations[kubernetes.io/service-account.name]
    serviceaccount/robot mounts secret/token @ secrets[0]
    """,
)
case(
    "Core: a claim and its volume point one way, whoever says so",
    """
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec: {volumeName: pv-1, storageClassName: fast}
    ---
    {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: early}, spec: {}}
    ---
    {apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-1}, spec: {claimRef: {name: data, namespace: shop}}}
    ---
    {apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-2}, spec: {claimRef: {name: early, namespace: shop}}}
    ---
    {apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-3}, spec: {claimRef: {name: gone, namespace: shop}}}
    ---
    {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}
    """,
    """
    persistentvolume/pv-3 claims persistentvolumeclaim/gone ! @ spec.claimRef
    persistentvolumeclaim/data claims persistentvolume/pv-1 @ spec.volumeName
    persistentvolumeclaim/data needs storageclass/fast @ spec.storageClassName
    persistentvolumeclaim/early claims persistentvolume/pv-2 @ spec.claimRef of persistentvolume/pv-2
    """,
)
case(
    "Workloads: a StatefulSet claims its volumes by name",
    """
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      serviceName: db
      volumeClaimTemplates: [{metadata: {name: data}}]
      template: {spec: {containers: [{name: db, env: [{name: P, valueFrom: {secretKeyRef: {name: pw, key: p}}}]}]}}
    ---
    {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0}}
    ---
    {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-11}}
    ---
    {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-x}}
    ---
    {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db2-0}}
    """,
    """
    statefulset/db claims persistentvolumeclaim/data-db-0 @ spec.volumeClaimTemplates[0].metadata.name
    statefulset/db claims persistentvolumeclaim/data-db-11 @ spec.volumeClaimTemplates[0].metadata.name
    statefulset/db mounts secret/pw ! @ spec.template.spec.containers[0].env[0].valueFrom.secretKeyRef
    statefulset/db needs service/db ! @ spec.serviceName
    """,
)
case(
    "Workloads: a CronJob mounts what its pods will",
    """
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: backup}
    spec: {jobTemplate: {spec: {template: {spec: {volumes: [{configMap: {name: script}}]}}}}}
    ---
    {apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {spec: {serviceAccountName: robot}}}}
    """,
    """
    cronjob/backup mounts configmap/script ! @ spec.jobTemplate.spec.template.spec.volumes[0].configMap
    job/once mounts serviceaccount/robot ! @ spec.template.spec.serviceAccountName
    """,
)
case(
    "Workloads: what is scaled may be of any kind",
    """
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: web}
    spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
    ---
    apiVersion: autoscaling.k8s.io/v1
    kind: VerticalPodAutoscaler
    metadata: {name: web}
    spec: {targetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}
    ---
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}
    """,
    """
    horizontalpodautoscaler/web scales deployment/web @ spec.scaleTargetRef
    verticalpodautoscaler/web scales rollout/web ! @ spec.targetRef
    """,
)
case(
    "Networking: an Ingress with all it can name, and a policy for all pods",
    """
    apiVersion: networking.k8s.io/v1
    kind: Ingress
    metadata: {name: web}
    spec:
      ingressClassName: nginx
      defaultBackend: {service: {name: fallback, port: {number: 80}}}
      tls: [{hosts: [a], secretName: tls}]
      rules:
      - http:
          paths:
          - {backend: {service: {name: web}}}
          - {backend: {resource: {apiGroup: x.io, kind: Bucket, name: b}}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: web}}
    ---
    {apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}}
    ---
    {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny}, spec: {podSelector: {}}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: unlabelled}}
    """,
    """
    ingress/web mounts secret/tls ! @ spec.tls[0].secretName
    ingress/web needs ingressclass/nginx @ spec.ingressClassName
    ingress/web routes to bucket/b ! @ spec.rules[0].http.paths[1].backend.resource
    ingress/web routes to service/fallback ! @ spec.defaultBackend.service
    ingress/web routes to service/web @ spec.rules[0].http.paths[0].backend.service
    networkpolicy/deny selects pod/unlabelled @ spec.podSelector
    """,
)
case(
    "Workloads: a budget protects by expressions, and one without a selector protects nothing",
    """
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: web}
    spec: {selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: NotIn, values: [test]}]}}
    ---
    {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: none}, spec: {}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: b, labels: {app: web, tier: test}}}
    """,
    "poddisruptionbudget/web protects pod/a @ spec.selector\n",
)
case(
    "Control plane: roles by kind, accounts in their namespaces, no users",
    """
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: a}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
    subjects: [{kind: ServiceAccount, name: robot, namespace: ci}, {kind: User, name: jane}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: b}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
    subjects: [{kind: ServiceAccount, name: robot, namespace: ci}]
    ---
    {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view}}
    """,
    """
    clusterrolebinding/b targets clusterrole/view @ roleRef
    clusterrolebinding/b targets serviceaccount/robot -n ci ! @ subjects[0]
    rolebinding/a targets clusterrole/view @ roleRef
    rolebinding/a targets serviceaccount/robot -n ci ! @ subjects[0]
    """,
)
case(
    "Control plane: a webhook behind a Service, and one behind a URL",
    """
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfiguration
    metadata: {name: guard}
    webhooks:
    - {name: a, clientConfig: {url: "https://example.com"}}
    - {name: b, clientConfig: {service: {name: guard, namespace: guards}}}
    ---
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: widgets.example.com}
    spec: {conversion: {webhook: {clientConfig: {service: {name: converter, namespace: guards}}}}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: guard, namespace: guards}}
    """,
    """
    customresourcedefinition/widgets.example.com targets service/converter -n guards ! \
@ spec.conversion.webhook.clientConfig.service
    validatingwebhookconfiguration/guard targets service/guard -n guards @ webhooks[1].clientConfig.service
    """,
)
case(
    "Control plane: an aggregated API",
    """
    apiVersion: apiregistration.k8s.io/v1
    kind: APIService
    metadata: {name: v1beta1.metrics.k8s.io}
    spec: {service: {name: metrics-server, namespace: kube-system}}
    """,
    "apiservice/v1beta1.metrics.k8s.io targets service/metrics-server -n kube-system ! @ spec.service\n",
)
case(
    "Storage: attachments and snapshots",
    """
    apiVersion: storage.k8s.io/v1
    kind: VolumeAttachment
    metadata: {name: csi-1}
    spec: {attacher: ebs, nodeName: gpu-1, source: {persistentVolumeName: pv-1}}
    ---
    apiVersion: snapshot.storage.k8s.io/v1
    kind: VolumeSnapshot
    metadata: {name: snap}
    spec: {source: {persistentVolumeClaimName: data}}
    status: {boundVolumeSnapshotContentName: content}
    ---
    apiVersion: snapshot.storage.k8s.io/v1
    kind: VolumeSnapshotContent
    metadata: {name: content}
    spec: {volumeSnapshotRef: {name: snap, namespace: shop}}
    """,
    """
    volumeattachment/csi-1 claims persistentvolume/pv-1 ! @ spec.source.persistentVolumeName
    volumeattachment/csi-1 needs csidriver/ebs ! @ spec.attacher
    volumeattachment/csi-1 needs node/gpu-1 ! @ spec.nodeName
    volumesnapshot/snap claims volumesnapshotcontent/content @ status.boundVolumeSnapshotContentName
    volumesnapshot/snap needs persistentvolumeclaim/data ! @ spec.source.persistentVolumeClaimName
    """,
)
case(
    "Gateway API: a weight of 0 is still an edge, and says so",
    """
    apiVersion: gateway.networking.k8s.io/v1
    kind: HTTPRoute
    metadata: {name: web}
    spec:
      parentRefs: [{name: public, namespace: infra}]
      rules:
      - backendRefs: [{name: blue, port: 80, weight: 100}, {name: green, port: 80, weight: 0}]
        filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shadow, namespace: lab}}}]
    ---
    apiVersion: gateway.networking.k8s.io/v1alpha2
    kind: TCPRoute
    metadata: {name: db}
    spec: {rules: [{backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: db}]}]}
    ---
    apiVersion: gateway.networking.k8s.io/v1
    kind: Gateway
    metadata: {name: public, namespace: infra}
    spec: {gatewayClassName: contour, listeners: [{tls: {certificateRefs: [{name: tls}]}}]}
    ---
    apiVersion: gateway.networking.k8s.io/v1beta1
    kind: ReferenceGrant
    metadata: {name: one, namespace: lab}
    spec: {from: [{namespace: shop}], to: [{group: "", kind: Service, name: shadow}, {group: "", kind: Secret}]}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: green}}
    """,
    """
    gateway/public -n infra mounts secret/tls -n infra ! @ spec.listeners[0].tls.certificateRefs[0]
    gateway/public -n infra needs gatewayclass/contour ! @ spec.gatewayClassName
    httproute/web needs gateway/public -n infra @ spec.parentRefs[0]
    httproute/web routes to service/blue ! @ spec.rules[0].backendRefs[0] (weight 100)
    httproute/web routes to service/green @ spec.rules[0].backendRefs[1] (weight 0)
    httproute/web routes to service/shadow -n lab ! @ spec.rules[0].filters[0].requestMirror.backendRef
    referencegrant/one -n lab targets service/shadow -n lab ! @ spec.to[0]
    tcproute/db routes to serviceimport/db ! @ spec.rules[0].backendRefs[0]
    """,
)
case(
    "Contour: services, includes and a certificate of another namespace",
    """
    apiVersion: projectcontour.io/v1
    kind: HTTPProxy
    metadata: {name: web}
    spec:
      virtualhost: {fqdn: a.example.com, tls: {secretName: certs/wildcard, clientValidation: {caSecret: ca}}}
      includes: [{name: part, namespace: team}]
      routes: [{services: [{name: web, port: 80, weight: 90}, {name: next, port: 80, weight: 10}]}]
    ---
    apiVersion: projectcontour.io/v1
    kind: TLSCertificateDelegation
    metadata: {name: d, namespace: certs}
    spec: {delegations: [{secretName: wildcard, targetNamespaces: ["*"]}]}
    ---
    {apiVersion: v1, kind: Secret, metadata: {name: wildcard, namespace: certs}}
    """,
    """
    httpproxy/web mounts secret/ca ! @ spec.virtualhost.tls.clientValidation.caSecret
    httpproxy/web mounts secret/wildcard -n certs @ spec.virtualhost.tls.secretName
    httpproxy/web routes to httpproxy/part -n team ! @ spec.includes[0]
    httpproxy/web routes to service/next ! @ spec.routes[0].services[1] (weight 10)
    httpproxy/web routes to service/web ! @ spec.routes[0].services[0] (weight 90)
    tlscertificatedelegation/d -n certs targets secret/wildcard -n certs @ spec.delegations[0].secretName
    """,
)
case(
    "KServe: runtimes of either scope, models in claims, graphs",
    """
    apiVersion: serving.kserve.io/v1beta1
    kind: InferenceService
    metadata: {name: chat}
    spec:
      predictor:
        serviceAccountName: puller
        model: {modelFormat: {name: huggingface}, runtime: vllm, storageUri: "pvc://models/llama", env: [
          {name: T, valueFrom: {secretKeyRef: {name: hf, key: token}}}]}
    ---
    apiVersion: serving.kserve.io/v1beta1
    kind: InferenceService
    metadata: {name: old}
    spec: {predictor: {sklearn: {storageUri: "gs://bucket/iris"}}}
    ---
    {apiVersion: serving.kserve.io/v1alpha1, kind: ClusterServingRuntime, metadata: {name: vllm}}
    ---
    apiVersion: serving.kserve.io/v1alpha1
    kind: TrainedModel
    metadata: {name: lora}
    spec: {inferenceService: chat, model: {storageUri: "s3://b/x"}}
    ---
    apiVersion: serving.kserve.io/v1alpha1
    kind: InferenceGraph
    metadata: {name: pipeline}
    spec:
      nodes:
        root: {routerType: Splitter, steps: [{serviceName: chat, weight: 70}, {serviceName: gone, weight: 30}]}
        tail: {steps: [{serviceUrl: "http://scorer.lab.svc.cluster.local/v1"}, {serviceUrl: "https://example.com"}]}
    """,
    """
    inferencegraph/pipeline routes to inferenceservice/chat @ spec.nodes.root.steps[0] (weight 70)
    inferencegraph/pipeline routes to inferenceservice/gone ! @ spec.nodes.root.steps[1] (weight 30)
    inferencegraph/pipeline routes to service/scorer -n lab ! @ spec.nodes.tail.steps[0].serviceUrl
    inferenceservice/chat mounts persistentvolumeclaim/models ! @ spec.predictor.model.storageUri
    inferenceservice/chat mounts secret/hf ! @ spec.predictor.model.env[0].valueFrom.secretKeyRef
    inferenceservice/chat mounts serviceaccount/puller ! @ spec.predictor.serviceAccountName
    inferenceservice/chat needs clusterservingruntime/vllm @ spec.predictor.model.runtime
    trainedmodel/lora targets inferenceservice/chat @ spec.inferenceService
    """,
)
case(
    "Knative: traffic, and what a revision mounts",
    """
    apiVersion: serving.knative.dev/v1
    kind: Service
    metadata: {name: web}
    spec:
      template: {spec: {containers: [{envFrom: [{configMapRef: {name: conf}}]}]}}
      traffic: [{revisionName: web-00001, percent: 100}, {latestRevision: true, percent: 0}]
    ---
    apiVersion: serving.knative.dev/v1
    kind: Route
    metadata: {name: web}
    spec: {traffic: [{configurationName: web, percent: 100}]}
    ---
    {apiVersion: serving.knative.dev/v1, kind: Revision, metadata: {name: web-00001}}
    """,
    """
    route/web routes to configuration/web ! @ spec.traffic[0] (percent 100)
    service/web mounts configmap/conf ! @ spec.template.spec.containers[0].envFrom[0].configMapRef
    service/web routes to revision/web-00001 @ spec.traffic[0] (percent 100)
    """,
)
case(
    "KEDA: a target without a kind is a Deployment; authentication of either scope",
    """
    apiVersion: keda.sh/v1alpha1
    kind: ScaledObject
    metadata: {name: web}
    spec:
      scaleTargetRef: {name: web}
      triggers:
      - {type: kafka, authenticationRef: {name: kafka}}
      - {type: aws, authenticationRef: {name: aws, kind: ClusterTriggerAuthentication}}
    ---
    apiVersion: keda.sh/v1alpha1
    kind: ScaledJob
    metadata: {name: batch}
    spec: {jobTargetRef: {template: {spec: {volumes: [{secret: {secretName: keys}}]}}}}
    ---
    apiVersion: keda.sh/v1alpha1
    kind: TriggerAuthentication
    metadata: {name: kafka}
    spec: {secretTargetRef: [{parameter: sasl, name: kafka, key: sasl}]}
    """,
    """
    scaledjob/batch mounts secret/keys ! @ spec.jobTargetRef.template.spec.volumes[0].secret
    scaledobject/web mounts clustertriggerauthentication/aws ! @ spec.triggers[1].authenticationRef
    scaledobject/web mounts triggerauthentication/kafka @ spec.triggers[0].authenticationRef
    scaledobject/web scales deployment/web ! @ spec.scaleTargetRef
    triggerauthentication/kafka mounts secret/kafka ! @ spec.secretTargetRef[0]
    """,
)
case(
    "Argo: services, routes, analyses of either scope, and selection by its template",
    """
    apiVersion: argoproj.io/v1alpha1
    kind: Rollout
    metadata: {name: web}
    spec:
      template: {metadata: {labels: {app: web}}}
      strategy:
        canary:
          stableService: stable
          canaryService: canary
          trafficRouting:
            istio: {virtualService: {name: web}}
            nginx: {stableIngress: web}
            plugins: {argoproj-labs/gatewayAPI: {httpRoute: web, namespace: edge}}
          steps:
          - {setWeight: 20}
          - {analysis: {templates: [{templateName: errors}, {templateName: latency, clusterScope: true}]}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: stable}, spec: {selector: {app: web}}}
    ---
    apiVersion: argoproj.io/v1alpha1
    kind: Rollout
    metadata: {name: borrowed}
    spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
    ---
    apiVersion: argoproj.io/v1alpha1
    kind: Experiment
    metadata: {name: trial}
    spec: {analyses: [{name: a, templateName: errors}]}
    status: {templateStatuses: [{name: canary, serviceName: trial-canary}]}
    """,
    """
    experiment/trial needs analysistemplate/errors ! @ spec.analyses[0]
    experiment/trial targets service/trial-canary ! @ status.templateStatuses[0]
    rollout/borrowed needs deployment/web ! @ spec.workloadRef
    rollout/web needs analysistemplate/errors ! @ spec.strategy.canary.steps[1].analysis.templates[0]
    rollout/web needs clusteranalysistemplate/latency ! @ spec.strategy.canary.steps[1].analysis.templates[1]
    rollout/web needs httproute/web -n edge ! @ spec.strategy.canary.trafficRouting.plugins.argoproj-labs/gatewayAPI
    rollout/web needs ingress/web ! @ spec.strategy.canary.trafficRouting.nginx.stableIngress
    rollout/web needs service/canary ! @ spec.strategy.canary.canaryService
    rollout/web needs service/stable @ spec.strategy.canary.stableService
    rollout/web needs virtualservice/web ! @ spec.strategy.canary.trafficRouting.istio.virtualService
    service/stable selects rollout/web @ spec.selector
    """,
)
case(
    "Istio: hosts of the mesh are Services, others are not",
    """
    apiVersion: networking.istio.io/v1
    kind: VirtualService
    metadata: {name: web}
    spec:
      gateways: [mesh-edge/public, local]
      http:
      - route:
        - {destination: {host: web}, weight: 90}
        - {destination: {host: web.next.svc.cluster.local}, weight: 10}
        mirror: {host: api.example.com}
      - {delegate: {name: part, namespace: team}}
    ---
    {apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web}, spec: {host: web.shop.svc}}
    ---
    apiVersion: networking.istio.io/v1
    kind: Gateway
    metadata: {name: public, namespace: mesh-edge}
    spec: {selector: {istio: ingress}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: proxy, namespace: istio-system, labels: {istio: ingress}}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: web}}
    """,
    """
    destinationrule/web targets service/web @ spec.host
    gateway/public -n mesh-edge selects pod/proxy -n istio-system @ spec.selector
    virtualservice/web needs gateway/local ! @ spec.gateways[1]
    virtualservice/web needs gateway/public -n mesh-edge @ spec.gateways[0]
    virtualservice/web routes to service/web -n next ! @ spec.http[0].route[1] (weight 10)
    virtualservice/web routes to service/web @ spec.http[0].route[0] (weight 90)
    virtualservice/web routes to virtualservice/part -n team ! @ spec.http[1].delegate
    """,
)
case(
    "Crossplane: usages protect, and what uses needs them",
    """
    apiVersion: protection.crossplane.io/v1beta1
    kind: Usage
    metadata: {name: keep}
    spec:
      of: {apiVersion: v1, kind: Service, resourceRef: {name: web, namespace: other}}
      by: {apiVersion: apps/v1, kind: Deployment, resourceRef: {name: client}}
    ---
    apiVersion: apiextensions.crossplane.io/v1beta1
    kind: Usage
    metadata: {name: legacy}
    spec:
      of: {apiVersion: s3.aws.upbound.io/v1beta1, kind: Bucket, resourceSelector: {matchLabels: {keep: me}}}
      by: {apiVersion: apps/v1, kind: Deployment, resourceRef: {name: gone}}
    ---
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: client}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: web, namespace: other}}
    ---
    {apiVersion: s3.aws.upbound.io/v1beta1, kind: Bucket, metadata: {name: logs, labels: {keep: me}}}
    """,
    """
    deployment/client needs usage/keep @ spec.by of usage/keep
    usage/keep protects service/web -n other @ spec.of
    usage/legacy needs deployment/gone ! @ spec.by
    usage/legacy protects bucket/logs @ spec.of
    """,
)
case(
    "Crossplane: composite, claim and managed resources of any group",
    """
    apiVersion: example.org/v1
    kind: XDatabase
    metadata: {name: db-x1}
    spec:
      claimRef: {apiVersion: example.org/v1, kind: Database, name: db, namespace: shop}
      compositionRef: {name: aws}
      resourceRefs: [{apiVersion: s3.aws.upbound.io/v1beta1, kind: Bucket, name: backups}]
    ---
    apiVersion: example.org/v1
    kind: Database
    metadata: {name: db}
    spec: {resourceRef: {apiVersion: example.org/v1, kind: XDatabase, name: db-x1}}
    ---
    apiVersion: example.org/v2
    kind: Queue
    metadata: {name: q}
    spec: {crossplane: {resourceRefs: [{apiVersion: v1, kind: ConfigMap, name: q}]}}
    ---
    apiVersion: s3.aws.upbound.io/v1beta1
    kind: Bucket
    metadata: {name: backups}
    spec: {providerConfigRef: {name: default}, writeConnectionSecretToRef: {name: out, namespace: shop}}
    ---
    {apiVersion: aws.upbound.io/v1beta1, kind: ProviderConfig, metadata: {name: default}}
    ---
    apiVersion: aws.upbound.io/v1beta1
    kind: ProviderConfigUsage
    metadata: {name: u1}
    providerConfigRef: {name: default}
    resourceRef: {apiVersion: s3.aws.upbound.io/v1beta1, kind: Bucket, name: backups}
    """,
    """
    bucket/backups needs providerconfig/default @ spec.providerConfigRef
    bucket/backups targets secret/out ! @ spec.writeConnectionSecretToRef
    database/db claims xdatabase/db-x1 @ spec.resourceRef
    providerconfigusage/u1 protects providerconfig/default @ providerConfigRef
    providerconfigusage/u1 targets bucket/backups @ resourceRef
    queue/q targets configmap/q ! @ spec.crossplane.resourceRefs[0]
    xdatabase/db-x1 needs composition/aws ! @ spec.compositionRef
    xdatabase/db-x1 targets bucket/backups @ spec.resourceRefs[0]
    """,
)
case(
    "Prometheus operator: monitors in their own, in named and in all namespaces",
    """
    apiVersion: monitoring.coreos.com/v1
    kind: ServiceMonitor
    metadata: {name: own}
    spec: {selector: {matchLabels: {app: web}}}
    ---
    apiVersion: monitoring.coreos.com/v1
    kind: ServiceMonitor
    metadata: {name: named}
    spec: {selector: {matchLabels: {app: web}}, namespaceSelector: {matchNames: [other]}}
    ---
    apiVersion: monitoring.coreos.com/v1
    kind: PodMonitor
    metadata: {name: all}
    spec: {selector: {}, namespaceSelector: {any: true}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: here, labels: {app: web}}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: there, namespace: other, labels: {app: web}}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: far, namespace: third}}
    """,
    """
    podmonitor/all selects pod/far -n third @ spec.selector
    servicemonitor/named selects service/there -n other @ spec.selector
    servicemonitor/own selects service/here @ spec.selector
    """,
)
case(
    "cert-manager: a certificate, its Secret and its issuer",
    """
    apiVersion: cert-manager.io/v1
    kind: Certificate
    metadata: {name: web}
    spec: {secretName: web-tls, issuerRef: {name: le, kind: ClusterIssuer, group: cert-manager.io}}
    ---
    {apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: le}}
    """,
    """
    certificate/web needs clusterissuer/le @ spec.issuerRef
    certificate/web targets secret/web-tls ! @ spec.secretName
    """,
)
case(
    "Pilotage: an endpoint, its model, the model's secret, and a usage across namespaces",
    """
    apiVersion: pilotage.dev/v1alpha1
    kind: ServingEndpoint
    metadata: {name: assistant}
    spec: {model: {name: qwen-small}}
    ---
    {apiVersion: pilotage.dev/v1alpha1, kind: Model, metadata: {name: qwen-small}, spec: {secretRef: {name: hf-token}}}
    ---
    apiVersion: pilotage.dev/v1alpha1
    kind: ClusterUsage
    metadata: {name: keep}
    spec:
      of: {apiVersion: pilotage.dev/v1alpha1, kind: Model, resourceRef: {name: qwen-small, namespace: shop}}
      by: {apiVersion: pilotage.dev/v1alpha1, kind: ServingEndpoint, resourceRef: {name: assistant, namespace: shop}}
    """,
    """
    clusterusage/keep protects model/qwen-small @ spec.of
    model/qwen-small mounts secret/hf-token ! @ spec.secretRef
    servingendpoint/assistant mounts model/qwen-small @ spec.model.name
    servingendpoint/assistant needs clusterusage/keep @ spec.by of clusterusage/keep
    """,
)


@pytest.mark.parametrize("name", CASES)
def test_what_a_family_points_at(name: str) -> None:
    manifests, want = CASES[name]
    assert sorted(edges_of(manifests)) == sorted(want.strip().splitlines())


def test_every_family_has_an_example() -> None:
    assert {name.partition(":")[0] for name in CASES} == {
        each.title for each in ecosystems() if any(kind.relations for kind in each.kinds)
    }
