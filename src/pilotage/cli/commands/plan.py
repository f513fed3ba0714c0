"""``pilotage plan``: what a delete would take, in which order, and what would stand in its way. Changes nothing."""

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import NoAnswer, plain_errors
from pilotage.cli.options import cluster_options, output_option, target_options, with_endpoint_kind
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.plan import exit_code, plan_lines, plan_to_json, unread_sentence
from pilotage.cli.output.text import say
from pilotage.cli.preload import TEARDOWN, import_meanwhile
from pilotage.teardown.session.request import TeardownRequest


@click.command()
@target_options
@cluster_options
@output_option("each object that would be deleted")
@plain_errors
@asynchronous
async def plan(request: TeardownRequest, cluster: ClusterChoice, output: str) -> int:
    """Show what `pilotage delete` would do, and what would block it. Changes nothing.

    \b
    pilotage plan deployment/web service/web -n shop
    pilotage plan -f manifests/ --keep volumes
    pilotage plan -n shop -o json

    Exit codes: 0 no blocker is predicted, 1 one is, or not all that is meant could be read, 2 bad usage, 3 the API
    could not be read.
    """
    if request.namespace and not (request.words or request.files or request.selector):
        request = request._replace(everything=True)  # a namespace alone means all in it: looking changes nothing
    request.check()
    if not request.selector:
        request = request._replace(words=await with_endpoint_kind(cluster, request.words, request.namespace))
    from pilotage.teardown.session.preparation import plan as prepare

    async with cluster.session(remembering=request.repeatable) as session:
        import_meanwhile(TEARDOWN)
        prepared = await prepare(session, request)
    unclear = not prepared.ledger.going and bool(prepared.ledger.unread)
    if output != "text":
        names = (entry.full_name for entry in prepared.ledger.going)
        print_report(output, plan_to_json(prepared, cluster.complete), names)
    elif not unclear:
        say(*plan_lines(prepared, cluster.complete))
    if unclear:
        raise NoAnswer(f"Nothing was found, but {unread_sentence(prepared)}")
    return exit_code(prepared)
