"""``--fix``: one remedy at a time, of those that an explanation offers, on exactly the object that it was offered for.

`propose` finds the remedy and says what it does and what may leak; nothing is changed. `fix` does it. Both refuse what
the explanation does not offer. Every write carries the uid; the removal of a finalizer carries the version that was
explained as well, needs the finalizer's own name from a person, and is only ever done to what is being deleted. After
it has acted, `fix` reads the object again and reports what it finds, not what it hopes.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from pilotage.catalogue.names import FOREGROUND
from pilotage.kube import Client, Object
from pilotage.kube.errors import Absent, ApiError, Conflict, Forbidden, Foreign, Throttled, Unavailable, Uncertain
from pilotage.kube.options import Propagation
from pilotage.kube.patches import without_finalizer
from pilotage.teardown.diagnosis.remedies import REDRIVE_FOREGROUND, REPLAY_DELETE, STRIP_FINALIZER, Remedy, place
from pilotage.teardown.diagnosis.why.families.pods import FORCE_DELETE_POD
from pilotage.teardown.diagnosis.why.model import Explanation, all_causes
from pilotage.teardown.snapshot.world import Item, World

CODES = (REPLAY_DELETE, REDRIVE_FOREGROUND, FORCE_DELETE_POD, STRIP_FINALIZER)
"""Proposals for an explanation, from the least destructive up."""


class FixRefused(Exception):
    """It was not even tried: what is wrong, what to do instead, and the command that the advice ends in, if it does."""

    def __init__(self, problem: str, advice: str, command: str = "") -> None:
        super().__init__(f"{problem} {advice} {command}".rstrip())
        self.problem = problem
        self.advice = advice
        self.command = command


class Proposal(NamedTuple):
    """A write that would be sent, its object, and the reason."""

    remedy: Remedy
    subject: Item
    finalizer: str
    """Finalizer, only of `strip-finalizer`."""

    def describe(self) -> list[str]:
        """Text for a person who is about to say yes: what is sent, to what, and what may leak."""
        meta = self.subject.meta
        lines = [
            f"{self.subject} (uid {meta.uid})",
            _ACTS[self.remedy.code].format(finalizer=self.finalizer, name=self.subject),
            self.remedy.effect,
        ]
        if self.remedy.code == STRIP_FINALIZER:
            others = [name for name in meta.finalizers if name != self.finalizer]
            kept = f"Its other finalizers stay: {', '.join(others)}." if others else "It has no other: it is gone then."
            lines.append(kept)
        return lines


_ACTS = {
    REPLAY_DELETE: "Sends DELETE for {name}, in the background, for this uid alone.",
    REDRIVE_FOREGROUND: "Sends DELETE for {name} again, in the background this time, for this uid alone. "
    "The server then drops foregroundDeletion.",
    FORCE_DELETE_POD: "Sends DELETE for {name} with no grace, for this uid alone: its record goes at once.",
    STRIP_FINALIZER: "Removes the finalizer {finalizer} from {name}, "
    "if it is still the same object at the same version.",
}


class FixOutcome(enum.StrEnum):
    """The end of a fix."""

    GONE = "gone"
    """The object is gone."""
    GOING = "going"
    """It was done; the object is still there, and is being deleted."""
    REFUSED = "refused"
    """Nothing was changed."""
    UNKNOWN = "unknown"
    """It was sent, and whether it was done could not be read."""


class FixResult(NamedTuple):
    """Result of a fix: a sentence, the next step (empty where there is none) with its command, and the changes."""

    proposal: Proposal
    outcome: FixOutcome
    said: str
    advice: str = ""
    command: str = ""
    changes: tuple[str, ...] = ()


# Finding it


def propose(world: World, explanation: Explanation, code: str, *, subject: str = "", finalizer: str = "") -> Proposal:
    """The remedy of this code. `subject` (``kind/name``) tells where it is offered for several objects.

    Raises FixRefused.
    """
    if not world.live:
        raise FixRefused("A dump cannot be changed.", "Ask without a dump, of the cluster itself.")
    if code not in CODES:
        raise FixRefused(f"There is no fix {code!r}.", f"Those are: {', '.join(CODES)}.")
    offered = list(_offers(explanation, code))
    if not offered:
        raise FixRefused(f"Nothing here calls for {code}.", _instead(explanation))
    chosen = [each for each in offered if not subject or subject in (str(each[1]), _word(each[1]))]
    if not chosen:
        named = ", ".join(dict.fromkeys(_word(item) for _, item in offered))
        raise FixRefused(f"{code} is not offered for {subject}.", f"It is for: {named}.")
    if code == STRIP_FINALIZER:
        chosen = _by_finalizer(chosen, finalizer)
    if len({item.uid for _, item in chosen}) > 1:
        named = ", ".join(dict.fromkeys(_word(item) for _, item in chosen))
        raise FixRefused(f"{code} is offered for several objects: {named}.", "Ask why about one of them, and fix that.")
    remedy, item = chosen[0]
    return _checked(Proposal(remedy, world.get(item.uid) or item, finalizer if code == STRIP_FINALIZER else ""))


def _word(item: Item) -> str:
    return f"{item.resource.kind.lower()}/{item.meta.name}"


def _offers(explanation: Explanation, code: str) -> Iterator[tuple[Remedy, Item]]:
    for remedy in _remedies(explanation):
        if remedy.code == code and isinstance(remedy.subject, Item):
            yield remedy, remedy.subject


def _remedies(explanation: Explanation) -> Iterator[Remedy]:
    return (remedy for cause in all_causes(explanation.causes) for remedy in cause.remedies)


def _instead(explanation: Explanation) -> str:
    codes = {remedy.code for remedy in _remedies(explanation)} & set(CODES)
    if not codes:
        return "Do one of the other remedies by hand, if there is any."
    return f"What can be done here: {', '.join(code for code in CODES if code in codes)}."


def _by_finalizer(offered: list[tuple[Remedy, Item]], finalizer: str) -> list[tuple[Remedy, Item]]:
    """Those for this finalizer. A person has to name it: no finalizer is ever chosen for them."""
    names = ", ".join(dict.fromkeys(remedy.detail for remedy, _ in offered))
    if not finalizer:
        raise FixRefused("A finalizer is only removed by its own name.", f"Say --finalizer with one of: {names}.")
    chosen = [each for each in offered if each[0].detail == finalizer]
    if not chosen:
        raise FixRefused(f"The removal of the finalizer {finalizer} is not offered.", f"Those are: {names}.")
    return chosen


def _checked(proposal: Proposal) -> Proposal:
    """Refuse what the observed state does not allow: the server would do some of these to an object that stays."""
    item, code = proposal.subject, proposal.remedy.code
    again = "Ask again:", f"pilotage why {place(item)}"
    if code == REPLAY_DELETE and item.terminating:
        raise FixRefused(f"{item} is being deleted already.", *again)
    if code != REPLAY_DELETE and not item.terminating:
        raise FixRefused(f"{item} is not being deleted.", "Delete it first:", f"pilotage delete {place(item)}")
    if code == STRIP_FINALIZER and proposal.finalizer not in item.meta.finalizers:
        raise FixRefused(f"{item} does not have the finalizer {proposal.finalizer}.", *again)
    if code == REDRIVE_FOREGROUND and FOREGROUND not in item.meta.finalizers:
        raise FixRefused(f"{item} is not in a foreground deletion.", *again)
    if code == FORCE_DELETE_POD and item.group_kind != ("", "Pod"):
        raise FixRefused(f"{item} is not a pod.", *again)
    return proposal


# Doing it


async def fix(
    client: Client, world: World, explanation: Explanation, code: str, *, subject: str = "", finalizer: str = ""
) -> FixResult:
    """Do one remedy, and say what came of it. Raises FixRefused where it is not offered; API errors are results."""
    proposal = propose(world, explanation, code, subject=subject, finalizer=finalizer)
    try:
        await _act(client, proposal)
    except Absent:
        return FixResult(proposal, FixOutcome.GONE, f"{proposal.subject} was gone already.")
    except Uncertain as error:
        return await _look_again(client, proposal, f"No answer came to it ({_words(error)}).")
    except ApiError as error:
        return _refused(proposal, error)
    return await _look_again(client, proposal, "")


async def _act(client: Client, proposal: Proposal) -> None:
    item = proposal.subject
    resource, key = item.resource, item.object.key
    if proposal.remedy.code == STRIP_FINALIZER:
        patch = without_finalizer(item.object, proposal.finalizer)
        assert patch is not None  # `_checked` has seen it
        await client.patch(resource, key, patch)
        return
    await client.delete(
        resource,
        key,
        uid=item.uid,
        propagation=Propagation.BACKGROUND,
        grace_seconds=0 if proposal.remedy.code == FORCE_DELETE_POD else None,
    )


def _refused(proposal: Proposal, error: ApiError) -> FixResult:
    """One sentence on what happened, one on what to do, by the class of the error."""
    item = proposal.subject
    again, command = "Ask again:", f"pilotage why {place(item)}"
    match error:
        case Foreign():
            said, advice = f"Another object has the name of {item} by now; it was not touched.", again
        case Conflict() if proposal.remedy.code == STRIP_FINALIZER and not _by_admission(error):
            said = f"{item} has changed since it was read, and nothing was done."
            advice = f"Another client may be changing it. {again}"
        case _ if _by_admission(error):
            said = f"Admission refused it: {_words(error)}."
            advice = "See who it was, and what to do about that:"
        case Forbidden():
            said = f"You may not do that: {_words(error)}."
            advice, command = f"Ask an administrator for the verb {_verb(proposal)} on {item.resource}.", ""
        case Throttled():
            said, advice, command = f"The API server is too busy: {_words(error)}.", "Try again in a while.", ""
        case Unavailable():
            said, advice, command = f"The API server did not do it: {_words(error)}.", "Try again in a while.", ""
        case _:
            said, advice = f"The API server refused it: {_words(error)}.", again
    return FixResult(proposal, FixOutcome.REFUSED, said, advice, command)


def _words(error: ApiError) -> str:
    """The server's own words, as a part of a sentence."""
    return error.message.rstrip(".")


def _by_admission(error: ApiError) -> bool:
    words = ("admission webhook", "failed calling webhook", "ValidatingAdmissionPolicy")
    return any(word in error.message for word in words)


def _verb(proposal: Proposal) -> str:
    return "patch" if proposal.remedy.code == STRIP_FINALIZER else "delete"


# Looking again


async def _look_again(client: Client, proposal: Proposal, doubt: str) -> FixResult:
    """State after the write. `doubt`: why it is not known whether the write was applied."""
    item = proposal.subject
    again = "Check again:", f"pilotage why {place(item)}"
    try:
        now = await client.get(item.resource, item.object.key, metadata_only=True)
    except Absent:
        return FixResult(proposal, FixOutcome.GONE, f"{item} is gone.", changes=(f"{item} is gone",))
    except ApiError as error:
        said = f"{doubt or 'It was sent.'} {item} could not be read afterwards: {_words(error)}."
        return FixResult(proposal, FixOutcome.UNKNOWN, said, *again)
    if now.meta.uid != item.uid:
        said = f"{item} is gone. Another object has its name by now (uid {now.meta.uid}); it was not touched."
        return FixResult(proposal, FixOutcome.GONE, said, changes=(f"{item} is gone",))
    changes = _changes(item.object, now)
    if not changes:
        said = f"{doubt} Nothing has changed." if doubt else f"{item} is as it was."
        return FixResult(proposal, FixOutcome.REFUSED if doubt else FixOutcome.UNKNOWN, said.strip(), *again)
    left = f"it waits for {', '.join(now.meta.finalizers)}" if now.meta.finalizers else "it is about to go"
    return FixResult(proposal, FixOutcome.GOING, f"It was done. {item} is still there: {left}.", *again, changes)


def _changes(before: Object, now: Object) -> tuple[str, ...]:
    """Differences, in words."""
    changes = [f"finalizer {name} is off" for name in before.meta.finalizers if name not in now.meta.finalizers]
    changes += [f"finalizer {name} is on" for name in now.meta.finalizers if name not in before.meta.finalizers]
    if now.meta.terminating and not before.meta.terminating:
        changes.append(f"it has been terminating since {now.meta.deletion_timestamp}")
    grace = now.meta.deletion_grace_period_seconds
    if before.meta.terminating and grace != before.meta.deletion_grace_period_seconds:
        changes.append(f"its grace is {grace} s now")
    return tuple(changes)
