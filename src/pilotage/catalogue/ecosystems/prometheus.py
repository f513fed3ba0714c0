"""Prometheus operator: what is scraped, found by labels and namespaces."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.relation import BySelector, TargetKind, selects
from pilotage.catalogue.shared import POD, SERVICE


def _monitor(kind: str, scraped: TargetKind) -> KnownKind:
    target = BySelector((scraped,), namespaces="spec.namespaceSelector")
    return KnownKind("monitoring.coreos.com", kind, relations=(selects("spec.selector", target),), monitors=True)


ECOSYSTEM = Ecosystem(
    "Prometheus operator",
    (_monitor("ServiceMonitor", SERVICE), _monitor("PodMonitor", POD)),
    (
        KnownFinalizer(
            ("monitoring.coreos.com/*",),
            "Prometheus operator",
            "takes its notes off the status of monitors and rules",
            "notes in the status of monitors and rules; nothing that runs.",
            ("prometheus-operator", "*-prometheus-operator"),
            ("monitoring",),
            (("app.kubernetes.io/name", "prometheus-operator"),),
        ),
    ),
)
