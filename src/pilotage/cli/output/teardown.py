"""A teardown in words: its progress, and how it ended. Of a wait, always the cause, on whom, since and until when."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from pilotage.catalogue.phase import Phase
from pilotage.cli.output.objects import print_object, print_report
from pilotage.cli.output.progress import EVENT_FORMS, Renderer, Row, RowState, print_event
from pilotage.cli.output.text import say
from pilotage.kube.wire import format_time
from pilotage.runtime.clock import utc_now
from pilotage.teardown.diagnosis.remedies import spelled
from pilotage.teardown.planning.ledger import Disposition, Entry

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pilotage.kube import Object
    from pilotage.teardown.engine.decision import Decision, Wait
    from pilotage.teardown.engine.progress import Step
    from pilotage.teardown.engine.receipt import Receipt
    from pilotage.teardown.planning.ledger import Ledger
    from pilotage.teardown.session.execution import Advice, ObservedTeardown, TeardownResult
    from pilotage.teardown.session.operator_teardown import EndpointResult
    from pilotage.teardown.snapshot.world import Name

ROWS_MAX = 12
"""Unfinished objects that are shown at once; the others are counted."""
BLOCKERS_MAX = 20
_PHASE_DETAILS_MAX = 3
"""A phase that has not begun shows its objects if they are no more than this; else those that are waited for."""


class TeardownProgress:
    """The observer of a teardown, which shows it."""

    def __init__(self, teardown: ObservedTeardown, renderer: Renderer) -> None:
        self._teardown = teardown
        self._renderer = renderer

    def step(self, step: Step) -> None:
        """Report a step. Only refusals and new objects get a line for people."""
        event: dict[str, Any] = {"event": step.what}
        if step.entry is not None:
            event["object"] = step.entry.reference
        if step.text:
            event["text"] = step.text
        line = f"{step.what:<9}{step.entry}  {step.text}" if step.what in ("refused", "found") else ""
        line += "; it is tried again" if step.what == "refused" else ""
        self._renderer.tell(event, step.at, line)

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        """The acts and waits of this moment."""
        self._renderer.show(_View(self._teardown, decision), now)

    def close(self) -> None:
        """Nothing more comes."""
        self._renderer.close()


class _View:
    """One decision about a teardown."""

    def __init__(self, teardown: ObservedTeardown, decision: Decision) -> None:
        self._teardown = teardown
        self._decision = decision

    @property
    def finished(self) -> bool:
        return self._decision.finished

    def news(self) -> Iterator[Row]:
        for phase in self._finished_phases():
            names = [_short(entry) for entry in self._of_phase(phase)]
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            yield Row(str(phase), RowState.DONE, f"{', '.join(names[:2])}{more} gone")

    def waits(self, now: dt.datetime) -> Iterator[str]:
        if self._teardown.problem:
            yield f"waiting  the API server does not answer: {self._teardown.problem}"
        for wait in self._decision.blockers[:ROWS_MAX]:
            yield f"waiting  {describe(wait, now)}"

    def block(self, now: dt.datetime) -> list[Row]:
        waits = {wait.entry.uid: wait for wait in self._decision.waits}
        blocked = {wait.entry.uid for wait in self._decision.blockers}
        current = self._decision.phase
        rows: list[Row] = []
        shown = hidden = 0
        for phase in Phase:
            entries = self._of_phase(phase)
            if not entries:
                continue
            left = [entry for entry in entries if not self._is_over(entry)]
            state = RowState.DONE if not left else RowState.LATER if phase > current else RowState.ACTIVE
            few = phase <= current or len(left) <= _PHASE_DETAILS_MAX
            listed = left if few else [entry for entry in left if entry.uid in blocked]
            details = [_detail(entry, waits.get(entry.uid), now) for entry in listed[: max(0, ROWS_MAX - shown)]]
            shown, hidden = shown + len(details), hidden + len(listed) - len(details)
            rows.append(Row(str(phase), state, f"{len(entries) - len(left)} of {len(entries)} gone", tuple(details)))
        if hidden:
            rows[-1] = rows[-1]._replace(details=(*rows[-1].details, f"… and {hidden} more"))
        return rows

    def events(self, now: dt.datetime) -> Iterator[tuple[str, object, dict[str, Any]]]:  # noqa: ARG002
        for wait in self._decision.blockers:
            yield wait.entry.uid, (wait.cause, wait.text), {"event": "waits"} | wait_to_json(wait)

    def _of_phase(self, phase: Phase) -> list[Entry]:
        entries = self._teardown.ledger.entries
        return [entry for entry in entries if entry.phase is phase and entry.disposition is not Disposition.KEEP]

    def _is_over(self, entry: Entry) -> bool:
        return self._teardown.last_seen(entry).state in ("gone", "foreign")

    def _finished_phases(self) -> list[Phase]:
        """Asked often, and of many entries: each phase is searched up to the first entry that is left of it."""
        there: set[Phase] = set()
        left: set[Phase] = set()
        for entry in self._teardown.ledger.entries:
            phase = entry.phase
            if phase < self._decision.phase and phase not in left and entry.disposition is not Disposition.KEEP:
                there.add(phase)
                if not self._is_over(entry):
                    left.add(phase)
        return sorted(there - left)


def resume_command(path: Path) -> str:
    """Command that goes on with the teardown of a receipt."""
    return f"pilotage delete --resume {quote(str(path))}"


def print_result(result: TeardownResult, complete: Callable[[str], str], form: str) -> None:
    """The end: what is gone, what is left and why, and how to go on. `complete` completes suggested commands."""
    receipt = result.receipt
    if form in EVENT_FORMS:
        print_event(
            sys.stdout,
            form,
            {
                "event": "end",
                "result": receipt.result,
                "gone": receipt.count("gone"),
                "kept": receipt.count("kept"),
                "blockers": [wait_to_json(wait) for wait in result.blockers],
                "notes": list(receipt.notes),
                "advice": [_advised(each, complete) for each in result.advice],
                "receipt": str(result.path),
            },
        )
    elif result.complete:
        version = result.resource_version
        read_at = f", read at resourceVersion {version}" if version else ""
        say(*receipt_lines(receipt, str(result.path), read_at), err=form != "text")
    else:
        say(*_left_lines(result, complete), err=True)
    if form == "name":
        print_report(form, None, _gone(receipt))
    if result.unsaved:
        say(f"Error: {result.unsaved}. The result above is true; the file is as it was at the start.", err=True)


def print_endpoint_result(result: EndpointResult, planned: Ledger, complete: Callable[[str], str], form: str) -> int:
    """The end of the teardown of an endpoint by the operator. Returns the exit code.

    `planned`: the plan that was shown. `complete` completes suggested commands.
    """
    from pilotage.teardown.session.operator_teardown import EndpointEnd

    if result.unsaved:
        say(f"Error: {result.unsaved}. It is in the status of teardown/{result.record}, too.", err=True)
        return 1
    proven = result.receipt is not None and result.receipt.result == "complete"
    done = proven or result.end is EndpointEnd.NOTHING_MADE
    if form in EVENT_FORMS:
        print_event(sys.stdout, form, {"event": "end"} | _endpoint_event(result))
    elif result.end is EndpointEnd.NOTHING_MADE:
        say(f"{result.endpoint.ref} is gone. Nothing had been made for it.", err=form != "text")
    elif result.receipt is not None:
        receipt = msgspec.structs.replace(result.receipt, notes=_with_untracked(result.receipt, planned))
        say(*receipt_lines(receipt, str(result.path)), err=form != "text")
    else:
        say(*_endpoint_left_lines(result, complete), err=True)
    if form == "name":
        print_report(form, None, _gone(result.receipt))
        if done:
            print_object(form, result.endpoint)
    return 0 if done else 1


def _with_untracked(receipt: Receipt, planned: Ledger) -> tuple[str, ...]:
    """The notes of a receipt, and one for each object that was planned and goes with another that the receipt has.

    An operator does not read all kinds, such as Endpoints: without these notes, the numbers would seem to differ.
    """
    tracked = receipt.ledger.by_uid()
    untracked = (each for each in planned.going if each.uid not in tracked and each.owner in tracked)
    more = (f"{each} goes with {tracked[each.owner]}, and is not in the receipt" for each in untracked)
    return (*receipt.notes, *more)


def _gone(receipt: Receipt | None) -> list[Name]:
    """The objects that a receipt says are gone."""
    if receipt is None:
        return []
    gone = {record.uid for record in receipt.objects if record.state == "gone"}
    return [entry.full_name for entry in receipt.ledger.going if entry.uid in gone]


def _endpoint_event(result: EndpointResult) -> dict[str, Any]:
    from pilotage.teardown.session.operator_teardown import EndpointEnd

    receipt = result.receipt
    if result.end is EndpointEnd.NOTHING_MADE:
        return {"result": "complete", "gone": 1}
    if receipt is None:
        blockers = [wait_to_json(wait) for wait in result.blockers]
        return {"result": "incomplete", "left": result.left, "blockers": blockers, "teardown": result.record or None}
    counts = {"gone": receipt.count("gone"), "kept": receipt.count("kept")}
    return {"result": receipt.result, **counts, "notes": list(receipt.notes), "receipt": str(result.path)}


def _endpoint_left_lines(result: EndpointResult, complete: Callable[[str], str]) -> list[str]:
    from pilotage.teardown.session.operator_teardown import EndpointEnd

    obj = result.endpoint
    name = _named(obj)
    if result.end is EndpointEnd.NO_RECORD:
        return [
            f"{obj.ref} is gone, but there is no record of what was made for it. Look for what is left with:",
            f"  {complete(f'pilotage leaks -n {quote(obj.meta.namespace)}')}",
        ]
    if result.end is EndpointEnd.ITSELF_LEFT:
        return [
            f"Not finished: the parts of {obj.ref} are proven gone, but it is itself still there. Ask why with:",
            f"  {complete(f'pilotage why {name}')}",
        ]
    now = utc_now()
    lines = [f"Not finished: {result.left} of {result.total} {_are(result.left)} not known to be gone."]
    lines += (f"  {describe(wait, now)}" for wait in result.blockers[:BLOCKERS_MAX])
    lines += [] if result.record else ["  The operator has not begun."]
    lines += _ask_why(result.blockers, complete)
    if result.record:
        show = complete(f"pilotage receipt show {quote(f'td/{result.record}')} -n {quote(result.record_namespace)}")
        lines.append(f"Its receipt is in its Teardown once it has ended: {show}")
    return [*lines, f"The operator continues. Follow it with: {complete(f'pilotage delete {name}')}"]


def _named(obj: Object) -> str:
    """An endpoint as a person types it."""
    return f"{quote(f'servingendpoint/{obj.meta.name}')} -n {quote(obj.meta.namespace)}"


def receipt_lines(receipt: Receipt, path: str, read_at: str = "") -> list[str]:
    """The end of a complete teardown: the proof, what is left of references, and the receipt."""
    gone, kept, references = receipt.count("gone"), receipt.count("kept"), len(receipt.references)
    lines = [f"prove    {gone} gone by uid, {references} reference{'s' * (references != 1)} left{read_at}"]
    lines += (f"left     {text}" for text in receipt.references[:BLOCKERS_MAX])
    lines += (f"note     {note}" for note in receipt.notes)
    return [*lines, f"Receipt: {path} ({gone} gone, {kept} kept)"]


def _left_lines(result: TeardownResult, complete: Callable[[str], str]) -> list[str]:
    going, now = len(result.receipt.ledger.going), utc_now()
    lines = [f"{'Stopped.' if result.stopped else 'Not finished.'} {result.gone} of {going} {_are(result.gone)} gone."]
    if result.held:
        names, alone = ", ".join(map(str, result.held[:3])), len(result.held) == 1
        lines.append(
            f"{names} waits for its parts, and stays until they are gone."
            if alone
            else f"{names} wait for their parts, and stay until they are gone."
        )
    lines += (f"  {describe(wait, now)}" for wait in result.blockers[:BLOCKERS_MAX])
    lines += (f"  {note}" for note in result.receipt.notes)
    lines += (_advised(each, complete) for each in result.advice)
    lines += _ask_why(result.blockers, complete)
    return [*lines, f"Resume with: {complete(resume_command(result.path))}"]


def _ask_why(blockers: tuple[Wait, ...], complete: Callable[[str], str]) -> list[str]:
    """The command that explains the first object that is waited for."""
    if not blockers:
        return []
    entry = blockers[0].entry
    return [f"Ask why with: {complete(f'pilotage why {spelled(entry.resource, entry.full_name)}')}"]


def _advised(advice: Advice, complete: Callable[[str], str]) -> str:
    return f"{advice.text} {complete(advice.command)}"


def wait_to_json(wait: Wait) -> dict[str, Any]:
    """A wait as scripts want it."""
    return {
        "object": wait.entry.reference,
        "cause": wait.cause.value,
        "actor": wait.actor,
        "text": wait.text,
        "since": format_time(wait.since),
        "until": format_time(wait.until),
    }


def describe(wait: Wait, now: dt.datetime, *, short: bool = False) -> str:
    """Text of a wait: for what, on whom, since when, until when."""
    since, left = _seconds((now - wait.since).total_seconds()), _seconds((wait.until - now).total_seconds())
    times = f"for {since}, {left} left"
    if short:
        return f"{wait.text} ({wait.cause}, {times})"
    who = wait.actor if wait.cause.value in wait.actor else f"{wait.cause}: {wait.actor}"
    return f"{wait.entry}  {wait.text}  ({who}, {times})"


def _detail(entry: Entry, wait: Wait | None, now: dt.datetime) -> str:
    return f"{_short(entry)}  {describe(wait, now, short=True) if wait else 'deletion requested'}"


def _short(entry: Entry) -> str:
    return f"{entry.resource.kind.lower()}/{entry.name}"


def _seconds(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min" if seconds < 6000 else f"{seconds // 3600:.0f} h"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
