"""Namespaces: what is left in one, what the namespace controller cannot do, and what comes first.

The contents are counted, not taken from the conditions: while pods remain, those may say that everything is gone. The
conditions are read for what only the namespace controller knows: whose API does not answer it, which delete failed.
"""

from collections.abc import Iterator
from shlex import quote

from pilotage.teardown.diagnosis.remedies import LOOK, REPAIR, Remedy, look_at
from pilotage.teardown.diagnosis.why.codes import NOTES, CauseCode
from pilotage.teardown.diagnosis.why.context import COLLECTOR_SECONDS, WhyContext
from pilotage.teardown.diagnosis.why.families import finalizers
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.fields import entries, span, text, texts
from pilotage.teardown.snapshot.world import Item

KUBERNETES = "kubernetes"
NAMESPACE = ("", "Namespace")
POD = ("", "Pod")
NAMED_MAX = 5


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Causes that keep a namespace; and of an object in one, that its namespace is terminating."""
    if item.group_kind == NAMESPACE:
        if item.terminating:
            yield from _terminating(context, item)
    elif item.meta.namespace and not item.terminating:
        around = context.world.find(*NAMESPACE, "", item.meta.namespace)
        if around and around.terminating:
            since = span(context.deleted_seconds_ago(around))
            text_ = f"its namespace has been terminating for {since}: its turn will come"
            yield StuckCause(CauseCode.NAMESPACE_TERMINATING, around, text_)


def _terminating(context: WhyContext, namespace: Item) -> Iterator[StuckCause]:
    body = context.body(namespace)
    conditions = {
        text(each, "type"): text(each, "message")
        for each in entries(body, "status", "conditions")
        if each.get("status") == "True"
    }
    found = [
        *_discovery(context, namespace, conditions),
        *_parsing(namespace, conditions),
        *_contents(context, namespace, conditions),
    ]
    others = (each for each in texts(body, "spec", "finalizers") if each != KUBERNETES)
    found += (finalizers.waits_for(context, namespace, each) for each in others)
    unread = _unread(context)
    if not found and unread and context.deleted_seconds_ago(namespace) >= COLLECTOR_SECONDS:
        text_ = f"nothing was found in it, but {unread[0]} could not be read"
        found.append(StuckCause(CauseCode.UNREADABLE, namespace, text_, tuple(unread), Confidence.LOW))
    if not found and body is not None and not namespace.meta.finalizers:
        found.append(_empty(context, namespace, conditions))
    yield from found


# What only the namespace controller knows


def _discovery(context: WhyContext, namespace: Item, conditions: dict[str, str]) -> Iterator[StuckCause]:
    """An API that does not answer, anywhere, keeps every namespace: nobody knows what it has in there."""
    message = conditions.get("NamespaceDeletionDiscoveryFailure", "")
    silent = context.world.unreadable_groups
    if not message and not silent:
        return
    behind: list[StuckCause] = []
    for service in context.world.of("apiregistration.k8s.io", "APIService"):
        version, _, group = service.meta.name.partition(".")
        served = f"{group}/{version}"
        if group and (served in silent or served in message):
            behind += (cause for cause in context.causes_of(service) if cause.code not in NOTES)
    evidence = [f"Condition NamespaceDeletionDiscoveryFailure: {message}"] if message else []
    evidence += [f"{group}: {why}" for group, why in silent.items()]
    over = bool(message) and not silent and not behind and context.world.live
    if over:
        evidence.append("All APIs answer by now: the namespace controller notices at its next retry.")
    yield StuckCause(
        CauseCode.NAMESPACE_DISCOVERY_FAILURE,
        namespace,
        "cannot be proven empty: an API of the cluster does not answer"
        if not over
        else "could not be proven empty when it was last checked: an API of the cluster did not answer",
        tuple(evidence),
        Confidence.MEDIUM if over else Confidence.HIGH,
        because=tuple(behind),
        remedies=()
        if behind
        else (
            Remedy(
                "See which API it is, and bring it back or delete its APIService",
                "kubectl get apiservices",
                "Every terminating namespace then continues by itself.",
                LOOK,
                namespace,
            ),
        ),
    )


def _parsing(namespace: Item, conditions: dict[str, str]) -> Iterator[StuckCause]:
    message = conditions.get("NamespaceDeletionGroupVersionParsingFailure")
    if message is not None:
        yield StuckCause(
            CauseCode.NAMESPACE_GROUP_VERSION_FAILURE,
            namespace,
            "the namespace controller cannot read the name of an API version",
            (f"Condition NamespaceDeletionGroupVersionParsingFailure: {message}",),
            remedies=(
                Remedy(
                    "See which API has a version that is not one, and repair or remove its APIService",
                    "kubectl get apiservices",
                    "Every terminating namespace then continues by itself.",
                    LOOK,
                    namespace,
                ),
            ),
        )


# What is in it


def _contents(context: WhyContext, namespace: Item, conditions: dict[str, str]) -> Iterator[StuckCause]:
    inside = [each for each in context.world if each.meta.namespace == namespace.meta.name]
    pods = [each for each in inside if each.group_kind == POD]
    others = [each for each in inside if each.group_kind != POD]
    going = [each for each in others if each.terminating]
    staying = [each for each in others if not each.terminating]
    yield from _pods_first(context, namespace, pods, staying)
    for group in context.groups(going):
        example = group.example
        yield StuckCause(
            CauseCode.NAMESPACE_CONTENT,
            namespace,
            f"waits for {example}, which is in it{group.others}",
            because=context.causes_of(example) or (_going(context, example),),
        )
    if staying and not pods:
        yield from _not_deleted(context, namespace, staying, conditions.get("NamespaceDeletionContentFailure", ""))


def _pods_first(context: WhyContext, namespace: Item, pods: list[Item], staying: list[Item]) -> Iterator[StuckCause]:
    evidence = []
    if staying:
        names = ", ".join(str(each).partition(" ")[0] for each in staying[:NAMED_MAX])
        evidence.append(f"{len(staying)} other objects in it are not being deleted yet: {names}.")
    for group in context.groups(pods):
        pod = group.example
        said = tuple(cause for cause in context.causes_of(pod) if cause.code != CauseCode.NAMESPACE_TERMINATING)
        further = _stopping(said) or said
        yield StuckCause(
            CauseCode.NAMESPACE_PODS_FIRST,
            namespace,
            f"waits for {pod}, which is in it{group.others}: from Kubernetes 1.33 on nothing else is deleted before "
            "the pods are gone",
            tuple(evidence),
            because=further or (_going(context, pod) if pod.terminating else _working(context, namespace, pod),),
        )


def _not_deleted(context: WhyContext, namespace: Item, staying: list[Item], failure: str) -> Iterator[StuckCause]:
    """No pod is left, and still there are objects that nobody deletes: their delete is refused, or is to come."""
    explained: list[StuckCause] = []
    for group in context.groups(staying):
        explained += _stopping(context.causes_of(group.example))
    names = ", ".join(str(each).partition(" ")[0] for each in staying[:NAMED_MAX])
    are = "object in it is" if len(staying) == 1 else "objects in it are"
    counted = f"{len(staying)} {are} not being deleted: {names}"
    if failure or explained:
        yield StuckCause(
            CauseCode.NAMESPACE_CONTENT_FAILURE,
            namespace,
            counted if explained else f"{counted}. The namespace controller's deletes fail",
            (f"Condition NamespaceDeletionContentFailure: {failure}",) if failure else (),
            because=tuple(explained),
            remedies=(look_at(namespace, "Read what refuses the delete, and mend that", "It tries again by itself."),),
        )
    elif context.deleted_seconds_ago(namespace) < COLLECTOR_SECONDS:
        yield _working(context, namespace, namespace)
    else:
        yield StuckCause(
            CauseCode.NAMESPACE_CONTENT_NOT_DELETED,
            namespace,
            f"{counted}, and nothing says why",
            confidence=Confidence.MEDIUM,
            remedies=(
                Remedy(
                    "See whether kube-controller-manager runs",
                    "kubectl get lease kube-controller-manager -n kube-system -o yaml",
                    "Its namespace controller does the deleting. Nothing changes.",
                    LOOK,
                    namespace,
                ),
                Remedy(
                    "Delete what is in it, in order",
                    f"pilotage delete -n {quote(namespace.meta.name)} --all",
                    "Would delete all of them, as the namespace controller is to do anyway. Nothing leaks.",
                    REPAIR,
                    namespace,
                ),
            ),
        )


def _empty(context: WhyContext, namespace: Item, conditions: dict[str, str]) -> StuckCause:
    age = context.deleted_seconds_ago(namespace)
    stale = [name for name in ("NamespaceContentRemaining", "NamespaceFinalizersRemaining") if name in conditions]
    if age < COLLECTOR_SECONDS and not stale:
        return _working(context, namespace, namespace)
    return StuckCause(
        CauseCode.NAMESPACE_EMPTY,
        namespace,
        "nothing is left in it: the namespace controller finishes it at its next retry, with back-off",
        tuple(f"Condition {name} still says: {conditions[name]}" for name in stale),
        Confidence.MEDIUM if age > 10 * COLLECTOR_SECONDS else Confidence.HIGH,
    )


# Helpers


def _working(context: WhyContext, namespace: Item, subject: Item) -> StuckCause:
    text_ = (
        f"the namespace controller has had {span(context.deleted_seconds_ago(namespace))} so far; it starts after 5 s"
    )
    return StuckCause(CauseCode.NAMESPACE_WORKING, subject, text_, confidence=Confidence.MEDIUM)


def _going(context: WhyContext, item: Item) -> StuckCause:
    text_ = f"is being deleted for {span(context.deleted_seconds_ago(item))}, and nothing visible holds it"
    return StuckCause(CauseCode.NAMESPACE_WORKING, item, text_, confidence=Confidence.MEDIUM)


def _stopping(found: tuple[StuckCause, ...]) -> tuple[StuckCause, ...]:
    return tuple(cause for cause in found if cause.code not in NOTES)


def _unread(context: WhyContext) -> list[str]:
    """The kinds that could have objects in it, and could not be read."""
    unread = context.world.unread([True])
    if not context.world.live:
        unread.append("kinds that are not in the dump")
    for each in unread:
        context.unread(each)
    return unread
