"""Admission that stands in the way: webhooks that are dead or say no, policies, and validation.

A delete is checked once, when it is asked for. The removal of a finalizer is an UPDATE and is checked as well: an
object that is being deleted can be held by a webhook or a schema that refuses to let its finalizer go. Both are proven
with a dry run; where none can be had, by what is seen behind the webhook.
"""

import re
from collections.abc import Iterator
from shlex import quote

from pilotage.catalogue.names import FOREGROUND, ORPHAN
from pilotage.kube import OwnerReference
from pilotage.kube.errors import ErrorClass
from pilotage.teardown.diagnosis.remedies import EDIT, LOOK, REPAIR, UNGUARD, Remedy, look_at, place, replay_delete
from pilotage.teardown.diagnosis.why import admission
from pilotage.teardown.diagnosis.why.admission import Hook
from pilotage.teardown.diagnosis.why.backends import behind
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.questions import Answer, DryRunDelete, DryRunUpdate
from pilotage.teardown.snapshot.world import Item, Name, World

# The garbage collector's own: what removes them is not a controller that anybody could bring back.
_COLLECTOR = (FOREGROUND, ORPHAN)

_FAILED = re.compile(r'failed calling webhook "([^"]+)"(?:: failed to call webhook)?: ?(.*)', re.DOTALL)
_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request(?:: (.*))?', re.DOTALL)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: (.*)", re.DOTALL)
_NO_DRY_RUN = "does not support dry run"

_FAILURES = (
    ("connection refused", CauseCode.WEBHOOK_UNREACHABLE, "refuses connections: nothing listens there"),
    ("not found", CauseCode.SERVICE_MISSING, "its Service does not exist"),
    ("no endpoints available", CauseCode.SERVICE_WITHOUT_ENDPOINTS, "its Service has no ready endpoints"),
    ("x509", CauseCode.WEBHOOK_CERTIFICATE_WRONG, "presents a certificate that its caBundle does not trust"),
    ("tls:", CauseCode.WEBHOOK_CERTIFICATE_WRONG, "fails the TLS handshake"),
    ("deadline exceeded", CauseCode.WEBHOOK_TIMES_OUT, "does not answer in time"),
    ("Timeout", CauseCode.WEBHOOK_TIMES_OUT, "does not answer in time"),
    ("no such host", CauseCode.WEBHOOK_UNREACHABLE, "has a host name that does not exist"),
)


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Webhooks and policies that refuse the delete of a present object, or the removal of a finalizer."""
    world = context.world
    if not item.terminating:
        yield from _on_delete(world, item)
    elif item.meta.finalizers:
        yield from _on_update(world, item)


def _on_delete(world: World, item: Item) -> Iterator[StuckCause]:
    hooks = admission.hooks(world, item, "DELETE")
    if not hooks or any(hook.keeps_usages for hook in hooks):
        return
    answer = None if any(hook.side_effects for hook in hooks) else world.ask(DryRunDelete(item.uid))
    refusal = _refusal(world, item, "delete", answer)
    if refusal:
        yield refusal
    elif not _was_let_through(answer):
        yield from _seen_dead(world, item, "delete", hooks)


def _on_update(world: World, item: Item) -> Iterator[StuckCause]:
    hooks = admission.hooks(world, item, "UPDATE")
    if not hooks and not admission.unread(world) and not _has_schema(world, item):
        return
    names = item.meta.finalizers
    finalizer = next((name for name in names if name not in _COLLECTOR), names[0])
    answer = None if any(hook.side_effects for hook in hooks) else world.ask(DryRunUpdate(item.uid, finalizer))
    refusal = _refusal(world, item, "update", answer)
    if refusal:
        yield refusal
    elif not _was_let_through(answer):
        yield from _seen_dead(world, item, "update", hooks)


def _has_schema(world: World, item: Item) -> bool:
    """Whether a CustomResourceDefinition says what it may look like: what was valid once may be no more."""
    name = f"{item.resource.plural}.{item.resource.group}"
    return world.find("apiextensions.k8s.io", "CustomResourceDefinition", "", name) is not None


def _was_let_through(answer: Answer | None) -> bool:
    return answer is not None and answer.error_class is None


# What the server said


def _refusal(world: World, item: Item, verb: str, answer: Answer | None) -> StuckCause | None:
    """The cause that a refused dry run tells; None where it tells none about admission."""
    if answer is None or answer.error_class is None or _NO_DRY_RUN in answer.message:
        return None
    if failed := _FAILED.search(answer.message):
        return _fails(world, item, verb, admission.find(world, failed[1]), failed[1], failed[2])
    if denied := _DENIED.search(answer.message):
        return _denies(world, item, verb, denied[1], denied[2] or "it gave no reason")
    if refused := _POLICY.search(answer.message):
        return _policy_denies(world, item, verb, refused[1], refused[2], refused[3])
    if verb == "update" and answer.error_class == ErrorClass.INVALID:
        return _is_invalid(world, item, answer.message)
    return None


def _fails(world: World, item: Item, verb: str, hook: Hook | None, name: str, problem: str) -> StuckCause:
    subject = hook.configuration if hook else _unseen(name)
    code, what = next(
        ((code, what) for word, code, what in _FAILURES if word in problem), (None, "answers with an error")
    )
    root = behind(world, hook.service) if hook and hook.service else None
    if root is None:
        root = StuckCause(
            code or CauseCode.WEBHOOK_ERRS,
            subject,
            f"webhook {name} {what}",
            (problem,),
            remedies=_bring_back(hook, name),
        )
    return StuckCause(
        CauseCode.WEBHOOK_FAILS_ON_DELETE if verb == "delete" else CauseCode.WEBHOOK_FAILS_ON_UPDATE,
        subject,
        f"{_effect(verb)}: its webhook {name} is asked about every {verb}, and fails",
        (f"the API server says: {problem}",),
        because=(root,),
        remedies=(*_again(world, item, verb), *_switch_off(hook)),
    )


def _denies(world: World, item: Item, verb: str, name: str, message: str) -> StuckCause:
    hook = admission.find(world, name)
    subject = hook.configuration if hook else _unseen(name)
    return StuckCause(
        CauseCode.WEBHOOK_DENIES_DELETE if verb == "delete" else CauseCode.WEBHOOK_DENIES_UPDATE,
        subject,
        f"{_effect(verb)}: its webhook {name} denies it",
        (f"it says: {message}",),
        remedies=(_comply(item, verb, message), *_again(world, item, verb), *_remove(hook)),
    )


def _policy_denies(world: World, item: Item, verb: str, policy: str, binding: str, message: str) -> StuckCause:
    found = world.find(admission.GROUP, "ValidatingAdmissionPolicy", "", policy)
    return StuckCause(
        CauseCode.POLICY_DENIES_DELETE if verb == "delete" else CauseCode.POLICY_DENIES_UPDATE,
        found or Name(admission.GROUP, "ValidatingAdmissionPolicy", "", policy),
        f"{_effect(verb)}: this policy denies it",
        (f"it says: {message}", f"it is bound by validatingadmissionpolicybinding/{binding}"),
        remedies=(
            _comply(item, verb, message),
            *_again(world, item, verb),
            Remedy(
                "Take its binding away",
                f"kubectl delete validatingadmissionpolicybinding {quote(binding)}",
                "Nothing is checked by this policy any more, here and wherever else it was bound by it.",
                UNGUARD,
                found,
            ),
        ),
    )


def _is_invalid(world: World, item: Item, message: str) -> StuckCause:
    name = f"{item.resource.plural}.{item.resource.group}"
    crd = world.find("apiextensions.k8s.io", "CustomResourceDefinition", "", name)
    remedies = [
        Remedy(
            "Change the object so that it is valid again",
            f"kubectl edit {place(item)}",
            "Its controller can let go of it then, and it goes. Nothing leaks.",
            REPAIR,
            item,
        )
    ]
    if crd:
        remedies.append(
            Remedy(
                "Loosen the rule in its CustomResourceDefinition",
                f"kubectl edit customresourcedefinition {quote(name)}",
                "The object can be changed again, and so can every other one of its kind that breaks the rule.",
                EDIT,
                crd,
            )
        )
    return StuckCause(
        CauseCode.VALIDATION_REJECTS_UPDATE,
        crd or item,
        f"holds {item}: the API refuses any change of it as not valid, the removal of its finalizer too",
        (f"the API server says: {message}",),
        remedies=tuple(remedies),
    )


# What is seen without asking


def _seen_dead(world: World, item: Item, verb: str, hooks: list[Hook]) -> Iterator[StuckCause]:
    """Webhooks that match and have nobody behind them: not proven, because the server could not be asked."""
    for hook in hooks:
        root = behind(world, hook.service) if hook.service and hook.fails_closed else None
        if root:
            yield StuckCause(
                CauseCode.WEBHOOK_FAILS_ON_DELETE if verb == "delete" else CauseCode.WEBHOOK_FAILS_ON_UPDATE,
                hook.configuration,
                f"{_effect(verb)}: its webhook {hook.name} is asked about every {verb}, and nothing answers",
                ("its rules match; no dry run could prove it",),
                Confidence.MEDIUM if hook.certain else Confidence.LOW,
                because=(root,),
                remedies=(*_again(world, item, verb), *_switch_off(hook)),
            )


# Words and remedies


def _effect(verb: str) -> str:
    return "refuses the delete" if verb == "delete" else "keeps the finalizer from being removed"


def _unseen(name: str) -> Name:
    return Name(admission.GROUP, "ValidatingWebhookConfiguration", "", name)


def _bring_back(hook: Hook | None, name: str) -> tuple[Remedy, ...]:
    where = f"Its address: {hook.url}. " if hook and hook.url else ""
    command = f"kubectl get {quote(hook.kind.lower())} {quote(hook.configuration.meta.name)} -o yaml" if hook else ""
    return (
        Remedy(
            f"Bring the webhook {name} back",
            command,
            f"{where}What was refused passes then. Nothing leaks.",
            LOOK,
            hook.configuration if hook else None,
        ),
    )


def _comply(item: Item, verb: str, message: str) -> Remedy:
    """A no is somebody's decision: the first thing to do is what it asks for."""
    return look_at(item, f"Change what it objects to ({message[:120]})", f"The {verb} passes then. Nothing leaks.")


def _again(world: World, item: Item, verb: str) -> tuple[Remedy, ...]:
    """The delete once more, where whoever sent it does not repeat it soon.

    The namespace controller and the operator do; the garbage collector, only after a long while; a person, never.
    """
    if verb == "delete" and any(_lets_collect(world, item, owner) for owner in item.meta.owner_references):
        return (replay_delete(item),)
    return ()


def _lets_collect(world: World, item: Item, owner: OwnerReference) -> bool:
    """Whether the garbage collector deletes an object for this owner: it is gone, or waits in the foreground."""
    there = world.get(owner.uid)
    if there is not None:
        return there.terminating and FOREGROUND in there.meta.finalizers
    group = owner.api_version.rpartition("/")[0]
    return not world.problem(group, owner.kind, item.meta.namespace)


def _switch_off(hook: Hook | None) -> tuple[Remedy, ...]:
    if hook is None:
        return ()
    patch = f'[{{"op":"replace","path":"/webhooks/{hook.position}/failurePolicy","value":"Ignore"}}]'
    return (
        Remedy(
            "Let requests pass while the webhook is down",
            f"kubectl patch {quote(hook.kind.lower())} {quote(hook.configuration.meta.name)} --type=json -p '{patch}'",
            "Until it is back, nothing is checked by it. Set failurePolicy back to Fail afterwards.",
            UNGUARD,
            hook.configuration,
        ),
        *_remove(hook),
    )


def _remove(hook: Hook | None) -> tuple[Remedy, ...]:
    if hook is None:
        return ()
    return (
        Remedy(
            "Delete the webhook configuration",
            f"kubectl delete {quote(hook.kind.lower())} {quote(hook.configuration.meta.name)}",
            "Nothing is checked by any of its webhooks any more, until its operator makes it again.",
            UNGUARD + 1,
            hook.configuration,
        ),
    )
