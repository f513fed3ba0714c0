"""Usages: objects that say "this one is in use" and have its delete refused until they are gone.

Crossplane's are kept by a webhook that matches the label which a usage puts on the used object. It writes down every
attempt to delete, so it is never asked: what protects is read from the usages themselves. Pilotage has its own kinds.
"""

from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from pilotage.api.names import GROUP
from pilotage.catalogue.names import IN_USE
from pilotage.kube import GroupKind, Json
from pilotage.teardown.diagnosis.remedies import REPAIR, UNGUARD, Remedy, delete_by_hand, strip_finalizer
from pilotage.teardown.diagnosis.why import admission
from pilotage.teardown.diagnosis.why.backends import behind
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import mapping, text
from pilotage.teardown.snapshot.world import Item, Name, World

CROSSPLANE = "protection.crossplane.io"
CROSSPLANE_LEGACY = "apiextensions.crossplane.io"
KINDS = (
    (CROSSPLANE, "Usage"),
    (CROSSPLANE, "ClusterUsage"),
    (CROSSPLANE_LEGACY, "Usage"),
    (GROUP, "Usage"),
    (GROUP, "ClusterUsage"),
)
FINALIZER = "usage.apiextensions.crossplane.io"
ATTEMPT = "usage.crossplane.io/deletion-attempt-with-policy"
COMPOSED = "crossplane.io/composite"


class Reference(NamedTuple):
    """Target of a usage; the name is empty where a selector has not been resolved."""

    group: str
    kind: str
    namespace: str
    name: str


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Usages that refuse the delete of this object; of a Usage, what keeps that."""
    if item.group_kind in KINDS:
        if item.terminating and FINALIZER in item.meta.finalizers:
            yield from _usage(context, item)
    elif not item.terminating:
        yield from _used(context, item)


def _reference(usage: Item, body: Json | None, field: str) -> Reference:
    entry = mapping(body, "spec", field)
    ref = mapping(entry, "resourceRef") or entry
    return Reference(
        text(entry, "apiVersion").rpartition("/")[0],
        text(entry, "kind"),
        text(ref, "namespace") or usage.meta.namespace,
        text(ref, "name"),
    )


def _find(world: World, reference: Reference) -> Item | None:
    """The object, which may be cluster-scoped although the usage has a namespace."""
    group, kind, namespace, name = reference
    return world.find(group, kind, namespace, name) or world.find(group, kind, "", name)


# The object that is used


def _used(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    guards = [usage for usage in _usages(context.world) if _protects(context, usage, item)]
    crossplanes = [usage for usage in guards if usage.resource.group != GROUP]
    for usage in guards:
        yield _protected(context, item, usage)
    if not crossplanes and item.meta.labels.get(IN_USE) == "true":
        yield from _label_alone(context, item)


def _usages(world: World) -> Iterator[Item]:
    for group, kind in KINDS:
        yield from world.of(group, kind)


def _protects(context: WhyContext, usage: Item, item: Item) -> bool:
    of = _reference(usage, context.body(usage), "of")
    if (of.group, of.kind, of.name) != (item.resource.group, item.resource.kind, item.meta.name):
        return False
    if usage.resource.group != GROUP and usage.resource.kind == "ClusterUsage":
        return not item.meta.namespace  # it cannot protect what is in a namespace, whatever it says
    return not item.meta.namespace or of.namespace == item.meta.namespace


def _protected(context: WhyContext, item: Item, usage: Item) -> StuckCause:
    body = context.body(usage)
    by = _reference(usage, body, "by")
    user = _find(context.world, by) if by.name else None
    evidence = []
    if by.name:
        evidence.append(f"it is used by {user or Name(*by)}")
    if reason := text(body, "spec", "reason"):
        evidence.append(f"the reason it gives: {reason}")
    if attempt := item.meta.annotations.get(ATTEMPT):
        evidence.append(f"a delete was refused already (propagation {attempt})")
    because = _webhook_dead(context, item)
    remedies = []
    if user:
        remedies.append(
            delete_by_hand(
                user,
                f"Delete {user}, which uses it, if that is to go as well",
                "The usage goes with it, and the delete passes then. Nothing leaks.",
            )
        )
    remedies.append(
        delete_by_hand(
            usage,
            "Delete the usage, if it is not in use any more",
            "Nothing protects the object any more. What still uses it may break.",
            UNGUARD,
        )
    )
    return StuckCause(
        CauseCode.USAGE_PROTECTS,
        usage,
        f"protects {item}: its delete is refused while this exists",
        tuple(evidence),
        because=tuple(because),
        remedies=tuple(remedies),
    )


def _webhook_dead(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """The webhook that refuses may itself be dead: then the attempt is not even written down."""
    for hook in admission.hooks(context.world, item, "DELETE"):
        root = behind(context.world, hook.service) if hook.keeps_usages and hook.service else None
        if root:
            yield StuckCause(
                CauseCode.USAGE_WEBHOOK_FAILS,
                hook.configuration,
                f"its webhook {hook.name} does not answer: deletes of what is in use fail, and are not replayed later",
                because=(root,),
                remedies=(
                    Remedy(
                        "Bring Crossplane back",
                        f"kubectl -n {quote(hook.service.namespace if hook.service else '')} get deployments,pods",
                        "Deletes are checked again. Nothing leaks.",
                        REPAIR,
                        hook.configuration,
                    ),
                ),
            )


def _label_alone(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """The label has the delete checked; no usage that was seen stands behind it."""
    readings = [context.world.kinds.get(GroupKind(*each)) for each in KINDS]
    dead = list(_webhook_dead(context, item))
    yield from dead
    if not dead and not any(reading and reading.problem for reading in readings):
        yield StuckCause(
            CauseCode.USAGE_LABEL_LEFT,
            item,
            f"carries the label {IN_USE} although no usage protects it: a delete is checked, and passes",
        )


# The usage itself


def _usage(context: WhyContext, usage: Item) -> Iterator[StuckCause]:
    body = context.body(usage)
    of, by = _reference(usage, body, "of"), _reference(usage, body, "by")
    used = next((each for each in context.world.of(of.group, of.kind) if each.meta.name == of.name), None)
    if usage.group_kind == (CROSSPLANE, "ClusterUsage") and used is not None and used.meta.namespace:
        context.claim(usage, FINALIZER)
        yield StuckCause(
            CauseCode.USAGE_OF_WRONG_SCOPE,
            usage,
            f"is about {used}, which is in a namespace: a ClusterUsage cannot find it, and sticks on its finalizer",
            remedies=(
                strip_finalizer(
                    usage,
                    FINALIZER,
                    "Nothing leaks: it never protected anything.",
                    "Remove the finalizer, and use a Usage in that namespace instead",
                ),
            ),
        )
        return
    user = _find(context.world, by) if by.name else None
    if user is not None and COMPOSED in usage.meta.labels:
        context.claim(usage, FINALIZER)
        because = context.causes_of(user) if user.terminating else ()
        yield StuckCause(
            CauseCode.USAGE_WAITS_FOR_USER,
            user,
            f"still uses what {usage} protects: the usage stays until it is gone",
            because=because,
            remedies=()
            if because
            else (
                delete_by_hand(
                    user,
                    f"Delete {user}, if it is to go as well",
                    "The usage goes within 30 s after it. Nothing leaks.",
                ),
            ),
        )
