"""Objects whose target does not exist: autoscalers, guards of pods, monitors, webhooks, aggregated APIs."""

from collections.abc import Iterator

from pilotage.catalogue.names import DEFINITION, WEBHOOKS
from pilotage.catalogue.registry import guards, kinds, known
from pilotage.catalogue.relation import BySelector, Relation
from pilotage.kube import GroupKind, Json
from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity, delete
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import entries, mapping, text
from pilotage.teardown.snapshot.graph import Edge
from pilotage.teardown.snapshot.world import Item

API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")


def leaks(survey: LeakSurvey) -> Iterator[Leak]:
    """Objects that scale, protect, monitor, check or serve nothing."""
    for edge in survey.pointing_at_nothing(Relation.SCALES):
        if not survey.owned(edge.source):
            yield _scaler(edge)
    yield from _guards(survey)
    yield from _monitors(survey)
    for edge in survey.pointing_at_nothing(Relation.TARGETS):
        source = edge.source
        if source.group_kind in WEBHOOKS:
            yield from _webhook(survey, edge)
        elif source.group_kind == API_SERVICE:
            yield _api_service(edge)
        elif source.group_kind == DEFINITION:
            yield _conversion(edge)


def _scaler(edge: Edge) -> Leak:
    return Leak(
        LeakCode.SCALES_NOTHING,
        edge.source,
        f"scales {edge.name}, which does not exist",
        Severity.LOW,
        "It fails continuously, and would scale any object that is created under that name.",
        delete(edge.source),
        "Deletes the autoscaler. Its target does not exist.",
        (f"it stands in {edge.field}",),
        edge.name,
    )


def _guards(survey: LeakSurvey) -> Iterator[Leak]:
    """Guards whose selector matches nothing; only where everything that has pod labels was read."""
    labelled = [GroupKind("", "Pod"), *(kind for kind in kinds() if kind.group == "apps" and known(kind).pod_labels)]
    for guard in guards():
        for item in survey.of(*guard.group_kind):
            if not all(survey.read(kind, item.meta.namespace) for kind in labelled):
                continue
            body = _pointing_nowhere(survey, item)
            if body is None:
                continue
            selector = mapping(body, "spec", "selector")
            yield Leak(
                LeakCode.PROTECTS_NOTHING,
                item,
                "protects nothing: no pod or workload has the labels that it selects",
                Severity.LOW,
                "None, until an object gets these labels: its eviction is then refused.",
                delete(item),
                f"Deletes the {item.resource.kind}. No pod is touched.",
                (f"it selects {mapping(selector, 'matchLabels') or selector}",) if selector else (),
            )


def _monitors(survey: LeakSurvey) -> Iterator[Leak]:
    """Monitors whose selector matches nothing; only where all that they could scrape was read."""
    for row in kinds().values():
        scraped = [
            kind for field in row.relations if isinstance(field.target, BySelector) for kind in field.target.kinds
        ]
        for item in survey.of(*row.group_kind) if row.monitors else ():
            body = _pointing_nowhere(survey, item)
            elsewhere = mapping(body, "spec", "namespaceSelector") and survey.world.namespaces
            known_here = all(survey.read((kind.group, kind.kind), item.meta.namespace) for kind in scraped)
            if body is None or elsewhere or not known_here:
                continue
            yield Leak(
                LeakCode.MONITORS_NOTHING,
                item,
                f"monitors nothing: no {' or '.join(kind.kind for kind in scraped)} has the labels that it selects",
                Severity.LOW,
                "Nothing is scraped, and an alert on it never fires.",
                delete(item),
                "Deletes the monitor. Nothing was scraped by it.",
            )


def _pointing_nowhere(survey: LeakSurvey, item: Item) -> Json | None:
    """The body of an object that has neither an owner nor a target; None for another, or until it has been read."""
    if survey.owned(item) or survey.graph.out_of(item.uid):
        return None
    return survey.world.body(item)


def _webhook(survey: LeakSurvey, edge: Edge) -> Iterator[Leak]:
    source = edge.source
    webhooks = entries(survey.world.body(source), "webhooks")
    concerned = [each for each in webhooks if _is_behind(each, edge)]
    closed = [text(each, "name") for each in concerned if each.get("failurePolicy") != "Ignore"]
    whole = len(concerned) == len(webhooks)
    yield Leak(
        LeakCode.WEBHOOK_WITHOUT_SERVICE,
        source,
        f"calls {edge.name}, which does not exist"
        + (f": what {', '.join(closed)} checks is refused" if closed else ""),
        Severity.HIGH if closed else Severity.LOW,
        "Every write that its rules match is refused." if closed else "Every write that its rules match waits for it.",
        f"kubectl delete {place(source)}" if whole else f"kubectl edit {place(source)}",
        "Its checks end, and none works now anyway. Its operator creates it again when reinstalled."
        if whole
        else f"Remove the webhooks that call {edge.name}; the others stay.",
        (f"it stands in {edge.field}",),
        edge.name,
    )


def _is_behind(webhook: dict[str, object], edge: Edge) -> bool:
    service = mapping(webhook, "clientConfig", "service")
    return (text(service, "namespace"), text(service, "name")) == (edge.name.namespace, edge.name.name)


def _api_service(edge: Edge) -> Leak:
    return Leak(
        LeakCode.APISERVICE_WITHOUT_SERVICE,
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
        LeakCode.CONVERSION_WITHOUT_SERVICE,
        edge.source,
        f"is converted by {edge.name}, which does not exist",
        Severity.HIGH,
        "Its objects cannot be read in other versions than they are stored in, nor be deleted.",
        f"kubectl edit {place(edge.source)}",
        "Install its operator again; or set spec.conversion.strategy to None, if one version is served alone.",
        (f"it stands in {edge.field}",),
        edge.name,
    )
