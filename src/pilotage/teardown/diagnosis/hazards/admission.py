"""Webhooks and policies that would refuse a delete, or the removal of a finalizer; and APIs that do not answer.

Proven with a dry run on one object of each kind, where a webhook or a policy is asked about it at all. Crossplane's
usage webhook writes every attempt down, a dry run too, and is never asked.
"""

import re
from collections.abc import Iterator
from shlex import quote

from pilotage.kube.errors import ErrorClass
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, HazardGroup, Outlook
from pilotage.teardown.diagnosis.why.admission import GROUP, WEBHOOK_KINDS, Hook, hooks
from pilotage.teardown.planning.ledger import HOLD
from pilotage.teardown.snapshot.fields import condition, mapping, text
from pilotage.teardown.snapshot.questions import Answer, DryRunDelete, DryRunUpdate
from pilotage.teardown.snapshot.world import Item

_FAILED = re.compile(r'failed calling webhook "([^"]+)"')
_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request')
_NO_DRY_RUN = "does not support dry run"
_GONE_SINCE = (ErrorClass.ABSENT, ErrorClass.FOREIGN)
_NOT_PERMITTED = re.compile(r"User .* cannot \w+ resource")
"""The words of RBAC: what we may not do is told by `permissions`."""
_WHAT = {"DELETE": "deletes", "UPDATE": "the removal of finalizers"}


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """Answers of admission to deletes and updates; then the APIs that keep a namespace from going."""
    if any(outlook.world.of(GROUP, kind) for kind in (*WEBHOOK_KINDS, "ValidatingAdmissionPolicy")):
        for operation in _WHAT:
            for group, met in _met(outlook, operation):
                yield from _judge(outlook, operation, group, met)
    if any(outlook.namespaces()):
        yield from _dead_apis(outlook)


def _met(outlook: Outlook, operation: str) -> Iterator[tuple[HazardGroup, list[Hook]]]:
    """Kinds whose objects meet the same webhooks, with one object of each."""
    met: dict[object, list[Hook]] = {}

    def keyed() -> Iterator[tuple[object, Item]]:
        for item in outlook.going.values():
            found = hooks(outlook.world, item, operation) if _is_to_come(outlook, item, operation) else []
            if found:
                names = tuple((hook.configuration.uid, hook.name) for hook in found)
                key = item.group_kind, item.meta.namespace, names
                met[key] = found
                yield key, item

    groups = outlook.groups(keyed())
    return ((group, met[key]) for key, group in groups.items())


def _is_to_come(outlook: Outlook, item: Item, operation: str) -> bool:
    """Whether it is to be deleted yet; or written to, because its finalizers have to be removed, or we hold it."""
    if operation == "DELETE":
        return not item.terminating
    return bool(item.meta.finalizers) or outlook.entry(item).hold


def _judge(outlook: Outlook, operation: str, group: HazardGroup, met: list[Hook]) -> Iterator[Hazard]:
    answer = None
    if not any(hook.side_effects or hook.keeps_usages for hook in met):
        answer = _dry_run(outlook, operation, group.example)
    if answer is not None and answer.error_class is None:
        return
    if answer is not None and _NO_DRY_RUN not in answer.message:
        yield from _refused(operation, group, met, answer)
        return
    from pilotage.teardown.diagnosis.why.backends import behind

    for hook in met:
        root = behind(outlook.world, hook.service) if hook.service and hook.fails_closed else None
        if root:
            yield Hazard(
                HazardCode.WEBHOOK_FAILS,
                hook.configuration,
                f"is asked about {_WHAT[operation]} of {group}, and nothing answers its webhook {hook.name}",
                hook.certain,
                f"Bring {hook.service} back first.",
                (f"{root.subject} {root.text}", *root.evidence),
            )


def _dry_run(outlook: Outlook, operation: str, item: Item) -> Answer | None:
    if operation == "DELETE":
        return outlook.world.ask(DryRunDelete(item.uid))
    finalizer = next((name for name in item.meta.finalizers if name != HOLD), "")
    return outlook.world.ask(DryRunUpdate(item.uid, finalizer)) if finalizer else None


def _refused(operation: str, group: HazardGroup, met: list[Hook], answer: Answer) -> Iterator[Hazard]:
    """The server's own words tell who refuses."""
    if answer.error_class in _GONE_SINCE or _NOT_PERMITTED.search(answer.message):
        return
    by_name = {hook.name: hook for hook in met}
    deleting = operation == "DELETE"  # an update was tried as us: to its controller the answer may be another
    what = f"{_WHAT[operation]} of {group}"
    if failed := _FAILED.search(answer.message):
        hook = by_name.get(failed[1], met[0])
        bring = f"Bring {hook.service or hook.url or failed[1]} back first."
        words = f"is asked about {what}, and its webhook {failed[1]} fails"
        yield Hazard(HazardCode.WEBHOOK_FAILS, hook.configuration, words, True, bring, (answer.message,))
    elif denied := _DENIED.search(answer.message):
        hook = by_name.get(denied[1], met[0])
        words = f"refuses {what}: its webhook {denied[1]} denies it"
        advice = "Do what it asks for first."
        yield Hazard(HazardCode.WEBHOOK_DENIES, hook.configuration, words, deleting, advice, (answer.message,))
    elif answer.error_class in (ErrorClass.FORBIDDEN, ErrorClass.INVALID, ErrorClass.CONFLICT):
        yield Hazard(
            HazardCode.ADMISSION_REFUSES,
            group.example,
            f"is refused: the API server does not take {what}",
            deleting,
            "Do what it says first.",
            (answer.message,),
        )
    else:
        yield Hazard(
            HazardCode.ADMISSION_REFUSES,
            group.example,
            f"could not be tried: a dry run for {what} failed",
            False,
            "",
            (answer.message,),
        )


def _dead_apis(outlook: Outlook) -> Iterator[Hazard]:
    for item in outlook.world.of("apiregistration.k8s.io", "APIService"):
        body = outlook.world.body(item)
        available = condition(body, "Available")
        if text(available, "status") != "False" or not mapping(body, "spec", "service") or outlook.goes(item):
            continue
        yield Hazard(
            HazardCode.APISERVICE_DEAD,
            item,
            "does not answer: until it does, no namespace is proven empty, and none goes",
            True,
            "Bring its Service back, or, if it is not needed:",
            tuple(filter(None, (text(available, "reason"), text(available, "message")))),
            f"kubectl delete apiservice {quote(item.meta.name)}",
        )
