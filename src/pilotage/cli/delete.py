"""``pilotage delete``: the plan, then the teardown with live progress, then the receipt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from pilotage.cli.connecting import BadTarget, cluster_options, connected, output_option, plain_errors, run_briefly
from pilotage.cli.errors import NoAnswer
from pilotage.cli.plan import headline, plan_lines, plan_to_json, unread_sentence
from pilotage.cli.preparing import Asked, Prepared, check, prepare, target_options

if TYPE_CHECKING:
    from pilotage.cli.connecting import Connection
    from pilotage.teardown.ledger import Ledger
    from pilotage.teardown.world import World


@click.command()
@target_options
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=1), default=600.0, show_default=True)
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
    help="Go on with the teardown of this receipt.",
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
    from pilotage.cli.carrying_out import carry_out

    async with connected(kubeconfig, context) as connection:
        if options.resume is not None:
            ledger = await _resumed(connection, options.resume, asked.timeout)
            world = await _look_again(connection, ledger)
            prepared = Prepared(world, ledger, [], [])
        else:
            prepared = await prepare(connection, asked)
        if not prepared.ledger.going and prepared.ledger.unread:
            raise NoAnswer(f"Nothing was found, but {unread_sentence(prepared.ledger)}")
        code = _show(prepared, options)
        if code is not None:
            return code
        return await carry_out(
            connection, prepared.ledger, prepared.world, receipt=options.receipt, as_json=options.json
        )


async def _resumed(connection: Connection, path: Path, timeout: float) -> Ledger:
    """The ledger of a receipt, if it is one of this cluster."""
    import msgspec

    from pilotage.cli.carrying_out import identity
    from pilotage.teardown.receipt import ReceiptError, load

    try:
        receipt = load(path)
    except ReceiptError as error:
        raise BadTarget(str(error)) from error
    here = await identity(connection)
    same = receipt.cluster == here if receipt.cluster and here else receipt.server == connection.server
    if not same:
        raise BadTarget(
            f"{path} is the receipt of a teardown on another cluster ({receipt.server}): here everything of it would "
            "look gone. Choose that cluster with --kubeconfig or --context."
        )
    policy = msgspec.structs.replace(receipt.ledger.policy, timeout_seconds=timeout)
    return msgspec.structs.replace(receipt.ledger, policy=policy)


async def _look_again(connection: Connection, ledger: Ledger) -> World:
    """What there is of the kinds in a ledger."""
    from pilotage.teardown.gather import gather

    kinds = frozenset(entry.group_kind for entry in ledger.entries)
    namespaces = sorted({entry.namespace for entry in ledger.entries} - {""})
    return await gather(connection.client, connection.discovery, namespaces=namespaces, kinds=kinds)


def _show(prepared: Prepared, options: _Options) -> int | None:
    """Show the plan and ask; an exit code if that is all."""
    asks = not options.yes and not options.dry_run and bool(prepared.ledger.going)
    if asks and not sys.stdin.isatty():
        raise click.UsageError("This is not a terminal, so nobody can be asked: add --yes, or --dry-run to look.")
    if options.json:
        import json

        click.echo(json.dumps({"event": "plan"} | plan_to_json(prepared)))
    elif options.yes and prepared.ledger.going:
        click.echo("\n".join([*(f"{name} is not there" for name in prepared.absent), headline(prepared)]))
        for hazard in prepared.hazards:
            if hazard.blocks:
                click.echo(f"BLOCKS   {hazard.text}")
    else:
        click.echo("\n".join(plan_lines(prepared)), err=asks)
    if not prepared.ledger.going:
        return 0
    if options.dry_run:
        return 1 if any(hazard.blocks for hazard in prepared.hazards) else 0
    if asks and not click.confirm("Go on?", default=False, err=True):
        click.echo("Nothing was done.", err=True)
        return 1
    return None
