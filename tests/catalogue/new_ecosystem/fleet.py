"""An ecosystem that no code knows: a guard of pods, a workload, its route, and a finalizer."""

from pilotage.catalogue.kind import Ecosystem, Guard, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByName, TargetKind, protects, routes_to
from pilotage.catalogue.shared import A_POD_BY_LABELS, TEMPLATE_LABELS, pod_fields

ECOSYSTEM = Ecosystem(
    "Fleet",
    (
        KnownKind(
            "fleet.example.com",
            "PodGroup",
            short_names=("pg",),
            relations=(protects("spec.selector", A_POD_BY_LABELS),),
            guard=Guard(disruptions_allowed="status.mayLeave", healthy="status.ready", healthy_wanted="spec.minMember"),
        ),
        KnownKind(
            "fleet.example.com",
            "Flotilla",
            relations=pod_fields("spec.template.spec"),
            phase=Phase.STOP,
            workload=True,
            pod_labels=TEMPLATE_LABELS,
            serves=True,
        ),
        KnownKind(
            "fleet.example.com",
            "Fairway",
            relations=(
                routes_to("spec.to", ByName((TargetKind("fleet.example.com", "Flotilla"),), namespace="namespace")),
            ),
            phase=Phase.DETACH,
            route_status=("status.buoys",),
        ),
    ),
    (KnownFinalizer(("fleet.example.com/moored",), "Fleet operator", "weighs anchor", "an anchor."),),
    defined=True,
)
