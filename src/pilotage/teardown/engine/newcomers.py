"""Newcomers: objects that appeared after the plan was made and belong to it, such as a pod that replaced another.

Watches show most of them, but only of the kinds that something is waited for. So the proof looks once more, through all
kinds of which something may have been made.
"""

from collections.abc import Iterable, Mapping

from pilotage.catalogue.groups import is_built_in
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import known, phase_of
from pilotage.kube import Object, Resource
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, extend


def searched(ledger: Ledger, served: Iterable[Resource]) -> list[Resource]:
    """The kinds, of those served, in which something may have appeared that belongs to a ledger.

    All that have a namespace, unless only Kubernetes' own controllers were at work: it is known what those make. So are
    the kinds of which something was made before.
    """
    kinds = {entry.group_kind for entry in ledger.going}
    namespaced = [resource for resource in served if resource.namespaced]
    if not all(is_built_in(kind.group) for kind in kinds):
        return namespaced
    made = {entry.group_kind for entry in ledger.going if entry.owner}
    made.update(product for kind in kinds for product in known(kind).makes)
    return [resource for resource in namespaced if resource.group_kind in made]


def owner_of(obj: Object, entries: Mapping[str, Entry]) -> Entry | None:
    """The entry that an object belongs to, if it belongs to nobody else. One in another namespace is no owner."""
    owners = [entries.get(reference.uid) for reference in obj.meta.owner_references]
    if not owners or not all(
        owner is not None
        and owner.disposition is not Disposition.KEEP
        and owner.namespace in ("", obj.meta.namespace)
        and (owner.resource.kind, owner.name) == (reference.kind, reference.name)
        for owner, reference in zip(owners, obj.meta.owner_references, strict=True)
    ):
        return None
    return owners[0]


def take_in(ledger: Ledger, resource: Resource, obj: Object, owner: Entry) -> tuple[Ledger, Entry]:
    """The ledger with a newcomer, and its entry. It goes as its siblings do: one by one, or with their owner."""
    phase = phase_of(resource.group_kind)
    siblings = [
        each
        for each in ledger.going
        if each.owner == owner.uid and each.disposition is Disposition.DELETE and each.phase != Phase.RELEASE
    ]
    entry = Entry(
        resource=resource,
        namespace=obj.meta.namespace,
        name=obj.meta.name,
        uid=obj.meta.uid,
        phase=phase,
        disposition=Disposition.DELETE if owner.hold or siblings else Disposition.COLLECT,
        reason=f"appeared later; owned by {owner}",
        owner=owner.uid,
        after=tuple(each.uid for each in siblings if each.phase < phase),
    )
    return extend(ledger, [entry], {each.uid for each in siblings if each.phase > phase}), entry
