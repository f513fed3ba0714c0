"""``pilotage up``: the whole system on this machine, without a cluster."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pilotage.cli.commands.harbor import require_harbor
from pilotage.cli.errors import plain_errors

if TYPE_CHECKING:
    from pilotage.up.components import UpOptions
    from pilotage.up.layout import Layout, UpState


def data_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--data``, as `data`: an absolute path."""
    return click.option(
        "--data",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        envvar="PILOTAGE_DATA",
        callback=lambda _, __, given: (given or _default()).absolute(),
        help="The data folder. [default: ~/.local/share/pilotage]",
    )(command)


def _default() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "pilotage"


@click.command()
@data_option
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="Where requests go.")
@click.option(
    "--api-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port of the API server. [default: the last one used, else a free one]",
)
@click.option(
    "--host-name", metavar="NAME", default="local", show_default=True, help="The name of the Host that this machine is."
)
@click.option(
    "--file-roots",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder below which file:// sources may be read; repeatable.",
)
@click.option("--llama-server", metavar="FILE", type=click.Path(path_type=Path, exists=True), help="Instead of PATH's.")
@click.option("--envoy", metavar="FILE", type=click.Path(path_type=Path, exists=True), help="Instead of PATH's.")
@click.option(
    "--allow-commands", is_flag=True, help="Run any command that an endpoint names; else presets with safe arguments."
)
@click.option("-d", "--detach", is_flag=True, help="Return when everything is ready, and leave it running.")
@click.option("--ready-fd", type=int, default=None, hidden=True)
@plain_errors
def up(
    *,
    data: Path,
    port: int,
    api_port: int,
    host_name: str,
    file_roots: tuple[Path, ...],
    llama_server: Path | None,
    envoy: Path | None,
    allow_commands: bool,
    detach: bool,
    ready_fd: int | None,
) -> None:
    """Run the whole system on this machine: API server, controllers, agent and gateway.

    It runs until Ctrl-C or `pilotage down`. Each component is a process of its own with its log in DIR/logs. Endpoints
    are kept, and serve again after the next `pilotage up`.
    """
    require_harbor()
    from pilotage.up.components import UpOptions

    roots = tuple(root.absolute() for root in file_roots)
    options = UpOptions(data, port, api_port, host_name, roots, llama_server, envoy, allow_commands=allow_commands)
    if detach:
        _in_background(options)
    else:
        _in_foreground(options, ready_fd)


def _in_foreground(options: UpOptions, ready_fd: int | None) -> None:
    """Run until it is told to end. `ready_fd` is where `_in_background` listens."""
    import asyncio

    from pilotage.up.leftovers import UpError

    try:
        asyncio.run(_run(options, ready_fd))
    except UpError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # such as a disk that is full; all parts have ended by now
        raise click.ClickException(f"{error}.") from error


async def _run(options: UpOptions, ready_fd: int | None) -> None:
    import asyncio

    from pilotage.runtime.process import on_signals
    from pilotage.up.components import unreachable
    from pilotage.up.supervisor import Supervisor

    if closed := unreachable(options):
        click.echo(f"Servers run as root: {closed} is closed to other users, and llama-server is below it.")

    def ready(state: UpState) -> None:
        _announce(supervisor.layout, state, options.host)
        if ready_fd is not None:
            with contextlib.suppress(BrokenPipeError), os.fdopen(ready_fd, "wb", buffering=0) as pipe:
                pipe.write(b"\n")  # whoever waited may have been interrupted: it stays up

    supervisor = Supervisor(options, click.echo)
    told = asyncio.Event()

    def end() -> None:
        if told.is_set():
            supervisor.hurry()
        told.set()

    with on_signals(end):
        await supervisor.run(told, ready)


def _in_background(options: UpOptions) -> None:
    """The same command again, without a terminal; its words go to a log until it is ready."""
    import subprocess
    import sys

    from pilotage.up.layout import Layout

    layout = Layout(options.folder)
    try:
        layout.make()
    except OSError as error:
        raise click.ClickException(f"{error}. Choose another --data.") from error
    log = layout.logs / "up.log"
    words = [word for word in sys.argv[1:] if word not in ("-d", "--detach")]
    with log.open("ab") as output:  # it may be that of another one, which runs
        begun = output.tell()
        reader, writer = os.pipe()
        try:
            child = subprocess.Popen(
                [sys.executable, "-m", "pilotage", *words, "--ready-fd", str(writer)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[writer],
                start_new_session=True,
            )
        finally:
            os.close(writer)  # now the child alone has it: if it ends, so does the pipe
    with os.fdopen(reader, "rb") as pipe:
        ready = pipe.read(1)
    state = layout.read_state() if ready else None
    if state is not None:
        _announce(layout, state, options.host)
        return
    child.wait()
    lines = log.read_bytes()[begun:].decode(errors="replace").strip().splitlines()
    raise click.ClickException(lines[-1].removeprefix("Error: ") if lines else f"it ended with {child.returncode}.")


def _announce(layout: Layout, state: UpState, host: str) -> None:
    click.echo("\nPilotage is up.")
    click.echo(f"  requests    {state.gateway}/v1")
    click.echo(f"  kubectl     export KUBECONFIG={layout.kubeconfig}")
    click.echo(f"  logs        {layout.logs}")
    click.echo(f"  deploy      pilotage deploy NAME --model SOURCE --on {host} --route PilotageGateway")
    click.echo("  take down   pilotage down\n")
