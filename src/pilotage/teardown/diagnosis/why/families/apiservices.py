"""APIServices: an aggregated API that does not answer makes discovery fail, and no namespace is then proven empty."""

from collections.abc import Iterator
from shlex import quote

from pilotage.teardown.diagnosis.remedies import UNGUARD, Remedy, look_at
from pilotage.teardown.diagnosis.why.backends import behind
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import condition, mapping, since, text
from pilotage.teardown.snapshot.world import Item, Name

GROUP = "apiregistration.k8s.io"


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Why an APIService does not answer, and what that holds up."""
    if item.group_kind != (GROUP, "APIService"):
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
            look_at(
                item,
                f"Bring {name} back",
                "The API answers again, and namespace deletions continue by themselves. Nothing leaks.",
            ),
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
