"""Permissions that are missing, asked once for each kind and namespace; one question is enough for an administrator."""

from collections.abc import Iterator
from shlex import quote

import msgspec

from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.planning.ledger import Disposition, Entry
from pilotage.teardown.snapshot.questions import MayI

EVERYTHING = MayI("*", "*", "*", "")


class _Verb(msgspec.Struct, frozen=True):
    code: HazardCode
    blocks: bool
    text: str


_VERBS = {
    "delete": _Verb(HazardCode.MAY_NOT_DELETE, True, "may not be deleted by you"),
    "list": _Verb(HazardCode.MAY_NOT_READ, True, "may not be listed by you, so nothing of it can be proven gone"),
    "watch": _Verb(HazardCode.MAY_NOT_WATCH, False, "may not be watched by you, so it is polled instead"),
    "patch": _Verb(
        HazardCode.MAY_NOT_PATCH,
        True,
        "may not be patched by you, so it can neither be held nor kept from its owner",
    ),
}


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """Verbs that we lack for the kinds of this ledger."""
    world = outlook.world
    everything = world.ask(EVERYTHING)
    if everything is None or (everything.allowed and everything.error_class is None):
        return  # not answered yet; or all is allowed
    asked: dict[MayI, Entry] = {}
    for entry in outlook.ledger.entries:
        for each in _verbs(entry):
            question = MayI(each, entry.resource.group, entry.resource.plural, entry.namespace)
            asked.setdefault(question, entry)
    for question, entry in asked.items():
        answer = world.ask(question)
        if answer is None or answer.allowed or answer.error_class is not None:
            continue  # an error says nothing about the permission
        verb = _VERBS[question.verb]
        place = f" in namespace {question.namespace}" if question.namespace else ""
        kind = f"{question.plural}.{question.group}".rstrip(".")
        yield Hazard(
            verb.code,
            entry.full_name,
            verb.text,
            verb.blocks,
            f"Ask for the verb {question.verb} on {kind}{place}:",
            (answer.message,) if answer.message else (),
            f"kubectl auth can-i {question.verb} {quote(kind)}"
            + (f" -n {quote(question.namespace)}" if question.namespace else ""),
        )


def _verbs(entry: Entry) -> Iterator[str]:
    if entry.disposition is Disposition.KEEP:
        if entry.disown:
            yield "patch"
        return
    yield "list"
    yield "watch"
    if entry.disposition is Disposition.DELETE:
        yield "delete"
    if entry.hold:
        yield "patch"
