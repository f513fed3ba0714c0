"""A plan as text and as JSON, for `plan` and `delete`; and what one that resumes a receipt says besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pilotage.teardown.planning.ledger import Entry, Ledger
    from pilotage.teardown.session.preparation import Prepared
    from pilotage.teardown.session.resumption import Resumed

ROWS_MAX = 20


def exit_code(prepared: Prepared) -> int:
    """0: a delete should go through; 1: something probably stands in its way, or what is meant is not known in full."""
    return (
        1 if prepared.no_namespace or prepared.ledger.unread or any(hazard.blocks for hazard in prepared.hazards) else 0
    )


def unread_sentence(prepared: Prepared) -> str:
    """Sentence about the kinds that could not be searched, and what to do about it."""
    ledger, world = prepared.ledger, prepared.world
    shown = ", ".join(ledger.unread[:3]) + (", …" if len(ledger.unread) > 3 else "")
    kinds = "1 kind" if len(ledger.unread) == 1 else f"{len(ledger.unread)} kinds"
    return (
        f"{kinds} could not be read ({shown}), so what of them is meant is unknown. "
        f"{'Bring these APIs back' if world.has_silent_apis else 'Ask for the permission to list them'}, or name the "
        "objects."
    )


def plan_lines(prepared: Prepared, complete: Callable[[str], str]) -> list[str]:
    """The plan, as a person reads it. `complete` completes suggested commands."""
    from pilotage.catalogue.phase import Phase

    ledger = prepared.ledger
    lines = absent_lines(prepared)
    if not ledger.going:
        return lines or ["Nothing to delete."]
    lines.append(headline(prepared))
    if ledger.unread:
        lines += ["", unread_sentence(prepared)]
    for phase in Phase:
        entries = [entry for entry in ledger.going if entry.phase is phase]
        if entries:
            lines += ["", str(phase), *rows(entries)]
    if ledger.kept:
        lines += ["", "kept"]
        lines += (f"  {entry}  ({entry.reason})" for entry in ledger.kept[:ROWS_MAX])
        if len(ledger.kept) > ROWS_MAX:
            lines.append(f"  … and {len(ledger.kept) - ROWS_MAX} more")
    by_uid = ledger.by_uid()
    for circle in ledger.cycles:
        names = ", ".join(str(by_uid[uid]) for uid in circle if uid in by_uid)
        lines += ["", f"These wait for each other, so they go together: {names}"]
    lines += ["", *ledger.remarks] if ledger.remarks else []
    if prepared.hazards:
        lines += ["", "Predicted"]
        for hazard in sorted(prepared.hazards, key=lambda hazard: not hazard.blocks):
            lines.append(f"  {'BLOCKS' if hazard.blocks else 'note'}  {hazard.text}")
            advice = f"{hazard.advice} {complete(hazard.command)}".rstrip()
            lines += (f"          {line}" for line in (*hazard.evidence, advice) if line)
    return lines


def absent_lines(prepared: Prepared) -> list[str]:
    """The objects that were named and are not there; or their namespace, if that is not there."""
    if prepared.no_namespace:
        return [f"There is no namespace {prepared.no_namespace}. `kubectl get namespaces` lists those there are."]
    return [f"{name} is not there: nothing to do" for name in prepared.absent]


def headline(prepared: Prepared) -> str:
    """One line: how much, in how many steps, what stays, what stands in the way."""
    ledger = prepared.ledger
    steps = len({entry.phase for entry in ledger.going})
    blockers = [hazard for hazard in prepared.hazards if hazard.blocks]
    kept = ""
    if ledger.kept:
        names = ", ".join(f"{entry.resource.kind.lower()}/{entry.name}" for entry in ledger.kept[:3])
        kept = f"; keeps {names}" + (f" and {len(ledger.kept) - 3} more" if len(ledger.kept) > 3 else "")
    count = f"{len(ledger.going)} object{'s' if len(ledger.going) != 1 else ''}"
    found = "none" if not blockers else str(len(blockers))
    return f"Plan: {count} in {steps} step{'s' if steps != 1 else ''}{kept}. Predicted blockers: {found}."


def plan_to_json(prepared: Prepared, complete: Callable[[str], str]) -> dict[str, Any]:
    """The plan, as scripts want it. `complete` completes suggested commands."""

    ledger = prepared.ledger
    return {
        "targets": list(ledger.targets),
        "absent": [str(name) for name in prepared.absent],
        "objects": [
            entry.reference
            | {
                "phase": str(entry.phase),
                "how": entry.disposition.value,
                "why": entry.reason,
                "after": list(entry.after),
                "held": entry.hold,
            }
            for entry in ledger.entries
        ],
        "cycles": [list(circle) for circle in ledger.cycles],
        "remarks": list(ledger.remarks),
        "unread": list(ledger.unread),
        "hazards": [hazard.to_json(complete) for hazard in prepared.hazards],
    }


def rows(entries: Sequence[Entry]) -> list[str]:
    """A line for each, and how many more there are."""
    more = len(entries) - ROWS_MAX
    return [f"  {_row(entry)}" for entry in entries[:ROWS_MAX]] + ([f"  … and {more} more"] if more > 0 else [])


def _row(entry: Entry) -> str:
    from pilotage.teardown.planning.ledger import Disposition

    if entry.disposition is Disposition.COLLECT:
        how = f"goes with its owner; {entry.reason}"
    elif entry.hold:
        how = f"held until its parts are gone; {entry.reason}"
    else:
        how = entry.reason
    return f"{entry}  ({how})"


def resumed_lines(resumed: Resumed) -> list[str]:
    """Lines on a resumed teardown: its phase, what is gone, what was added, and new objects under old names."""
    total = len(resumed.prepared.ledger.going) - len(resumed.added)
    number = len(resumed.added)
    count = "nothing was" if not number else f"{number} {'was' if number == 1 else 'were'}"
    lines = [f"Resumes {resumed.origin}: {_where(resumed.left.ledger)}."]
    objects, are = ("object", "is") if total == 1 else ("objects", "is" if len(resumed.gone) == 1 else "are")
    lines += [f"Of {total} {objects} {len(resumed.gone)} {are} gone already; {count} added since."]
    lines += (f"added    {entry}  ({entry.reason})" for entry in resumed.added[:ROWS_MAX])
    lines += [f"added    … and {number - ROWS_MAX} more"] if number > ROWS_MAX else []
    lines += (f"note     {name} is another object by now, and stays" for name in resumed.replaced[:ROWS_MAX])
    return lines


def resumed_to_json(resumed: Resumed) -> dict[str, Any]:
    """The fields of a resumed plan that a new one has not."""
    return {
        "resumes": resumed.origin,
        "added": [entry.uid for entry in resumed.added],
        "gone": [entry.uid for entry in resumed.gone],
        "replaced": list(resumed.replaced),
    }


def _where(left: Ledger) -> str:
    """The number of objects left to delete, and all their namespaces, however long the plan is."""
    places = sorted({entry.namespace for entry in left.going} - {""})
    without = sum(not entry.namespace for entry in left.going)
    words = [f"namespace {place}" for place in places] + ([f"{without} without a namespace"] if without else [])
    number = len(left.going)
    return f"deletes {number} object{'s' * (number != 1)}" + (f" ({', '.join(words)})" if words else "")
