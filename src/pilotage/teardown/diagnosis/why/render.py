"""An explanation as text for a person, and as JSON for a program. No colours: whoever prints it adds them.

A line of the tree is the cause's text. Where it is about another object than the line above, and does not name it, that
object's name goes before it.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import STRIP_FINALIZER, Remedy
from pilotage.teardown.diagnosis.why.codes import NOTES, UNCERTAIN
from pilotage.teardown.diagnosis.why.model import (
    Confidence,
    Explanation,
    StuckCause,
    StuckVerdict,
    all_causes,
    roots_of,
)
from pilotage.teardown.snapshot.world import Item, Name

ROOT_MARK = "← root cause"
WIDTH_MAX = 100
EXIT_CODES = {StuckVerdict.NOT_STUCK: 0, StuckVerdict.STUCK: 1, StuckVerdict.UNKNOWN: 3}
EVIDENCE_MAX = 8
SERVING_NAMED_MAX = 12
_WORD = re.compile(r"^[a-z]+(?=[/:,;]|\s|$)")
_SURENESS = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)


def render(explanation: Explanation, complete: Callable[[str], str] = str) -> list[str]:
    """The lines that `pilotage why` prints. `complete` completes the command of a remedy."""
    lines = [f"{explanation.subject}  {explanation.headline}"]
    marks = _Marks(explanation)
    for place, cause in enumerate(explanation.causes):
        last = place == len(explanation.causes) - 1
        lines += _tree(cause, explanation.subject, str(explanation.subject), "", marks, last=last)
    lines += _footer(explanation)
    return lines + _advice(explanation, complete)


def _advice(explanation: Explanation, complete: Callable[[str], str]) -> list[str]:
    """The remedies; below the cause that they are for, where there are several such causes."""
    groups = remedy_groups(explanation)
    if not groups:
        return []
    lines = ["", "What to do, least destructive first"]
    number = 0
    for group in groups:
        if len(groups) > 1:
            lines.append(f"About {_about(group.root)}")
        for remedy in group.remedies:
            number += 1
            lines += [f"{number}. {remedy.title}:  {complete(remedy.command)}", f"   {remedy.effect}"]
    return lines


def _about(root: StuckCause) -> str:
    named = str(root.subject)
    line = root.text if named in root.text else f"{named}: {root.text}"
    return line if len(line) <= WIDTH_MAX else f"{line[: WIDTH_MAX - 1]}…"


def to_json(explanation: Explanation, complete: Callable[[str], str] = str) -> Json:
    """An explanation for programs. `complete` completes the command of a remedy."""
    return {
        "subject": _subject(explanation.subject),
        "verdict": explanation.verdict.value,
        "exitCode": exit_code(explanation),
        "headline": explanation.headline,
        "confidence": confidence(explanation).value,
        "causes": [_cause(cause, complete) for cause in explanation.causes],
        "rootCauses": [{"code": str(root.code), "subject": _subject(root.subject)} for root in explanation.roots],
        "stillServing": [_subject(item) for item in explanation.still_serving],
        "unread": list(explanation.unread),
        "remedies": [_remedy(remedy, complete) for remedy in remedies_of(explanation)],
    }


def exit_code(explanation: Explanation) -> int:
    """0: nothing is stuck; 1: stuck, with a cause; 3: too little could be read."""
    return EXIT_CODES[explanation.verdict]


def confidence(explanation: Explanation) -> Confidence:
    """The least sure step of the chains that made the verdict.

    Causes that are only notes do not count where something else made it.
    """
    chains = list(_chains(explanation))
    deciding = [sure for root, sure in chains if root.code not in NOTES] or [sure for _, sure in chains]
    if not deciding:
        return Confidence.LOW if explanation.verdict is StuckVerdict.UNKNOWN else Confidence.HIGH
    return min(deciding, key=_SURENESS.index)


def remedies_of(explanation: Explanation) -> list[Remedy]:
    """All remedies of all causes, each once, from the least destructive up; to remove a finalizer comes last."""
    return sorted((remedy for group in remedy_groups(explanation) for remedy in group.remedies), key=_destruction)


class RemedyGroup(NamedTuple):
    """The remedies for one root cause, from the least destructive up."""

    root: StuckCause
    remedies: list[Remedy]


def remedy_groups(explanation: Explanation) -> list[RemedyGroup]:
    """The remedies by root cause, each once. Those of a step on the way belong to the first root below it."""
    found: dict[int, tuple[StuckCause, list[Remedy]]] = {}
    seen: set[tuple[str, str]] = set()
    for cause in all_causes(explanation.causes):
        (root, *_) = roots_of([cause])
        for remedy in cause.remedies:
            if (remedy.title, remedy.command) not in seen:
                seen.add((remedy.title, remedy.command))
                found.setdefault(id(root), (root, []))[1].append(remedy)
    return [RemedyGroup(root, sorted(remedies, key=_destruction)) for root, remedies in found.values()]


def _destruction(remedy: Remedy) -> tuple[bool, int]:
    return remedy.code == STRIP_FINALIZER, remedy.harm


# The tree


class _Marks:
    """Causes that are marked as root causes: those that made the verdict."""

    def __init__(self, explanation: Explanation) -> None:
        roots = explanation.roots
        real = [root for root in roots if root.code not in NOTES | UNCERTAIN]
        self._marked = {id(root) for root in real}

    def __contains__(self, cause: StuckCause) -> bool:
        return id(cause) in self._marked


def _tree(
    cause: StuckCause, above: Item | Name, line_above: str, indent: str, marks: _Marks, *, last: bool
) -> Iterator[str]:
    text = cause.text
    named = str(cause.subject)
    if named != str(above) and named not in text and named not in line_above:
        text = f"{named}: {text}"
    line = f"{indent}{'└─' if last else '├─'} {text}"
    if cause in marks:
        line = f"{line.ljust(WIDTH_MAX - len(ROOT_MARK) - 2)}  {ROOT_MARK}"
    yield line
    deeper = indent + ("   " if last else "│  ")
    for place, further in enumerate(cause.because):
        yield from _tree(further, cause.subject, text, deeper, marks, last=place == len(cause.because) - 1)


def _footer(explanation: Explanation) -> list[str]:
    lines = [""]
    if explanation.still_serving:
        lines.append(f"Still serving: {_serving(explanation)}")
    if explanation.causes:
        evidence = list(dict.fromkeys(line for root in explanation.roots for line in root.evidence))
        shown = " ".join(_sentence(line) for line in evidence[:EVIDENCE_MAX])
        lines.append(f"Confidence: {confidence(explanation)}.{' ' + shown if shown else ''}")
    if explanation.unread:
        lines.append(f"Could not be read: {'; '.join(explanation.unread)}")
    return lines if len(lines) > 1 else []


def _serving(explanation: Explanation) -> str:
    pods = [item for item in explanation.still_serving if item.group_kind == ("", "Pod")]
    others = [item for item in explanation.still_serving if item.group_kind != ("", "Pod")]
    here = explanation.subject.home
    names = [_short(item, here) for item in others[:SERVING_NAMED_MAX]]
    if len(others) > SERVING_NAMED_MAX:
        names.append(f"{len(others) - SERVING_NAMED_MAX} more")
    if pods:
        names.append("1 pod" if len(pods) == 1 else f"{len(pods)} pods")
    return ", ".join(names)


def _short(item: Item, namespace: str) -> str:
    """Its name, without the namespace where that is clear."""
    name = str(item)
    return name.removesuffix(f" -n {namespace}") if namespace else name


def _sentence(line: str) -> str:
    """A line as a sentence. Its first word gets a capital letter, unless it is a name that would be another one then.

    The kind of an object is a word: kubectl takes ``Deployment/a`` as well.
    """
    line = _WORD.sub(lambda found: found[0].capitalize(), line.strip(), count=1)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


# Walks


def _chains(explanation: Explanation) -> Iterator[tuple[StuckCause, Confidence]]:
    """Each root with how sure the chain down to it is."""
    open_ = [(cause, Confidence.HIGH) for cause in reversed(explanation.causes)]
    while open_:
        cause, so_far = open_.pop()
        sure = min(so_far, cause.confidence, key=_SURENESS.index)
        if not cause.because:
            yield cause, sure
        open_ += ((further, sure) for further in reversed(cause.because))


# JSON


def _subject(subject: Item | Name) -> Json:
    name = subject.name if isinstance(subject, Item) else subject
    found: Json = {"group": name.group, "kind": name.kind, "namespace": name.namespace, "name": name.name}
    if isinstance(subject, Item):
        found["uid"] = subject.uid
    return found


def _cause(cause: StuckCause, complete: Callable[[str], str]) -> Json:
    found: Json = {
        "code": str(cause.code),
        "subject": _subject(cause.subject),
        "text": cause.text,
        "confidence": cause.confidence.value,
        "evidence": list(cause.evidence),
        "because": [_cause(further, complete) for further in cause.because],
        "remedies": [_remedy(remedy, complete) for remedy in cause.remedies],
    }
    if cause.since:
        found["since"] = cause.since
    return found


def _remedy(remedy: Remedy, complete: Callable[[str], str]) -> Json:
    found: Json = {
        "code": remedy.code,
        "title": remedy.title,
        "command": complete(remedy.command),
        "effect": remedy.effect,
        "harm": remedy.harm,
    }
    if remedy.subject is not None:
        found["subject"] = _subject(remedy.subject)
    if remedy.detail:
        found["detail"] = remedy.detail
    return found
