"""Permissions that we lack: to delete the object itself, to let go of it, or to read what would explain it.

Only the object that was asked about: what is below it is deleted by the garbage collector, which may.
"""

from collections.abc import Iterator
from shlex import quote

from pilotage.kube import Resource
from pilotage.kube.errors import ErrorClass
from pilotage.teardown.diagnosis.remedies import REPAIR, Remedy
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import counted, few
from pilotage.teardown.snapshot.questions import MayI
from pilotage.teardown.snapshot.world import Item


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Missing permissions, and what to ask for."""
    if not context.asked_about(item):
        return
    resource, namespace = item.resource, item.meta.namespace
    if not item.terminating:
        answer = context.world.ask(MayI("delete", resource.group, resource.plural, namespace))
        if answer is not None and answer.error_class is None and not answer.allowed:
            yield _may_not(CauseCode.MAY_NOT_DELETE, item, "delete", answer.message)
    elif item.meta.finalizers:
        answer = context.world.ask(MayI("patch", resource.group, resource.plural, namespace))
        if answer is not None and answer.error_class is None and not answer.allowed:
            yield _may_not(CauseCode.MAY_NOT_PATCH, item, "patch", answer.message)
    if item.group_kind == ("", "Namespace") and item.terminating:
        yield from _may_not_list(context, item)


def _may_not(code: CauseCode, item: Item, verb: str, reason: str) -> StuckCause:
    resource, namespace = item.resource, item.meta.namespace
    where = f"in namespace {namespace}" if namespace else "cluster-wide"
    evidence = [f"the API says that you may not {verb} {resource} {where}"]
    if reason:
        evidence.append(f"its reason: {reason}")
    held = "" if verb == "delete" else ", and so cannot remove a finalizer of it yourself"
    remedy = _ask_for([resource], namespace, f"{verb},get,list,watch", item)
    return StuckCause(code, item, f"you may not {verb} it{held}", tuple(evidence), remedies=(remedy,))


def _may_not_list(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Kinds whose objects in this namespace are hidden from us: what holds it may be among them."""
    hidden = [
        reading.resource
        for reading in context.world.kinds.values()
        if reading.error_class is ErrorClass.FORBIDDEN and reading.resource.namespaced
    ]
    if hidden:
        yield StuckCause(
            CauseCode.MAY_NOT_LIST,
            item,
            f"you may not list {counted(len(hidden), 'kind')} in it: what holds it may be among them",
            (f"forbidden: {few([str(each) for each in hidden], 8)}",),
            remedies=(_ask_for(hidden, item.meta.name, "get,list,watch", item),),
        )


def _ask_for(resources: list[Resource], namespace: str, verbs: str, item: Item) -> Remedy:
    """The Role that an administrator would have to make, as the command that makes it."""
    kind = f"role pilotage-teardown -n {quote(namespace)}" if namespace else "clusterrole pilotage-teardown"
    names = ",".join(str(each) for each in resources)
    what = "Role in that namespace" if namespace else "ClusterRole (it has no namespace)"
    return Remedy(
        f"Ask an administrator for a {what} with {verbs.replace(',', ', ')}, and its binding to you",
        f"kubectl create {kind} --verb={verbs} {quote(f'--resource={names}')}",
        "Nothing leaks.",
        REPAIR,
        item,
    )
