"""Objects that are about something which is not there: autoscalers, budgets, monitors, webhooks, aggregated APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.catalogue import Relation
from pilotage.kube import GroupKind
from pilotage.teardown.diagnosis.leaks.model import Code, Leak, Severity, delete
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import entries, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.teardown.diagnosis.leaks.looking import Looking
    from pilotage.teardown.snapshot.graph import Edge

WEBHOOKS = frozenset(
    GroupKind("admissionregistration.k8s.io", kind)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)
API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")
DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
BUDGET = GroupKind("policy", "PodDisruptionBudget")
_MONITORS = {"ServiceMonitor": "Service", "PodMonitor": "Pod"}
_MONITORING = "monitoring.coreos.com"
_MAKERS = (("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("apps", "ReplicaSet"))


def leaks(looking: Looking) -> Iterator[Leak]:
    """What scales, protects, watches, checks or serves nothing."""
    for edge in looking.pointing_at_nothing(Relation.SCALES):
        if not looking.owned(edge.source):
            yield _scaler(edge)
    yield from _budgets(looking)
    yield from _monitors(looking)
    for edge in looking.pointing_at_nothing(Relation.TARGETS):
        source = edge.source
        if source.group_kind in WEBHOOKS:
            yield from _webhook(looking, edge)
        elif source.group_kind == API_SERVICE:
            yield _api_service(edge)
        elif source.group_kind == DEFINITION:
            yield _conversion(edge)


def _scaler(edge: Edge) -> Leak:
    return Leak(
        Code.SCALES_NOTHING,
        edge.source,
        f"scales {edge.name}, which does not exist",
        Severity.LOW,
        "It fails again and again, and takes hold of whatever is made under that name.",
        delete(edge.source),
        "Deletes the autoscaler. What it scaled is not there.",
        (f"it stands in {edge.field}",),
        edge.name,
    )


def _budgets(looking: Looking) -> Iterator[Leak]:
    for item in looking.of(*BUDGET):
        namespace = item.meta.namespace
        body = looking.world.body(item)
        known = all(looking.read(kind, namespace) for kind in (("", "Pod"), *_MAKERS))
        if body is None or not known or looking.owned(item) or looking.graph.out_of(item.uid):
            continue
        yield Leak(
            Code.PROTECTS_NOTHING,
            item,
            "protects nothing: no pod or workload has the labels that it selects",
            Severity.LOW,
            "None, until something gets these labels, whose evictions it then refuses.",
            delete(item),
            "Deletes the budget. No pod is touched.",
            (f"it selects {mapping(body, 'spec', 'selector', 'matchLabels') or mapping(body, 'spec', 'selector')}",),
        )


def _monitors(looking: Looking) -> Iterator[Leak]:
    for kind, watched in _MONITORS.items():
        for item in looking.of(_MONITORING, kind):
            body = looking.world.body(item)
            elsewhere = mapping(body, "spec", "namespaceSelector") and looking.world.namespaces
            known = looking.read(("", watched), item.meta.namespace) and not elsewhere
            if body is None or not known or looking.owned(item) or looking.graph.out_of(item.uid):
                continue
            yield Leak(
                Code.MONITORS_NOTHING,
                item,
                f"monitors nothing: no {watched} has the labels that it selects",
                Severity.LOW,
                "Nothing is scraped, and an alert on it never fires.",
                delete(item),
                "Deletes the monitor. Nothing was scraped by it.",
            )


def _webhook(looking: Looking, edge: Edge) -> Iterator[Leak]:
    source = edge.source
    webhooks = entries(looking.world.body(source), "webhooks")
    concerned = [each for each in webhooks if _is_behind(each, edge)]
    closed = [text(each, "name") for each in concerned if each.get("failurePolicy") != "Ignore"]
    whole = len(concerned) == len(webhooks)
    yield Leak(
        Code.WEBHOOK_WITHOUT_SERVICE,
        source,
        f"asks {edge.name}, which does not exist" + (f": what {', '.join(closed)} checks is refused" if closed else ""),
        Severity.HIGH if closed else Severity.LOW,
        "Every write that its rules match is refused." if closed else "Every write that its rules match waits for it.",
        f"kubectl delete {place(source)}" if whole else f"kubectl edit {place(source)}",
        "Nothing is checked by it any more, which nothing is now either. Its operator makes it again when installed."
        if whole
        else f"Take out the webhooks that ask {edge.name}; the others stay.",
        (f"it stands in {edge.field}",),
        edge.name,
    )


def _is_behind(webhook: dict[str, object], edge: Edge) -> bool:
    service = mapping(webhook, "clientConfig", "service")
    return (text(service, "namespace"), text(service, "name")) == (edge.name.namespace, edge.name.name)


def _api_service(edge: Edge) -> Leak:
    return Leak(
        Code.APISERVICE_WITHOUT_SERVICE,
        edge.source,
        f"is served by {edge.name}, which does not exist",
        Severity.HIGH,
        "Discovery fails, and no namespace of the cluster can be deleted.",
        f"kubectl delete {place(edge.source)}",
        "Discovery works again. The API comes back when what served it is installed again.",
        (f"it stands in {edge.field}",),
        edge.name,
    )


def _conversion(edge: Edge) -> Leak:
    return Leak(
        Code.CONVERSION_WITHOUT_SERVICE,
        edge.source,
        f"is converted by {edge.name}, which does not exist",
        Severity.HIGH,
        "Its objects cannot be read in other versions than they are stored in, nor be deleted.",
        f"kubectl edit {place(edge.source)}",
        "Install its operator again; or set spec.conversion.strategy to None, if one version is served alone.",
        (f"it stands in {edge.field}",),
        edge.name,
    )
