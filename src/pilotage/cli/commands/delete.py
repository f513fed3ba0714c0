"""``pilotage delete``: the plan, then the teardown with live progress, then the receipt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import BadTarget, NoAnswer, plain_errors
from pilotage.cli.options import cluster_options, output_option, seconds_option, target_options, with_endpoint_kind
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.plan import (
    absent_lines,
    exit_code,
    headline,
    plan_lines,
    plan_to_json,
    resumed_lines,
    resumed_to_json,
    rows,
    unread_sentence,
)
from pilotage.cli.output.progress import EVENT_FORMS, print_event, renderer
from pilotage.cli.output.text import note, say
from pilotage.cli.preload import TEARDOWN, import_meanwhile
from pilotage.teardown.session.request import TeardownRequest
from pilotage.terminal import OutputLost, output_may_be_lost

if TYPE_CHECKING:
    from pilotage.teardown.planning.ledger import Ledger
    from pilotage.teardown.session import Session
    from pilotage.teardown.session.operator_teardown import OperatorTeardown
    from pilotage.teardown.session.preparation import Prepared
    from pilotage.teardown.session.resumption import Resumed


@click.command()
@target_options
@click.option("--dry-run", is_flag=True, help="Show the plan and stop, with the exit code of `pilotage plan`.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@seconds_option(
    "--timeout",
    600.0,
    "How long it may take. Then it ends, and says what is left, why, and how to resume.",
    least=1,
)
@seconds_option("--drain", 0.0, "How long requests may continue after the routes are gone, before the workloads stop.")
@click.option(
    "--receipt",
    "receipt_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of the receipt.  [default: NAME-DATE-TIME.json in $XDG_STATE_HOME/pilotage/receipts]",
)
@click.option(
    "--resume",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Resume the teardown of this receipt (a path, or a name in that folder), with the parts that have appeared "
    "since.",
)
@cluster_options
@output_option("each object that is gone; with --dry-run, that would be deleted")
@plain_errors
@asynchronous
async def delete(
    request: TeardownRequest,
    dry_run: bool,
    yes: bool,
    timeout: float,
    drain: float,
    receipt_file: Path | None,
    resume: Path | None,
    cluster: ClusterChoice,
    output: str,
) -> int:
    """Delete objects in order, wait until they are proven gone, and write a receipt.

    \b
    pilotage delete deployment/web service/web ingress/web -n shop
    pilotage delete deployment/web -n shop --adopt     with its routes, autoscalers, Services
    pilotage delete -f manifests/ --keep volumes
    pilotage delete -n shop --all
    pilotage delete --resume web-20261115-213012.json

    Owned objects are deleted as well. Nothing is deleted without its uid, and no finalizer is removed but our own.

    Exit codes: 0 all is proven gone, 1 something is left or unknown, 2 bad usage, 3 the API could not be read,
    130 Ctrl-C.
    """
    from pilotage.teardown.session.receipt_files import find_receipt

    request = request._replace(timeout=timeout, drain=drain)
    resume = find_receipt(resume) if resume is not None else None
    if resume is None:
        request.check()
        if not request.selector:
            words = await with_endpoint_kind(cluster, request.words, request.namespace)
            request = request._replace(words=words)
    elif request != TeardownRequest(timeout=timeout):
        raise click.UsageError("--resume stands alone: its receipt says what is meant and what stays.")
    try:
        return await _delete(request, _Options(dry_run, yes, receipt_file or resume, resume, output, cluster))
    except OutputLost as lost:
        say(f"Error: The output could not be written: {lost}. Nothing was done.", err=True)
        return 1


class _Options(NamedTuple):
    dry_run: bool
    yes: bool
    receipt: Path | None
    resume: Path | None
    output: str
    cluster: ClusterChoice


async def _delete(request: TeardownRequest, options: _Options) -> int:
    from pilotage.cli.output.advice import with_advice
    from pilotage.teardown.session.endpoints import plan_endpoints
    from pilotage.teardown.session.preparation import plan
    from pilotage.teardown.session.resumption import resume

    def notify(said: str, command: str = "") -> None:
        note(f"{with_advice(said)} {options.cluster.complete(command)}".rstrip())

    endpoints = request.names_endpoints
    remembering = options.resume is None and not endpoints and request.repeatable
    async with options.cluster.session(remembering=remembering, changes=not options.dry_run) as session:
        resumed = None
        if options.resume is not None:
            resumed = await resume(session, options.resume, request.timeout)
            prepared = resumed.prepared
        else:
            if endpoints:
                way = await plan_endpoints(session, request, notify)
                if not isinstance(way, TeardownRequest):
                    prepared = way.prepared if way.has_leftovers else await plan(session, request)
                    code = _show(prepared, None, options)
                    return await _follow(way, prepared.ledger, options) if code is None else code
                request = way
            import_meanwhile(TEARDOWN)
            prepared = await plan(session, request)
        if not prepared.ledger.going and prepared.ledger.unread:
            raise NoAnswer(f"Nothing was found, but {unread_sentence(prepared)}")
        code = _show(prepared, resumed, options)
        return await _execute(session, prepared, options) if code is None else code


async def _execute(session: Session, prepared: Prepared, options: _Options) -> int:
    """Run a teardown to its end, and say how it ended. Returns the exit code."""
    import asyncio
    import gc

    from pilotage.cli.output.teardown import TeardownProgress, print_result, resume_command
    from pilotage.cli.signals import INTERRUPTED, stopping
    from pilotage.runtime.lazy_logger import silenced
    from pilotage.teardown.session.execution import Execution

    gc.freeze()  # from here on it may take a while; what there is by now stays to the end
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    execution = Execution(session, prepared, receipt=options.receipt)
    progress = TeardownProgress(execution, renderer(options.output, hint="Ctrl-C stops safely"))

    def tell(lost: OutputLost) -> None:
        note(f"The output cannot be written any more ({lost}). The delete continues; its receipt: {execution.path}")

    with stopping(execution), silenced(), output_may_be_lost(tell):
        try:
            result = await execution.run(progress)
        except asyncio.CancelledError:  # the second Ctrl-C
            resume = options.cluster.complete(resume_command(execution.path))
            say(f"Stopped at once. Resume with: {resume}", err=True)
            return INTERRUPTED
        progress.close()
        print_result(result, options.cluster.complete, options.output)
    if result.receipt.result == "complete":
        return 1 if result.unsaved else 0
    return INTERRUPTED if result.stopped else 1


async def _follow(operated: OperatorTeardown, planned: Ledger, options: _Options) -> int:
    """Ask the operator for the deletion of endpoints, as planned, and show how it goes. Returns the exit code."""
    from shlex import quote

    from pilotage.cli.output.teardown import TeardownProgress, print_endpoint_result
    from pilotage.cli.signals import INTERRUPTED, Interrupted, interruptible
    from pilotage.runtime.lazy_logger import silenced

    if options.receipt is not None and len(operated.teardowns) > 1:
        raise BadTarget("--receipt names one file, and each endpoint has a receipt of its own: name one endpoint.")
    codes = [0]

    def tell(lost: OutputLost) -> None:
        note(f"The output cannot be written any more ({lost}). The delete continues, and is waited for.")

    try:
        with interruptible(), silenced(), output_may_be_lost(tell):
            await operated.start()
            for each in operated.teardowns:
                hint = "Ctrl-C leaves it to the operator"
                progress = TeardownProgress(each.observed, renderer(options.output, hint=hint))
                result = await each.follow(progress, receipt=options.receipt)
                progress.close()
                codes.append(print_endpoint_result(result, planned, options.cluster.complete, options.output))
    except Interrupted:
        names = " ".join(quote(f"servingendpoint/{each.endpoint.meta.name}") for each in operated.teardowns)
        namespace = quote(operated.teardowns[0].endpoint.meta.namespace)
        again = options.cluster.complete(f"pilotage delete {names} -n {namespace}")
        say(f"Stopped waiting; the operator continues. Follow it with: {again}", err=True)
        return INTERRUPTED
    return max(codes)


def _show(prepared: Prepared, resumed: Resumed | None, options: _Options) -> int | None:
    """Show the plan and ask; an exit code if that is all."""
    asks = not options.yes and not options.dry_run and bool(prepared.ledger.going)
    if asks and not sys.stdin.isatty():
        raise click.UsageError(
            "This is not a terminal, so it cannot be confirmed here: add --yes, or --dry-run for the plan only."
        )
    if options.output in EVENT_FORMS:
        print_event(sys.stdout, options.output, {"event": "plan"} | _plan_to_json(prepared, resumed, options))
    elif options.output == "name" and options.dry_run:
        shown = prepared if resumed is None else resumed.left
        print_report("name", None, (entry.full_name for entry in shown.ledger.going))
    else:
        brief = options.yes and bool(prepared.ledger.going)
        say(*_plan_lines(prepared, resumed, options, brief=brief), err=asks or options.output == "name")
    if not prepared.ledger.going:
        return 1 if prepared.no_namespace else 0
    if options.dry_run:
        return exit_code(prepared)
    if asks and not click.confirm("Continue?", default=False, err=True):
        say("Nothing was done.", err=True)
        return 1
    return None


def _plan_to_json(prepared: Prepared, resumed: Resumed | None, options: _Options) -> dict[str, Any]:
    return plan_to_json(prepared, options.cluster.complete) | (resumed_to_json(resumed) if resumed is not None else {})


def _plan_lines(prepared: Prepared, resumed: Resumed | None, options: _Options, *, brief: bool) -> list[str]:
    """The plan; `brief`: as much of it as somebody wants to see who has said yes already."""
    lines = []
    if resumed is not None:
        lines = resumed_lines(resumed)
        prepared = resumed.left
    if not brief:
        return lines + plan_lines(prepared, options.cluster.complete)
    if resumed is not None:  # what goes was chosen by a file, and not by what was typed
        lines += rows(prepared.ledger.going)
    lines += absent_lines(prepared)
    lines += [headline(prepared)] if prepared.ledger.going else []
    return lines + [f"BLOCKS   {hazard.text}" for hazard in prepared.hazards if hazard.blocks]
