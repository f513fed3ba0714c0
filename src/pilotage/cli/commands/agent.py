"""``pilotage agent``: runs servers on this machine, against a cluster or harbor, until SIGTERM."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, weights_options

if TYPE_CHECKING:
    from pilotage.agent.settings import AgentSettings
    from pilotage.cli.connection import ClusterChoice


@click.command()
@cluster_options
@click.option("--config", metavar="FILE", type=click.Path(path_type=Path), help="Settings, as YAML.")
@click.option("--name", metavar="NAME", help="The name of this machine's Host. [default: the machine's]")
@click.option(
    "--address",
    metavar="IP",
    help="The address at which others reach the servers. [default: the one used to reach the API server]",
)
@click.option("--bind", metavar="IP", help="The address that the servers listen on. [default: 127.0.0.1]")
@click.option("--labels", metavar="KEY=VALUE", multiple=True, help="Labels of the Host, for placements; repeatable.")
@click.option(
    "--data",
    metavar="DIR",
    help="The folder of the journal and the logs of servers. [default: ~/.local/state/pilotage/agent]",
)
@weights_options("Whether buckets may be read with the agent's own identity.")
@click.option(
    "--llama-server", metavar="FILE", help="Instead of the one on PATH, or that of the extra pilotage[llama]."
)
@click.option(
    "--allow-commands/--no-allow-commands",
    default=None,
    help="Whether specs may name any command, argument and variable. Everyone who may place a process can then run "
    "any program on this machine. [default: presets only, with arguments that are known to be safe]",
)
@click.option(
    "--run-as",
    metavar="USER",
    help="Where the agent is root, servers run as this user, by name or number. [default: 65533, a user of its own]",
)
@click.option("--namespaces", metavar="NAME", multiple=True, help="Only its processes run here; repeatable.")
@click.option("--reserved-ports", metavar="PORT", type=int, multiple=True, help="No server gets it; repeatable.")
@click.option(
    "--priority-max",
    metavar="N",
    type=int,
    help="When memory runs out, a greater priority of a spec counts as N. [default: 0]",
)
@click.option(
    "--allow-protected/--no-allow-protected",
    default=None,
    help="Whether specs may say that a server is never stopped when memory runs out.",
)
@click.option(
    "--metrics-address",
    metavar="HOST:PORT",
    help="Where /metrics, /healthz and /readyz are served; empty for nowhere. [default: 127.0.0.1:8082]",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]")
@plain_errors
def agent(cluster: ClusterChoice, config: Path | None, **given: object) -> None:
    """Run the servers that are placed on this machine until SIGTERM.

    Every option is also a variable (PILOTAGE_AGENT_FILE_ROOTS) and a line of the file (fileRoots); a flag wins over a
    variable, and that over the file.

    At SIGTERM all servers are withdrawn, finish their requests, stop, and are unregistered. A second SIGTERM does
    not wait for requests. Exit code 0: all of that is proven. 4: the same, after a second SIGTERM. 3: something could
    not be proven; the next start continues with it.
    """
    import asyncio

    from pilotage.agent.host import AnotherAgent
    from pilotage.agent.journal import JournalError
    from pilotage.agent.settings import load_settings
    from pilotage.runtime.logs import configure_logging

    flags = {name: value for name, value in given.items() if value is not None and value != ()}
    settings = load_settings(flags, file=config)
    configure_logging(level=settings.log_level)
    try:
        code = asyncio.run(_run(settings, cluster))
    except (JournalError, AnotherAgent) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error}. Choose another --metrics-address.") from error
    sys.exit(code)


async def _run(settings: AgentSettings, cluster: ClusterChoice) -> int:
    from pilotage.agent.run import run

    async with cluster.session(name="pilotage-agent") as session:
        return int(await run(settings, session.client, session.server))
