"""``pilotage delete``: the plan, then the teardown with live progress, then the receipt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from pilotage.cli.connection import connected, run_briefly
from pilotage.cli.errors import NoAnswer, plain_errors
from pilotage.cli.options import cluster_options, names_endpoints, output_option, target_options
from pilotage.cli.output.plan import exit_code, headline, plan_lines, plan_to_json, rows, unread_sentence
from pilotage.cli.output.text import say
from pilotage.cli.preparing import Asked, Prepared, can_look_twice, check, prepare

if TYPE_CHECKING:
    from pilotage.cli.resuming import Resumed


@click.command()
@target_options
@click.option("--dry-run", is_flag=True, help="Show the plan and stop, with the exit code of `pilotage plan`.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="How long it may take. Then it ends, and says what is left, why, and how to go on.",
)
@click.option(
    "--drain",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How long requests may go on after the routes are gone, before what serves them stops.",
)
@click.option(
    "--receipt",
    "receipt_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the receipt goes.  [default: NAME-DATE-TIME.json here]",
)
@click.option(
    "--resume",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Go on with the teardown of this receipt, and with what belongs to it by now.",
)
@cluster_options
@output_option
@plain_errors
def delete(
    words: tuple[str, ...],
    namespace: str,
    everything: bool,
    files: tuple[Path | Literal["-"], ...],
    selector: str,
    keep: tuple[str, ...],
    adopt: bool,
    dry_run: bool,
    yes: bool,
    timeout: float,
    drain: float,
    receipt_file: Path | None,
    resume: Path | None,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Take things down in order, wait until they are proven gone, and write a receipt.

    \b
    pilotage delete deployment/web service/web ingress/web -n shop
    pilotage delete deployment/web -n shop --adopt     what routes to, scales and selects it, too
    pilotage delete -f manifests/ --keep volumes
    pilotage delete -n shop --all
    pilotage delete --resume web-20261115-213012.json

    What is owned goes along. Nothing is deleted without its uid, and no finalizer is removed but our own.

    Exit codes: 0 all is proven gone, 1 something is left or unknown, 2 bad usage, 3 the API could not be read,
    130 Ctrl-C.
    """
    asked = Asked(words, namespace, everything, files, selector, keep, adopt, timeout, drain)
    if resume is None:
        check(asked)
    elif any((words, namespace, everything, files, selector, keep, adopt, drain)):
        raise click.UsageError("--resume stands alone: its receipt says what is meant and what stays.")
    options = _Options(dry_run, yes, receipt_file or resume, resume, output == "json")
    sys.exit(run_briefly(_delete(asked, options, kubeconfig, context)))


class _Options(NamedTuple):
    dry_run: bool
    yes: bool
    receipt: Path | None
    resume: Path | None
    json: bool


async def _delete(asked: Asked, options: _Options, kubeconfig: str | None, context: str | None) -> int:
    endpoints = names_endpoints(asked.words)
    remembering = options.resume is None and not endpoints and can_look_twice(asked)
    async with connected(kubeconfig, context, remembering=remembering) as connection:
        resumed = None
        if options.resume is not None:
            from pilotage.cli.resuming import resume

            resumed = await resume(connection, options.resume, asked.timeout)
            prepared = resumed.prepared
        else:
            if endpoints:
                from pilotage.cli.deleting_endpoints import who_deletes
                from pilotage.cli.through_operator import Operated

                way = await who_deletes(connection, asked)
                if isinstance(way, Operated):
                    code = _show(way.prepared, None, options)
                    return await way.carry_out(options.receipt, as_json=options.json) if code is None else code
                asked = way
            prepared = await prepare(connection, asked)
        if not prepared.ledger.going and prepared.ledger.unread:
            raise NoAnswer(f"Nothing was found, but {unread_sentence(prepared.ledger)}")
        code = _show(prepared, resumed, options)
        if code is not None:
            return code
        from pilotage.cli.carrying_out import carry_out  # with all it needs: imported while the cluster was read

        return await carry_out(
            connection, prepared.ledger, prepared.world, receipt=options.receipt, as_json=options.json
        )


def _show(prepared: Prepared, resumed: Resumed | None, options: _Options) -> int | None:
    """Show the plan and ask; an exit code if that is all."""
    asks = not options.yes and not options.dry_run and bool(prepared.ledger.going)
    if asks and not sys.stdin.isatty():
        raise click.UsageError("This is not a terminal, so nobody can be asked: add --yes, or --dry-run to look.")
    if options.json:
        import json

        click.echo(json.dumps({"event": "plan"} | _plan_to_json(prepared, resumed)))
    else:
        brief = options.yes and bool(prepared.ledger.going)
        say(*_plan_lines(prepared, resumed, brief=brief), err=asks)
    if not prepared.ledger.going:
        return 0
    if options.dry_run:
        return exit_code(prepared)
    if asks and not click.confirm("Go on?", default=False, err=True):
        say("Nothing was done.", err=True)
        return 1
    return None


def _plan_to_json(prepared: Prepared, resumed: Resumed | None) -> dict[str, Any]:
    from pilotage.cli.resuming import resumed_to_json

    return plan_to_json(prepared) | (resumed_to_json(resumed) if resumed is not None else {})


def _plan_lines(prepared: Prepared, resumed: Resumed | None, *, brief: bool) -> list[str]:
    """The plan; `brief`: as much of it as somebody wants to see who has said yes already."""
    lines = []
    if resumed is not None:
        from pilotage.cli.resuming import left_of, resumed_lines

        lines = resumed_lines(resumed)
        prepared = left_of(resumed)
    if not brief:
        return lines + plan_lines(prepared)
    if resumed is not None:  # what goes was chosen by a file, and not by what was typed
        lines += rows(prepared.ledger.going)
    lines += (f"{name} is not there" for name in prepared.absent)
    lines += [headline(prepared)] if prepared.ledger.going else []
    return lines + [f"BLOCKS   {hazard.text}" for hazard in prepared.hazards if hazard.blocks]
