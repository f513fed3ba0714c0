"""References from what stays to what goes: they dangle afterwards, and some of them break things for others."""

from collections.abc import Iterator

from pilotage.api.names import MODELS
from pilotage.catalogue.names import VOLUME_CLAIM, WEBHOOKS
from pilotage.catalogue.reading import reaching
from pilotage.catalogue.relation import Relation
from pilotage.kube import GroupKind
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import entries, mapping, text
from pilotage.teardown.snapshot.graph import Edge
from pilotage.teardown.snapshot.world import Item, Name

_SLICES = frozenset({GroupKind("discovery.k8s.io", "EndpointSlice"), GroupKind("", "Endpoints")})
_BROKEN_WITH = {"HTTPRoute": "500", "GRPCRoute": "an error"}
_TO_ELSEWHERE = (Relation.ROUTES_TO, Relation.TARGETS, Relation.SCALES, Relation.MOUNTS)


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """References into the ledger from outside, then out of it into other namespaces."""
    sources: dict[str, Item] = {}
    told: set[tuple[str, str, Relation]] = set()
    for item in outlook.going.values():
        for edge in outlook.graph.into(item.uid):
            source = edge.source
            key = source.uid, item.uid, edge.relation
            if outlook.goes(source) or source.group_kind in _SLICES or key in told:
                continue
            told.add(key)
            if edge.relation is Relation.SELECTS:
                sources[source.uid] = source
            else:
                yield from _dangles(outlook, edge, item)
    for source in sources.values():
        yield from _selects_nothing(outlook, source)
    yield from _to_other_namespaces(outlook)


def _dangles(outlook: Outlook, edge: Edge, target: Item) -> Iterator[Hazard]:
    source = edge.source
    where = (f"it stands in {edge.field}", *_across(source, target.name))
    if edge.relation is Relation.ROUTES_TO:
        status = _BROKEN_WITH.get(source.resource.kind, "an error")
        yield Hazard(
            HazardCode.ROUTE_LOSES_BACKEND,
            source,
            f"stays and routes to {target}, which goes: it answers {status} for its share of the requests",
            False,
            f"Remove {target.meta.name} from {place(source)} first, or take the route down as well.",
            where,
        )
    elif edge.relation is Relation.SCALES:
        words = f"stays and scales {target}, which goes: it fails from then on"
        yield Hazard(HazardCode.SCALER_LOSES_TARGET, source, words, False, f"Take {place(source)} down as well.", where)
    elif edge.relation is Relation.TARGETS and source.group_kind in WEBHOOKS:
        yield _webhook(outlook, edge, target, where)
    elif edge.relation is Relation.TARGETS and source.resource.kind == "APIService":
        yield Hazard(
            HazardCode.APISERVICE_LOSES_SERVICE,
            source,
            f"stays and is served by {target}, which goes: then no namespace of the cluster can be deleted",
            True,
            f"Take {place(source)} down as well.",
            where,
        )
    elif edge.relation in (Relation.TARGETS, Relation.MOUNTS, Relation.NEEDS, Relation.CLAIMS):
        if target.group_kind == VOLUME_CLAIM and edge.relation is Relation.MOUNTS:
            return  # whether a pod holds it is told by its protection
        if target.group_kind == MODELS.group_kind:
            return  # it stays as long as it is used, which is told as well
        effect = (
            "it does not start again without it" if edge.relation is Relation.MOUNTS else "it points at nothing then"
        )
        yield Hazard(
            HazardCode.REFERENCE_DANGLES,
            source,
            f"stays and {edge.relation} {target}, which goes: {effect}",
            False,
            f"Take {place(source)} down as well, or change it.",
            where,
        )


def _webhook(outlook: Outlook, edge: Edge, target: Item, where: tuple[str, ...]) -> Hazard:
    """A configuration that outlives its Service refuses all that it is asked about, if it fails closed."""
    closed = [
        text(each, "name")
        for each in entries(outlook.world.body(edge.source), "webhooks")
        if each.get("failurePolicy") != "Ignore"
        and text(mapping(each, "clientConfig", "service"), "name") == target.meta.name
    ]
    refuses = f": what {', '.join(closed)} checks is refused then" if closed else ""
    return Hazard(
        HazardCode.WEBHOOK_LOSES_SERVICE,
        edge.source,
        f"stays and asks {target}, which goes{refuses}",
        bool(closed),
        f"Take {place(edge.source)} down as well.",
        where,
    )


def _selects_nothing(outlook: Outlook, source: Item) -> Iterator[Hazard]:
    """Hazard of a selector whose objects are all deleted: a partial selection is what a rollout leaves, too."""
    if outlook.world.namespaces and source.group_kind in reaching(()):
        return  # it may select more in namespaces that were not read
    chosen = [edge.target for edge in outlook.graph.out_of(source.uid) if edge.relation is Relation.SELECTS]
    if all(each is not None and outlook.goes(each) for each in chosen):
        yield Hazard(
            HazardCode.SELECTS_NOTHING_LEFT,
            source,
            "stays, and all that it selects goes",
            False,
            f"Take {place(source)} down as well, unless something else is to take its place.",
        )


def _to_other_namespaces(outlook: Outlook) -> Iterator[Hazard]:
    for item in outlook.going.values():
        for edge in outlook.graph.out_of(item.uid):
            target = edge.target
            if edge.relation not in _TO_ELSEWHERE or (target is not None and outlook.goes(target)):
                continue
            if target is None and not outlook.world.problem(*edge.name[:3]):
                continue  # it is not there
            if across := _across(item, edge.name):
                yield Hazard(
                    HazardCode.REFERS_TO_OTHER_NAMESPACE,
                    item,
                    f"{edge.relation} {edge.name}, which is in another namespace, and stays"
                    + (" if it is there" * (target is None)),
                    False,
                    "",
                    (f"it stands in {edge.field}", *across),
                )


def _across(source: Item, target: Name) -> tuple[str, ...]:
    """Remark on a reference from one namespace to another; empty if it is not one."""
    here, there = source.meta.namespace, target.namespace
    return (f"it goes from namespace {here} to {there}",) if here and there and here != there else ()
