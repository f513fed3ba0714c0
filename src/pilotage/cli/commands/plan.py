"""``pilotage plan``: what a delete would take, in which order, and what would stand in its way. Changes nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from pilotage.cli.connection import connected, run_briefly
from pilotage.cli.errors import NoAnswer, plain_errors
from pilotage.cli.options import cluster_options, output_option, target_options
from pilotage.cli.output.plan import exit_code, plan_lines, plan_to_json, unread_sentence
from pilotage.cli.output.text import say
from pilotage.cli.preload import TEARDOWN, import_meanwhile
from pilotage.teardown.session.request import TeardownRequest

if TYPE_CHECKING:
    from pathlib import Path

    from pilotage.teardown.session.preparation import Prepared


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
    """Show what `pilotage delete` would do, and what would block it. Changes nothing.

    \b
    pilotage plan deployment/web service/web -n shop
    pilotage plan -f manifests/ --keep volumes
    pilotage plan -n shop -o json

    Exit codes: 0 no blocker is predicted, 1 one is, or not all that is meant could be read, 2 bad usage, 3 the API
    could not be read.
    """
    if namespace and not (words or everything or files or selector):
        everything = True  # a namespace alone means all that is in it: nothing is changed by looking
    request = TeardownRequest(words, namespace, everything, files, selector, keep, adopt)
    request.check()
    prepared = run_briefly(_plan(request, kubeconfig, context))
    unclear = not prepared.ledger.going and bool(prepared.ledger.unread)
    if output == "json":
        import json

        click.echo(json.dumps(plan_to_json(prepared), indent=2))
    elif not unclear:
        say(*plan_lines(prepared))
    if unclear:
        raise NoAnswer(f"Nothing was found, but {unread_sentence(prepared.ledger)}")
    sys.exit(exit_code(prepared))


async def _plan(request: TeardownRequest, kubeconfig: str | None, context: str | None) -> Prepared:
    from pilotage.teardown.session.preparation import plan as prepare

    async with connected(kubeconfig, context, remembering=request.repeatable) as session:
        import_meanwhile(TEARDOWN)
        return await prepare(session, request)
