"""``pilotage delete``: the plan, then the teardown with live progress, then the receipt."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from pilotage.cli.connecting import BadTarget, cluster_options, connected, output_option, plain_errors, run_briefly
from pilotage.cli.plan import headline, plan_lines, plan_to_json
from pilotage.cli.preparing import Asked, Prepared, check, prepare, target_options

if TYPE_CHECKING:
    from pilotage.cli.connecting import Connection
    from pilotage.cli.progress import Progress
    from pilotage.teardown.drive import Drive, Outcome
    from pilotage.teardown.ledger import Ledger
    from pilotage.teardown.world import World

INTERRUPTED = 130


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

    Exit codes: 0 all is proven gone, 1 something is left, 2 bad usage, 3 the API could not be read, 130 Ctrl-C.
    """
    asked = Asked(words, namespace, everything, files, selector, keep, adopt, timeout, drain)
    if resume is None:
        check(asked)
    elif words or everything or files or selector:
        raise click.UsageError("--resume stands alone: the receipt says what is meant.")
    options = _Options(dry_run, yes, receipt_file, resume, output == "json")
    sys.exit(run_briefly(_delete(asked, options, kubeconfig, context)))


class _Options:
    def __init__(self, dry_run: bool, yes: bool, receipt: Path | None, resume: Path | None, as_json: bool) -> None:
        self.dry_run = dry_run
        self.yes = yes
        self.receipt = receipt
        self.resume = resume
        self.json = as_json


async def _delete(asked: Asked, options: _Options, kubeconfig: str | None, context: str | None) -> int:
    async with connected(kubeconfig, context) as connection:
        if options.resume is not None:
            ledger = _resumed(options.resume, asked.timeout)
            world = await _look_again(connection, ledger)
            options.receipt = options.receipt or options.resume
        else:
            prepared = await prepare(connection, asked)
            if not prepared.ledger.going or options.dry_run or not options.yes or options.json:
                code = _show(prepared, options)
                if code is not None:
                    return code
            else:
                click.echo(headline(prepared))
            ledger, world = prepared.ledger, prepared.world
        return await _run(connection, ledger, world, options)


def _resumed(path: Path, timeout: float) -> Ledger:
    """The ledger of a receipt, with its time beginning now."""
    import msgspec

    from pilotage.kube.wire import format_time
    from pilotage.runtime.clock import utc_now
    from pilotage.teardown.receipt import ReceiptError, load

    try:
        ledger = load(path).ledger
    except ReceiptError as error:
        raise BadTarget(str(error)) from error
    policy = msgspec.structs.replace(ledger.policy, timeout_seconds=timeout)
    return msgspec.structs.replace(ledger, started=format_time(utc_now()), policy=policy)


async def _look_again(connection: Connection, ledger: Ledger) -> World:
    """What there is of the kinds in a ledger."""
    from pilotage.teardown.gather import gather

    kinds = frozenset(entry.group_kind for entry in ledger.entries)
    namespaces = sorted({entry.namespace for entry in ledger.entries} - {""})
    return await gather(connection.client, connection.discovery, namespaces=namespaces, kinds=kinds)


def _show(prepared: Prepared, options: _Options) -> int | None:
    """Show the plan and ask; an exit code if that is all."""
    if options.json:
        import json

        click.echo(json.dumps({"event": "plan"} | plan_to_json(prepared)))
    elif options.dry_run or not prepared.ledger.going:
        click.echo("\n".join(plan_lines(prepared)))
    else:
        click.echo("\n".join(plan_lines(prepared)), err=True)
    if not prepared.ledger.going:
        return 0
    if options.dry_run:
        return 1 if any(hazard.blocks for hazard in prepared.hazards) else 0
    if not options.yes:
        if not sys.stdin.isatty():
            raise click.UsageError("This is not a terminal, so nobody can be asked: add --yes, or --dry-run to look.")
        if not click.confirm("Go on?", default=False, err=True):
            click.echo("Nothing was done.", err=True)
            return 1
    return None


async def _run(connection: Connection, ledger: Ledger, world: World, options: _Options) -> int:
    import random

    from pilotage.runtime.clock import utc_now
    from pilotage.teardown.drive import Drive
    from pilotage.teardown.receipt import begin, conclude, save

    gc.freeze()  # from here on it may take a while; what there is by now stays to the end
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    path = options.receipt or default_receipt(ledger)
    server = connection.server
    save(begin(ledger, server), path)
    shown: list[Progress] = []
    drive = Drive(
        connection.client,
        ledger,
        rng=random.Random(),  # noqa: S311 - it spreads retries
        world=world,
        on_step=lambda step: shown[0].step(step),
        on_decision=lambda decision: shown[0].decision(decision, utc_now()),
        on_ledger=lambda grown: save(begin(grown, server), path),
    )
    shown.append(_progress(drive, options))
    with _stopping(drive):
        outcome = await drive.run()
    shown[0].close()
    receipt = conclude(outcome, server, utc_now())
    save(receipt, path)
    return _tell(outcome, drive, path, options)


def default_receipt(ledger: Ledger) -> Path:
    """``NAME-DATE-TIME.json`` in the working directory, after the first that was named."""
    from pilotage.kube.wire import parse_time

    name = ledger.targets[0].partition(" ")[0].rpartition("/")[2] if ledger.targets else "teardown"
    return Path(f"{name}-{parse_time(ledger.started):%Y%m%d-%H%M%S}.json")


def _progress(drive: Drive, options: _Options) -> Progress:
    from pilotage.cli.progress import Block, Events, Lines, use_block

    if options.json:
        return Events(sys.stdout)
    if use_block(sys.stdout):
        return Block(drive, sys.stdout, width=shutil.get_terminal_size().columns)
    return Lines(drive, sys.stdout)


@contextlib.contextmanager
def _stopping(drive: Drive):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """The first Ctrl-C lets what is under way end; the second ends at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    strokes = 0

    def stop() -> None:
        nonlocal strokes
        strokes += 1
        if strokes == 1:
            drive.stop()
        else:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _tell(outcome: Outcome, drive: Drive, path: Path, options: _Options) -> int:
    """The end: what is gone, what is left and why, and how to go on. Returns the exit code."""
    from pilotage.runtime.clock import utc_now
    from pilotage.teardown.receipt import load

    receipt = load(path)
    gone, kept, going = receipt.count("gone"), receipt.count("kept"), len(outcome.ledger.going)
    if options.json:
        from pilotage.cli.progress import Events, wait_to_json

        Events(sys.stdout).say(
            {
                "event": "end",
                "result": receipt.result,
                "gone": gone,
                "kept": kept,
                "blockers": [wait_to_json(wait) for wait in outcome.decision.blockers],
                "receipt": str(path),
            }
        )
    if outcome.complete:
        if not options.json:
            assert outcome.proof is not None
            version = outcome.proof.resource_version
            at = f", read at resourceVersion {version}" if version else ""
            click.echo(f"prove    {gone} gone by uid{at}")
            for note in receipt.notes:
                click.echo(f"note     {note}")
            click.echo(f"Receipt: {path} ({gone} gone, {kept} kept)")
        return 0
    seen = sum(drive.sights.get(entry.uid).state in ("gone", "foreign") for entry in outcome.ledger.going)
    if not options.json:
        from pilotage.cli.progress import describe

        stopped = "Stopped." if drive.stopped else "Not finished."
        lines = [f"{stopped} {seen} of {going} are gone; nothing is half-done."]
        lines += (f"  {describe(wait, utc_now())}" for wait in outcome.decision.blockers[:20])
        lines.append(f"Go on with: pilotage delete --resume {path}")
        click.echo("\n".join(lines), err=True)
    return INTERRUPTED if drive.stopped else 1
