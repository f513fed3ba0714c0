"""Knative Serving: where traffic goes, and what revisions mount."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByName, ByReference, TargetKind, routes_to, scales
from pilotage.catalogue.shared import ANYTHING, pod_fields

_GROUP = "serving.knative.dev"
_CONFIGURATION = ByName((TargetKind(_GROUP, "Configuration"),), name="configurationName")
_REVISION = ByName((TargetKind(_GROUP, "Revision"),), name="revisionName")

ECOSYSTEM = Ecosystem(
    "Knative",
    (
        KnownKind(
            _GROUP,
            "Service",
            relations=(routes_to("spec.traffic[]", _REVISION, note="percent"), *pod_fields("spec.template.spec")),
            serves=True,
        ),
        KnownKind(
            _GROUP,
            "Route",
            relations=(
                routes_to("spec.traffic[]", _REVISION, note="percent"),
                routes_to("spec.traffic[]", _CONFIGURATION, note="percent"),
                routes_to("status.traffic[]", _REVISION, note="percent"),
            ),
        ),
        KnownKind(_GROUP, "Configuration", relations=pod_fields("spec.template.spec")),
        KnownKind(_GROUP, "Revision", relations=pod_fields("spec"), needs_body=False),
        KnownKind(_GROUP, "DomainMapping", relations=(routes_to("spec.ref", ByReference(namespace="namespace")),)),
        KnownKind(
            "autoscaling.internal.knative.dev",
            "PodAutoscaler",
            relations=(scales("spec.scaleTargetRef", ANYTHING),),
            phase=Phase.QUIESCE,
        ),
    ),
    (
        KnownFinalizer(
            ("*.serving.knative.dev",),
            "Knative Serving",
            "cleans up what the object made",
            "what Knative made for it elsewhere, such as placeholder Services and domain claims.",
            ("controller", "autoscaler", "knative-serving-controller"),
            ("knative-serving",),
            (("app.kubernetes.io/name", "knative-serving"),),
        ),
        KnownFinalizer(
            (
                "*.networking.internal.knative.dev",
                "*.eventing.knative.dev",
                "*.messaging.knative.dev",
                "*.sources.knative.dev",
            ),
            "Knative",
            "takes the object out of its data plane",
            "routes, channels or subscriptions that its data plane continues to serve.",
            ("net-*-controller", "eventing-controller", "imc-controller", "kafka-controller"),
            ("knative-serving", "knative-eventing"),
            (("app.kubernetes.io/name", "knative-serving"), ("app.kubernetes.io/name", "knative-eventing")),
        ),
    ),
)
