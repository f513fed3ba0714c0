"""APIs: a CustomResourceDefinition that is being deleted waits for its instances, and takes them all with it; an
aggregated API that does not answer makes discovery fail, and no namespace is then proven empty.
"""

from collections.abc import Iterator
from shlex import quote

from pilotage.teardown.diagnosis.remedies import LOOK, UNGUARD, Remedy, look_at
from pilotage.teardown.diagnosis.why.backends import behind
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import COLLECTOR_SECONDS, WhyContext
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.fields import condition, counted, mapping, since, span, text
from pilotage.teardown.snapshot.world import Item, Name

API_SERVICE = ("apiregistration.k8s.io", "APIService")
CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_ANSWERS_AGAIN = "The API answers again, and namespace deletions continue by themselves. Nothing leaks."


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Causes that keep a definition; and of an instance, that its definition is terminating."""
    if item.group_kind == CRD:
        if item.terminating and CLEANUP in item.meta.finalizers:
            yield from _definition(context, item)
        return
    if "." not in item.resource.group:
        return
    definition = context.world.find(*CRD, "", str(item.resource))
    if definition and definition.terminating:
        yield StuckCause(
            CauseCode.CRD_TERMINATING,
            definition,
            f"its definition {definition.meta.name} is being deleted for "
            f"{span(context.deleted_seconds_ago(definition))}, and all objects of the kind with it",
        )


def _definition(context: WhyContext, crd: Item) -> Iterator[StuckCause]:
    context.claim(crd, CLEANUP)
    evidence = tuple(_words(context, crd))
    reading = next((each for each in context.world.kinds.values() if str(each.resource) == crd.meta.name), None)
    if reading is None or reading.problem:
        problem = reading.problem if reading else "it was not read"
        context.unread(f"{crd.meta.name}: {problem}")
        yield StuckCause(
            CauseCode.UNREADABLE,
            crd,
            f"waits for objects of its kind, which could not be read: {problem}",
            evidence,
            Confidence.LOW,
            remedies=(look_at(crd, "Read its conditions", "Nothing changes."),),
        )
        return
    resource = reading.resource
    instances = context.world.of(resource.group, resource.kind)
    for group in context.groups(each for each in instances if each.terminating):
        example = group.example
        further = tuple(cause for cause in context.causes_of(example) if cause.code != CauseCode.CRD_TERMINATING)
        yield StuckCause(
            CauseCode.CRD_INSTANCES,
            crd,
            f"waits for {example}, which is of its kind{group.others}",
            evidence,
            because=further or (_working(context, example),),
        )
    staying = [each for each in instances if not each.terminating]
    if staying and context.deleted_seconds_ago(crd) >= COLLECTOR_SECONDS:
        still = counted(len(staying), "object of its kind is", "objects of its kind are")
        yield StuckCause(
            CauseCode.CRD_INSTANCES_NOT_DELETED,
            crd,
            f"{still} not being deleted, such as {staying[0]}",
            evidence,
            Confidence.MEDIUM,
            remedies=(
                Remedy(
                    "Delete them first",
                    f"kubectl delete {quote(crd.meta.name)} --all -A",
                    "Their DELETE webhooks are asked then, which the API server does not do here.",
                    LOOK,
                    crd,
                ),
            ),
        )
    elif not instances or staying:
        yield _working(context, crd)


def _working(context: WhyContext, item: Item) -> StuckCause:
    text_ = f"the API server has had {span(context.deleted_seconds_ago(item))} so far, and nothing visible holds it"
    return StuckCause(CauseCode.CRD_WORKING, item, text_, confidence=Confidence.MEDIUM)


def _words(context: WhyContext, crd: Item) -> Iterator[str]:
    terminating = condition(context.body(crd), "Terminating")
    if text(terminating, "message"):
        yield f"Condition Terminating ({text(terminating, 'reason')}): {text(terminating, 'message')}"


def api_services(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Why an APIService does not answer, and what that holds up."""
    if item.group_kind != API_SERVICE:
        return
    body = context.body(item)
    available = condition(body, "Available")
    service = mapping(body, "spec", "service")
    if text(available, "status") != "False" or not service:
        return  # it answers; or it is served by the API server itself, as CRDs are
    name = Name("", "Service", text(service, "namespace"), text(service, "name"))
    root = behind(context.world, name)
    words = ": ".join(filter(None, (text(available, "reason"), text(available, "message"))))
    version = f"{text(body, 'spec', 'group')}/{text(body, 'spec', 'version')}"
    yield StuckCause(
        CauseCode.APISERVICE_DEAD,
        item,
        f"does not answer: {version} cannot be read, so no namespace can be proven empty",
        (f"Available is False{since(context.world, text(available, 'lastTransitionTime'))} ({words})",),
        because=(root,) if root else (),
        remedies=(
            *(() if root else (look_at(item, f"Bring {name} back", _ANSWERS_AGAIN),)),
            Remedy(
                "Delete the APIService, if its API is no longer needed",
                f"kubectl delete apiservice {quote(item.meta.name)}",
                f"Discovery works again. The objects of {version} cannot be reached until it is installed again.",
                UNGUARD,
                item,
            ),
        ),
        since=text(available, "lastTransitionTime"),
    )
