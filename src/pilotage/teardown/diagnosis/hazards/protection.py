"""Usages and mounted claims, which keep an object; and guards of pods, which do not forbid a delete."""

from collections.abc import Iterator

from pilotage.api.names import ENDPOINTS, GROUP, MODELS
from pilotage.catalogue.names import IN_USE, POD, VOLUME_CLAIM
from pilotage.catalogue.registry import known
from pilotage.catalogue.relation import Relation
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.world import Item

_USAGES = ("Usage", "ClusterUsage")


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """Objects that protect members of the ledger, or seem to."""
    guards: dict[str, Item] = {}
    used: set[str] = set()
    for item in outlook.going.values():
        for edge in outlook.graph.into(item.uid):
            source = edge.source
            if edge.relation is not Relation.PROTECTS:
                continue
            if known(source.group_kind).guard is not None:
                guards[source.uid] = source
            elif source.resource.kind in _USAGES and _can_protect(source, item):
                used.add(item.uid)
                if not outlook.goes(source):
                    yield _in_use(source, item)
        if item.meta.labels.get(IN_USE) == "true" and item.uid not in used:
            yield _labelled(item)
        if item.group_kind == VOLUME_CLAIM:
            yield from _claim(outlook, item)
        if item.group_kind == MODELS.group_kind:
            yield from _model(outlook, item)
    for guard in guards.values():
        yield Hazard(
            HazardCode.BUDGET_IGNORED,
            guard,
            "protects pods of this teardown against eviction only. Their DELETE is unaffected.",
            False,
            "",
        )


def _can_protect(usage: Item, item: Item) -> bool:
    """Crossplane's ClusterUsage cannot protect what is in a namespace, whatever it says."""
    return usage.resource.group == GROUP or usage.resource.kind != "ClusterUsage" or not item.meta.namespace


def _in_use(usage: Item, item: Item) -> Hazard:
    return Hazard(
        HazardCode.IN_USE,
        usage,
        f"protects {item}: its delete is refused while this usage exists",
        True,
        "Delete what uses it first, or the usage, if it is not in use any more:",
        (f"it has the label {IN_USE}",) if item.meta.labels.get(IN_USE) == "true" else (),
        f"kubectl delete {place(usage)}",
    )


def _labelled(item: Item) -> Hazard:
    """Crossplane checks the delete of whatever has its label. Where no usage stands behind it, the delete passes."""
    words = f"has the label {IN_USE}, so that its delete is checked; no usage that protects it was seen"
    return Hazard(HazardCode.IN_USE, item, words, False, "")


def _model(outlook: Outlook, model: Item) -> Iterator[Hazard]:
    """A Model is kept by the operator while endpoints use it."""
    users = [edge.source for edge in outlook.graph.into(model.uid) if edge.source.group_kind == ENDPOINTS.group_kind]
    staying = list(dict.fromkeys(str(user) for user in users if not outlook.goes(user)))
    if staying:
        more = f" and {len(staying) - 1} more" if len(staying) > 1 else ""
        yield Hazard(
            HazardCode.IN_USE,
            model,
            f"stays until no endpoint uses it, and {staying[0]}{more} {'do' if more else 'does'}",
            True,
            "Delete what uses it as well, or give it another model.",
        )


def _claim(outlook: Outlook, claim: Item) -> Iterator[Hazard]:
    """A claim that a pod mounts waits for that pod; one that only a template names does not."""
    for edge in outlook.graph.into(claim.uid):
        source = edge.source
        if edge.relation is not Relation.MOUNTS or outlook.goes(source):
            continue
        below = (source, *outlook.world.descendants(source))
        pods = [each for each in below if each.group_kind == POD and not outlook.goes(each)]
        if pods:
            yield Hazard(
                HazardCode.CLAIM_IN_USE,
                claim,
                f"stays until no pod mounts it, and {pods[0]} stays"
                + (f" ({source} runs it)" * (pods[0] is not source)),
                True,
                f"Take {place(source)} down as well, or keep the claim.",
                (f"{source} mounts it ({edge.field})",),
            )
