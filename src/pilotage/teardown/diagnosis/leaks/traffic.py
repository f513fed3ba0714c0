"""Traffic that is sent to nobody: slices without their Service or with pods that are gone, routes without a backend."""

from collections.abc import Iterator

from pilotage.catalogue.names import SERVICE_NAME, SLICE
from pilotage.catalogue.relation import Relation
from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity, delete
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import counted, entries, mapping, text
from pilotage.teardown.snapshot.world import Item, Name

_MESH = "networking.istio.io"
_WEIGHTLESS = "(weight 0)"


def leaks(survey: LeakSurvey) -> Iterator[Leak]:
    """Slices first, then routes."""
    for item in survey.of(*SLICE):
        leak = _without_service(survey, item) or _with_gone_pods(survey, item)
        if leak:
            yield leak
    yield from _routes(survey)


def _without_service(survey: LeakSurvey, item: Item) -> Leak | None:
    """Slices that a controller made have an owner, and are its: this is about those that were made by hand."""
    service = item.meta.labels.get(SERVICE_NAME)
    if not service or item.meta.owner_references:
        return None
    name = Name("", "Service", item.meta.namespace, service)
    if not survey.gone(name):
        return None
    return Leak(
        LeakCode.SLICE_WITHOUT_SERVICE,
        item,
        f"belongs to {name}, which does not exist: a Service of that name would send traffic to its addresses",
        Severity.MEDIUM,
        "A Service that is made under that name later sends requests to these addresses.",
        delete(item),
        "Deletes the slice. Nothing uses it while its Service is not there.",
        (f"its label {SERVICE_NAME} is {service}, and it has no owner",),
        name,
    )


def _with_gone_pods(survey: LeakSurvey, item: Item) -> Leak | None:
    """Addresses that are said to be ready, of pods that are gone: somebody else may have the address by now."""
    body = survey.world.body(item)
    gone = []
    for endpoint in entries(body, "endpoints"):
        target = mapping(endpoint, "targetRef")
        if text(target, "kind") != "Pod" or mapping(endpoint, "conditions").get("ready") is False:
            continue
        namespace = text(target, "namespace") or item.meta.namespace
        uid = text(target, "uid")
        same = survey.world.get(uid) if uid else survey.world.find("", "Pod", namespace, text(target, "name"))
        if same is None and survey.read(("", "Pod"), namespace):
            gone.append(text(target, "name"))
    if not gone:
        return None
    names = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
    return Leak(
        LeakCode.SLICE_WITH_GONE_PODS,
        item,
        f"sends traffic to the addresses of pods that are gone: {names}",
        Severity.HIGH,
        "Requests to these addresses fail, or reach the pods that have them now.",
        f"kubectl edit {place(item)}",
        "Take these endpoints out. Where a controller keeps the slice, find out why it does not: it should have.",
        (f"{len(gone)} of {counted(len(entries(body, 'endpoints')), 'endpoint')} without an existing pod",),
    )


def _routes(survey: LeakSurvey) -> Iterator[Leak]:
    for edge in survey.pointing_at_nothing(Relation.ROUTES_TO):
        source = edge.source
        if source.group_kind == SLICE or _WEIGHTLESS in edge.field:
            continue
        if source.resource.group == _MESH and survey.world.of(_MESH, "ServiceEntry"):
            continue  # a host may be one of these
        others = [each for each in survey.graph.out_of(source.uid) if each.relation is Relation.ROUTES_TO]
        alone = all(each.target is None for each in others)
        yield Leak(
            LeakCode.ROUTE_TO_NOTHING,
            source,
            f"routes to {edge.name}, which does not exist",
            Severity.HIGH,
            "Requests that it sends there fail." if alone else "Its share of the requests fails.",
            delete(source) if alone else f"kubectl edit {place(source)}",
            "Deletes the route, which leads nowhere." if alone else f"Take {edge.field} out; its other backends stay.",
            (f"it stands in {edge.field}",),
            edge.name,
        )
