"""``pilotage version``: which Pilotage this is, and which API server it would talk to."""

import asyncio
import json

import click

from pilotage import __version__
from pilotage.cli.errors import one_sentence
from pilotage.cli.output.text import say


@click.command()
@click.option("--kubeconfig", metavar="FILE", help="The kubeconfig to use instead of $KUBECONFIG or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="The context to use instead of the current one.")
@click.option("--client", "client_only", is_flag=True, help="Do not ask the server.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@one_sentence
def version(kubeconfig: str | None, context: str | None, client_only: bool, output: str) -> None:
    """Print the version of Pilotage and of the API server.

    Succeeds only if the server answers, so it also tells whether the kubeconfig works. `--client` leaves that out.
    """
    versions = {"pilotage": __version__}
    if not client_only:
        versions |= asyncio.run(_ask(kubeconfig, context))
    if output == "json":
        click.echo(json.dumps(versions, indent=2))
    else:
        for name, value in versions.items():
            say(f"{name}: {value}")


async def _ask(kubeconfig: str | None, context: str | None) -> dict[str, str]:
    from pilotage.kube import Client, load_config

    config = load_config(kubeconfig=kubeconfig, context=context)
    async with Client.connect(config) as client:
        answer = json.loads(await client.get_path("/version"))
    return {"kubernetes": answer["gitVersion"], "server": config.server}
