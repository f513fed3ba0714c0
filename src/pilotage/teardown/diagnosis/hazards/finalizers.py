"""Finalizers and their keepers: those that do not run, and those that go before their objects."""

from collections.abc import Iterable, Iterator

from pilotage.catalogue.names import LOAD_BALANCER
from pilotage.catalogue.registry import find_finalizer, workloads
from pilotage.kube import GroupKind
from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner, FinalizerOwners, Liveness
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, HazardGroup, Outlook
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.planning.ledger import HOLD
from pilotage.teardown.snapshot.world import Item, World


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """Each finalizer of each kind once: alike objects have the same keeper."""
    keepers = FinalizerOwners(outlook.world)
    for (_, finalizer), group in _finalizers(outlook.going.values()).items():
        keeper = keepers.of(group.example, finalizer)
        if finalizer == LOAD_BALANCER:
            yield from _load_balancer(keeper, group)
        elif keeper.alive is Liveness.DEAD:
            yield _dead(keeper, group)
        elif keeper.workload is not None and _ends_before(outlook, keeper.workload, group.example):
            yield _ends_first(keeper, group)
        elif keeper.alive is Liveness.UNKNOWN and _is_missing(outlook, keepers, keeper):
            yield _missing(keeper, group)
        elif keeper.alive is Liveness.UNKNOWN:
            yield _unknown(keeper, group, everywhere=keepers.looked_everywhere)
    if any(item.group_kind in workloads() for item in outlook.going.values()):
        staying = (item for item in outlook.world if not outlook.goes(item) or item.terminating)
        for (_, finalizer), group in _finalizers(item for item in staying if item.uid not in outlook.going).items():
            keeper = keepers.of(group.example, finalizer)
            if keeper.workload is not None and keeper.workload.uid in outlook.going:
                yield _left_without(keeper, group)


def others_matter(world: World) -> bool:
    """Whether what runs in other namespaces than those of a world has to be seen, to tell who keeps what in it.

    Finalizers here are mostly kept there. And what is there may seem to be kept by something here, as long as nobody
    has looked for its real keeper.
    """
    if not world.namespaces or not any(item.meta.finalizers for item in world):
        return False
    if _finalizers(item for item in world if item.meta.namespace in world.namespaces):
        return True
    keepers = FinalizerOwners(world)
    return any(keepers.of(group.example, finalizer).workload for (_, finalizer), group in _finalizers(world).items())


def _finalizers(items: Iterable[Item]) -> dict[tuple[GroupKind | None, str], HazardGroup]:
    """The finalizers that somebody besides Kubernetes itself and us has to remove, with an object for each.

    One that is in the table has the same keeper on all kinds; of others each kind may have its own.
    """
    found: dict[tuple[GroupKind | None, str], HazardGroup] = {}
    for item in items:
        for finalizer in item.meta.finalizers:
            row = find_finalizer(finalizer) if finalizer != HOLD else None
            if finalizer == HOLD or (row is not None and row.builtin):
                continue
            key = None if row else item.group_kind, finalizer
            known = found.get(key)
            found[key] = HazardGroup(item, 1) if known is None else known._replace(size=known.size + 1)
    return found


def _ends_before(outlook: Outlook, workload: Item, item: Item) -> bool:
    """Whether the keeper is on its way out while the object still waits for it.

    Where both are in the ledger and stand, the order sees to it. A namespace that is already being deleted takes its
    pods first, whatever the order.
    """
    if workload.terminating:
        return True
    namespace = outlook.world.find("", "Namespace", "", workload.meta.namespace)
    return namespace is not None and namespace.terminating and HOLD not in item.meta.finalizers


def _who(keeper: FinalizerOwner) -> str:
    name = keeper.who or "its controller"
    return f"{name} ({keeper.workload})" if keeper.workload and str(keeper.workload) != name else name


def _dead(keeper: FinalizerOwner, group: HazardGroup) -> Hazard:
    target = keeper.workload
    look = f"kubectl describe {place(target)}" if target else f"pilotage why {place(group.example)}"
    return Hazard(
        HazardCode.KEEPER_DEAD,
        group.example,
        f"will hang on finalizer {keeper.finalizer}{_more(group)}: {_who(keeper)} does not run"
        + (f", {keeper.trouble}" if keeper.trouble else ""),
        not keeper.guessed,
        "Bring it back first:",
        keeper.evidence,
        look,
    )


def _ends_first(keeper: FinalizerOwner, group: HazardGroup) -> Hazard:
    return Hazard(
        HazardCode.KEEPER_GOES_FIRST,
        keeper.workload or group.example,
        f"is being deleted before {group}, whose finalizer {keeper.finalizer} only it removes",
        True,
        "Run it somewhere else, or once more, until these are gone.",
        keeper.evidence,
    )


def _left_without(keeper: FinalizerOwner, group: HazardGroup) -> Hazard:
    assert keeper.workload is not None
    return Hazard(
        HazardCode.KEEPER_GOES_FIRST,
        keeper.workload,
        f"goes, and {group} stay{'s' * (group.size == 1)}, whose finalizer {keeper.finalizer} only it removes: "
        "what stays can then not be deleted",
        not keeper.guessed,
        f"Delete {place(group.example)}{' and the others' * (group.size > 1)} in the same teardown, or before.",
        keeper.evidence,
    )


def _is_missing(outlook: Outlook, keepers: FinalizerOwners, keeper: FinalizerOwner) -> bool:
    """Whether a controller was looked for everywhere, and there is no trace of one."""
    searched = keepers.looked_everywhere and not outlook.world.problem("apps", "Deployment")
    return searched and keeper.workload is None and keeper.lease is None


def _missing(keeper: FinalizerOwner, group: HazardGroup) -> Hazard:
    who = f"{keeper.who}, which would remove it, was not found" if keeper.who else "nothing was found that removes it"
    return Hazard(
        HazardCode.KEEPER_MISSING,
        group.example,
        f"will hang on finalizer {keeper.finalizer}{_more(group)}: {who}",
        True,
        "Make sure that its controller runs, here or elsewhere. More is said by:",
        keeper.evidence,
        f"pilotage why {place(group.example)}",
    )


def _unknown(keeper: FinalizerOwner, group: HazardGroup, *, everywhere: bool) -> Hazard:
    who = (
        f"whether {_who(keeper)} runs could not be determined"
        if keeper.who
        else "no controller was found that would remove it"
    )
    if not everywhere and keeper.workload is None:
        who += " (other namespaces were not read)"
    return Hazard(
        HazardCode.KEEPER_UNKNOWN,
        group.example,
        f"waits for finalizer {keeper.finalizer}{_more(group)}, and {who}",
        False,
        "Make sure that its controller runs, here or elsewhere.",
        keeper.evidence,
    )


def _load_balancer(keeper: FinalizerOwner, group: HazardGroup) -> Iterator[Hazard]:
    if keeper.alive is not Liveness.ALIVE:
        yield Hazard(
            HazardCode.LOAD_BALANCER_UNKEPT,
            group.example,
            f"has a cloud load balancer{_more(group)}, and no cloud controller was seen to run that would give it back",
            keeper.alive is Liveness.DEAD,
            "Make sure that the cloud's controller runs; on some clouds it runs outside the cluster.",
            keeper.evidence,
        )


def _more(group: HazardGroup) -> str:
    return f" (and {group.size - 1} more like it)" if group.size > 1 else ""
