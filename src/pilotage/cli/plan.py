"""``pilotage plan``: what a delete would take, in which order, and what would stand in its way. Changes nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from pilotage.cli.connecting import cluster_options, connected, output_option, plain_errors, run_briefly
from pilotage.cli.errors import NoAnswer
from pilotage.cli.preparing import Asked, Prepared, can_look_twice, check, prepare, target_options
from pilotage.cli.printing import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Literal

    from pilotage.teardown.planning.ledger import Entry, Ledger


@click.command()
@target_options
@cluster_options
@output_option
@plain_errors
def plan(
    words: tuple[str, ...],
    namespace: str,
    everything: bool,
    files: tuple[Path | Literal["-"], ...],
    selector: str,
    keep: tuple[str, ...],
    adopt: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Show what `pilotage delete` would do, and what would stand in its way. Changes nothing.

    \b
    pilotage plan deployment/web service/web -n shop
    pilotage plan -f manifests/ --keep volumes
    pilotage plan -n shop -o json

    Exit codes: 0 nothing stands in the way, 1 something probably does, or not all that is meant could be read, 2 bad
    usage, 3 the API could not be read.
    """
    if namespace and not (words or everything or files or selector):
        everything = True  # a namespace alone means all that is in it: nothing is changed by looking
    asked = Asked(words, namespace, everything, files, selector, keep, adopt)
    check(asked)
    prepared = run_briefly(_prepare(asked, kubeconfig, context))
    unclear = not prepared.ledger.going and bool(prepared.ledger.unread)
    if output == "json":
        import json

        click.echo(json.dumps(plan_to_json(prepared), indent=2))
    elif not unclear:
        say(*plan_lines(prepared))
    if unclear:
        raise NoAnswer(f"Nothing was found, but {unread_sentence(prepared.ledger)}")
    sys.exit(exit_code(prepared))


async def _prepare(asked: Asked, kubeconfig: str | None, context: str | None) -> Prepared:
    async with connected(kubeconfig, context, remembering=can_look_twice(asked)) as connection:
        return await prepare(connection, asked)


STEP_ROWS_MAX = 20


def exit_code(prepared: Prepared) -> int:
    """0: a delete should go through; 1: something probably stands in its way, or what is meant is not known in full."""
    return 1 if prepared.ledger.unread or any(hazard.blocks for hazard in prepared.hazards) else 0


def unread_sentence(ledger: Ledger) -> str:
    """Which kinds could not be searched."""
    shown = ", ".join(ledger.unread[:3]) + (", …" if len(ledger.unread) > 3 else "")
    return (
        f"{len(ledger.unread)} kinds could not be read ({shown}), so what of them is meant is unknown. "
        "Ask for the permission to list them, or name the objects."
    )


def plan_lines(prepared: Prepared) -> list[str]:
    """The plan, as a person reads it."""
    from pilotage.catalogue import Phase

    ledger = prepared.ledger
    lines = [f"{name} is not there: nothing to do" for name in prepared.absent]
    if not ledger.going:
        return lines or ["Nothing to delete."]
    lines.append(headline(prepared))
    if ledger.unread:
        lines += ["", unread_sentence(ledger)]
    for phase in Phase:
        entries = [entry for entry in ledger.going if entry.phase is phase]
        if entries:
            lines += ["", str(phase), *rows(entries)]
    if ledger.kept:
        lines += ["", "kept"]
        lines += (f"  {entry}  ({entry.reason})" for entry in ledger.kept[:STEP_ROWS_MAX])
        if len(ledger.kept) > STEP_ROWS_MAX:
            lines.append(f"  … and {len(ledger.kept) - STEP_ROWS_MAX} more")
    by_uid = ledger.by_uid()
    for circle in ledger.cycles:
        names = ", ".join(str(by_uid[uid]) for uid in circle if uid in by_uid)
        lines += ["", f"These wait for each other, so they go together: {names}"]
    lines += ["", *ledger.remarks] if ledger.remarks else []
    if prepared.hazards:
        lines += ["", "Predicted"]
        for hazard in sorted(prepared.hazards, key=lambda hazard: not hazard.blocks):
            lines.append(f"  {'BLOCKS' if hazard.blocks else 'note'}  {hazard.text}")
            lines += (f"          {line}" for line in (*hazard.evidence, hazard.advice) if line)
    return lines


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


def plan_to_json(prepared: Prepared) -> dict[str, Any]:
    """The plan, as scripts want it."""
    from pilotage.cli.progress import identify

    ledger = prepared.ledger
    return {
        "targets": list(ledger.targets),
        "absent": [str(name) for name in prepared.absent],
        "objects": [
            identify(entry)
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
        "hazards": [hazard.to_json() for hazard in prepared.hazards],
    }


def rows(entries: Sequence[Entry]) -> list[str]:
    """A line for each, and how many more there are."""
    more = len(entries) - STEP_ROWS_MAX
    return [f"  {_row(entry)}" for entry in entries[:STEP_ROWS_MAX]] + ([f"  … and {more} more"] if more > 0 else [])


def _row(entry: Entry) -> str:
    from pilotage.teardown.planning.ledger import Disposition

    if entry.disposition is Disposition.COLLECT:
        how = f"goes with its owner; {entry.reason}"
    elif entry.hold:
        how = f"held until its parts are gone; {entry.reason}"
    else:
        how = entry.reason
    return f"{entry}  ({how})"
