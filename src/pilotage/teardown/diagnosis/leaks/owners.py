"""Objects whose owners are all gone.

The garbage collector takes most of them within seconds; that one is still there tells that it cannot, or has given up
for a while. Some it never takes: where it cannot look the owner up, it leaves its dependents alone for ever.
"""

import enum
from collections.abc import Iterator

from pilotage.catalogue.reading import COMPUTED, COMPUTED_GROUPS, ONLY_IF_ASKED
from pilotage.kube import GroupKind, OwnerReference
from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity, delete
from pilotage.teardown.snapshot.world import Item, World


class _Owner(enum.Enum):
    """Observed state of an owner."""

    THERE = enum.auto()
    UNKNOWN = enum.auto()
    GONE = enum.auto()
    """Or, if not all namespaces were read, in another one: for the garbage collector that is the same."""
    REPLACED = enum.auto()
    """Another object has its name."""
    ELSEWHERE = enum.auto()
    """It is in another namespace."""
    NAMESPACED = enum.auto()
    """It is gone, and had a namespace, while the dependent has none."""
    NOT_SERVED = enum.auto()


_NEVER = (_Owner.NAMESPACED, _Owner.NOT_SERVED)
"""The garbage collector cannot look these up, so that it never decides."""
_CODES = {
    _Owner.GONE: LeakCode.OWNER_GONE,
    _Owner.REPLACED: LeakCode.OWNER_WRONG_UID,
    _Owner.ELSEWHERE: LeakCode.OWNER_IN_OTHER_NAMESPACE,
    _Owner.NAMESPACED: LeakCode.OWNER_NAMESPACED,
    _Owner.NOT_SERVED: LeakCode.OWNER_NOT_SERVED,
}


def leaks(survey: LeakSurvey) -> Iterator[Leak]:
    """Objects that nobody owns any more, though they say somebody does."""
    for item in survey.world:
        references = item.meta.owner_references
        if not references or not survey.settled(item):
            continue
        states = [_state(survey.world, item, reference) for reference in references]
        if _Owner.THERE in states or _Owner.UNKNOWN in states:
            continue
        worst = next((state for state in states if state in _NEVER), states[0])
        reference = references[states.index(worst)]
        yield _leak(item, reference, worst, here=_looked_for_here_alone(survey.world, item, reference))


def _state(world: World, item: Item, reference: OwnerReference) -> _Owner:
    namespace = item.meta.namespace
    kind = _kind(reference)
    owner = world.get(reference.uid)
    if owner is not None:
        if owner.meta.namespace in ("", namespace):
            return _Owner.THERE
        return _Owner.ELSEWHERE if namespace else _Owner.THERE
    reading = world.kinds.get(kind)
    if reading is None:
        return _Owner.NOT_SERVED if _not_served(world, kind) else _Owner.UNKNOWN
    namespaced = reading.resource.namespaced
    if namespaced and not namespace:
        # Nothing says in which namespace it was, so that only all of them together prove it gone.
        return _Owner.UNKNOWN if world.namespaces or reading.problem else _Owner.NAMESPACED
    place = namespace if namespaced else ""
    if world.problem(*kind, place):
        return _Owner.UNKNOWN
    return _Owner.REPLACED if world.find(*kind, place, reference.name) else _Owner.GONE


def _kind(reference: OwnerReference) -> GroupKind:
    return GroupKind(reference.api_version.rpartition("/")[0], reference.kind)


def _looked_for_here_alone(world: World, item: Item, reference: OwnerReference) -> bool:
    """Whether an owner that was not seen may be in a namespace that was not read."""
    reading = world.kinds.get(_kind(reference))
    return bool(world.namespaces and item.meta.namespace) and (reading is None or reading.resource.namespaced)


def _not_served(world: World, kind: GroupKind) -> bool:
    """Whether the server does not have this kind: not, if it may just not have been read."""
    if not world.live or kind in ONLY_IF_ASKED or kind in COMPUTED or kind.group in COMPUTED_GROUPS:
        return False
    return all(served.rpartition("/")[0] != kind.group for served in world.unreadable_groups)


def _leak(item: Item, reference: OwnerReference, state: _Owner, *, here: bool) -> Leak:
    """`here`: the owner was looked for in the namespace of what it owns, and nowhere else."""
    owner = f"{reference.kind.lower()}/{reference.name}"
    never = state in _NEVER
    gone = "is not in its namespace, which counts as gone" if here else "is gone"
    texts = {
        _Owner.GONE: f"its owner {owner} {gone}",
        _Owner.REPLACED: f"its owner {owner} {gone}; the one of that name now is another object",
        _Owner.ELSEWHERE: f"its owner {owner} is in another namespace, which counts as gone",
        _Owner.NAMESPACED: f"its owner {owner} is gone and was in a namespace, while this has none",
        _Owner.NOT_SERVED: f"its owner {owner} is of a kind that is not served any more ({reference.api_version})",
    }
    collector = (
        "the garbage collector never takes it"
        if never
        else "the garbage collector should have taken it; if it does not soon, its delete is refused"
    )
    lives = here or state is _Owner.ELSEWHERE  # as far as is known
    again = "Its creator may create it again." if lives else "It has no owner, so nothing recreates it."
    if state is _Owner.ELSEWHERE:
        evidence = f"the object with the uid {reference.uid} is in another namespace"
    else:
        place = f" in namespace {item.meta.namespace}" if here else ""
        evidence = f"its ownerReference names the uid {reference.uid}, which no object{place} has"
    return Leak(
        _CODES[state],
        item,
        f"{texts[state]}: {collector}",
        Severity.MEDIUM if never else Severity.LOW,
        "It stays until a person deletes it." if never else "It is in the way until it is collected.",
        delete(item),
        f"Deletes this object, with what it owns. {again}",
        (evidence,),
    )
