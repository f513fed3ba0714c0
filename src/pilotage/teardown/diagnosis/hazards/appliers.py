"""GitOps tools and releases that apply members of a ledger again, once they are deleted.

Who it is and whether it acts by itself is `why`'s to tell: `plan` says the same before anything is deleted.
"""

from collections.abc import Iterator

from pilotage.catalogue.names import APPLIERS
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, HazardGroup, Outlook
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.families import fighting
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.world import Item, World

_MARKS = (fighting.ARGO_INSTANCE, fighting.ARGO_TRACKING, "meta.helm.sh/release-name")


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """One for each tool's own object, and for each object whose tool was not found."""
    causes: dict[object, StuckCause] = {}

    def keyed() -> Iterator[tuple[object, Item]]:
        for item in outlook.going.values():
            cause = _applied(outlook, item) if is_marked(item) else None
            if cause is not None:
                key = cause.code, cause.subject
                causes.setdefault(key, cause)
                yield key, item

    groups = outlook.groups(keyed())
    for key, group in groups.items():
        yield _hazard(causes[key], group)


def is_marked(item: Item) -> bool:
    """Whether an object says that a GitOps tool or a release made it."""
    names = (*item.meta.labels, *item.meta.annotations)
    return any(name in _MARKS or name.endswith(".toolkit.fluxcd.io/name") for name in names)


def are_applied(world: World) -> bool:
    """Whether something in the namespaces of a world may be applied by an object in another one."""
    return bool(world.namespaces) and any(is_marked(item) for item in world)


def _applied(outlook: Outlook, item: Item) -> StuckCause | None:
    """Claim of a tool on an object that is not deleted yet, unless the tool's own object goes, too."""
    if item.terminating:
        return None
    causes = WhyContext(outlook.world, outlook.graph, (fighting.causes,)).causes_of(item)
    found = next((each for each in causes if each.code in (CauseCode.GITOPS_REAPPLIES, CauseCode.GITOPS_MANAGED)), None)
    subject = found.subject if found is not None else None
    own = isinstance(subject, Item) and subject.group_kind in APPLIERS
    return None if own and isinstance(subject, Item) and outlook.goes(subject) else found


def _hazard(cause: StuckCause, group: HazardGroup) -> Hazard:
    acts = cause.code == CauseCode.GITOPS_REAPPLIES
    stop = cause.remedies[-1] if cause.remedies else None
    more = f" (and {group.size - 1} more of its objects)" if group.size > 1 else ""
    return Hazard(
        HazardCode.APPLIED_AGAIN,
        group.example,
        f"{'comes back' if acts else 'may come back'}{more}: {cause.text}",
        acts,
        f"{stop.title}:" if stop else "",
        cause.evidence,
        stop.command if stop else "",
    )
