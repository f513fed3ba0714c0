"""``pilotage up``: the whole system on this machine, without a cluster."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pilotage.cli.commands.harbor import require_harbor
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import output_option
from pilotage.cli.output.objects import print_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.teardown.snapshot.world import Name
    from pilotage.up.layout import Layout, UpState
    from pilotage.up.settings import UpOptions

UNIT = """\
[Unit]
Description=Pilotage on one machine
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
Environment={path}
ExecStart={command}
Restart=on-failure
RestartSec=5
# The supervisor gets the signal, and stops model servers first: each of four components may take two minutes.
KillMode=mixed
TimeoutStopSec=500

[Install]
WantedBy={target}
"""


def data_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--data``, as `data`: an absolute path."""
    return click.option(
        "--data",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        callback=lambda _, __, given: given.absolute() if given else _default(),
        help="The data folder. [default: $PILOTAGE_DATA, else ~/.local/share/pilotage]",
    )(command)


def _default() -> Path:
    from pilotage.up.layout import default_folder

    return default_folder()


_PROGRAM = click.Path(exists=True, dir_okay=False)


@click.command()
@data_option
@click.option("--port", type=click.IntRange(1, 65535), help="Where requests go. [default: 8080]")
@click.option(
    "--api-port",
    type=click.IntRange(0, 65535),
    help="The port of the API server. [default: the last one used, else a free one]",
)
@click.option("--host-name", "host", metavar="NAME", help="The name of the Host that this machine is. [default: local]")
@click.option(
    "--file-roots",
    metavar="DIR",
    multiple=True,
    type=click.Path(file_okay=False, exists=True),
    help="A folder below which file:// sources may be read; repeatable.",
)
@click.option("--llama-server", metavar="FILE", type=_PROGRAM, help="Instead of PATH's.")
@click.option("--envoy", metavar="FILE", type=_PROGRAM, help="Instead of PATH's.")
@click.option(
    "--allow-commands/--no-allow-commands",
    default=None,
    help="Run any command that an endpoint names; else presets with safe arguments.",
)
@click.option("-d", "--detach", is_flag=True, help="Return when everything is ready, and leave it running.")
@click.option("--status", is_flag=True, help="Only say whether it is up, and where. Exit code 1 if it is not.")
@click.option("--systemd", is_flag=True, help="Only print a systemd unit that runs it with these options.")
@output_option("the Host that this machine is")
@click.option("--ready-fd", type=int, default=None, hidden=True)
@plain_errors
def up(
    *, data: Path, detach: bool, status: bool, systemd: bool, output: str, ready_fd: int | None, **options: object
) -> None:
    """Run the whole system on this machine: API server, controllers, agent and gateway.

    It runs until Ctrl-C or `pilotage down`. Each component is a process of its own with its log in DIR/logs. Endpoints
    are kept, and serve again after the next `pilotage up`. So are the options from --port to --allow-commands: one that
    is given replaces what was kept. Where it is up already with these options, it says so and ends with exit code 0.
    """
    require_harbor()
    from pilotage.up.layout import Layout

    given = {name: _absolute(name, value) for name, value in options.items() if value not in (None, ())}
    layout = Layout(data)
    if systemd:
        _print_unit(layout, given)
    elif status:
        _print_status(layout, output)
    elif (state := layout.running()) is not None:
        _check_same(layout, state, given)
        _announce(layout, state, output)
    else:
        _bring_up(layout, given, detach, output, ready_fd)


def _absolute(name: str, value: Any) -> Any:  # noqa: ANN401 - what click parsed
    if name == "file_roots":
        return tuple(str(Path(each).absolute()) for each in value)
    return str(Path(value).absolute()) if name in ("llama_server", "envoy") else value


def _bring_up(layout: Layout, given: Mapping[str, Any], detach: bool, output: str, ready_fd: int | None) -> None:
    from pilotage.up.settings import UpOptions, flags

    known = _remembered(layout)
    if taken := {name: value for name, value in known.items() if name not in given}:
        click.echo(f"As the last time: {shlex.join(flags(taken))}", err=output != "text")
    if detach:
        _in_background(layout, given, output)
    else:
        _in_foreground(UpOptions(layout.folder, **{**known, **given}), output, ready_fd)


def _remembered(layout: Layout) -> dict[str, Any]:
    from pilotage.up.settings import remembered

    try:
        return remembered(layout)
    except OSError as error:
        raise click.ClickException(f"{error}.") from error


def _in_foreground(options: UpOptions, output: str, ready_fd: int | None) -> None:
    """Run until it is told to end. `ready_fd` is where `_in_background` listens."""
    import asyncio

    from pilotage.up.leftovers import UpError

    try:
        asyncio.run(_run(options, output, ready_fd))
    except UpError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # such as a disk that is full; all parts have ended by now
        raise click.ClickException(f"{error}.") from error


async def _run(options: UpOptions, output: str, ready_fd: int | None) -> None:
    import asyncio
    import functools

    from pilotage.runtime.process import on_signals
    from pilotage.up.components import unreachable
    from pilotage.up.supervisor import Supervisor

    say = functools.partial(click.echo, err=output != "text")
    if closed := unreachable(options):
        say(f"Servers run as root: {closed} is closed to other users, and llama-server is below it.")

    def ready(state: UpState) -> None:
        _announce(supervisor.layout, state, output)
        if ready_fd is not None:
            with contextlib.suppress(BrokenPipeError), os.fdopen(ready_fd, "wb", buffering=0) as pipe:
                pipe.write(b"\n")  # whoever waited may have been interrupted: it stays up

    supervisor = Supervisor(options, say)
    told = asyncio.Event()

    def end() -> None:
        if told.is_set():
            supervisor.hurry()
        told.set()

    with on_signals(end):
        await supervisor.run(told, ready)


def _in_background(layout: Layout, given: Mapping[str, Any], output: str) -> None:
    """The same command again, without a terminal; its words go to a log until it is ready."""
    import subprocess

    try:
        layout.make()
    except OSError as error:
        raise click.ClickException(f"{error}. Choose another --data.") from error
    log = layout.supervisor_log
    with log.open("ab") as words:  # it may be that of another one, which runs
        begun = words.tell()
        reader, writer = os.pipe()
        try:
            child = subprocess.Popen(
                [*_command(layout, given), "--ready-fd", str(writer)],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                pass_fds=[writer],
                start_new_session=True,
            )
        finally:
            os.close(writer)  # now the child alone has it: if it ends, so does the pipe
    with os.fdopen(reader, "rb") as pipe:
        ready = pipe.read(1)
    state = layout.read_state() if ready else None
    if state is not None:
        _announce(layout, state, output)
        return
    child.wait()
    lines = log.read_bytes()[begun:].decode(errors="replace").strip().splitlines()
    raise click.ClickException(lines[-1].removeprefix("Error: ") if lines else f"it ended with {child.returncode}.")


def _command(layout: Layout, given: Mapping[str, Any]) -> list[str]:
    """The words that bring it up in the foreground."""
    from pilotage.up.settings import flags

    return [sys.executable, "-m", "pilotage", "up", "--data", str(layout.folder), *flags(given)]


def _check_same(layout: Layout, state: UpState, given: Mapping[str, Any]) -> None:
    """Refuse options that differ from those of what runs."""
    from pilotage.up.components import HARBOR
    from pilotage.up.settings import UpOptions, flags

    if not state.ready:
        raise click.ClickException(f"{layout.folder} is being brought up. Try again in a moment.")
    running = UpOptions(layout.folder, **{**_remembered(layout), "api_port": state.ports.get(HARBOR, 0)})
    other = {name: value for name, value in given.items() if value != getattr(running, name)}
    if other:
        has = flags({name: getattr(running, name) for name in other}) or ["none of them"]
        wanted, data = shlex.join(flags(other)), layout.option
        raise click.ClickException(
            f"{layout.folder} is up already with {shlex.join(has)}. "
            f"Change it with: pilotage down{data} && pilotage up -d{data} {wanted}"
        )


def _print_status(layout: Layout, output: str) -> None:
    state = layout.running()
    if state is not None:
        _announce(layout, state, output)
    elif output != "text":
        print_report(output, {"data": str(layout.folder), "up": False}, ())
    else:
        click.echo(f"Nothing is up in {layout.folder}. Bring it up with: pilotage up -d{layout.option}")
    if state is None:
        sys.exit(1)


def _announce(layout: Layout, state: UpState, output: str) -> None:
    from pilotage.processes.identity import is_running

    running = {name: is_running(process) for name, process in state.components.items()}
    if output != "text":
        components = {name: {"pid": each.pid, "running": running[name]} for name, each in state.components.items()}
        told = {
            "data": str(layout.folder),
            "up": True,
            "ready": state.ready,
            "requests": f"{state.gateway}/v1",
            "kubeconfig": str(layout.kubeconfig),
            "logs": str(layout.logs),
            "settings": _remembered(layout),
            "components": components,
        }
        print_report(output, told, [host_of(layout)])
        return
    click.echo("\nPilotage is up." if state.ready else "\nPilotage is being brought up.")
    click.echo(f"  requests    {state.gateway}/v1")
    click.echo(f"  kubectl     export KUBECONFIG={shlex.quote(str(layout.kubeconfig))}")
    click.echo(f"  logs        {layout.logs}")
    click.echo("  deploy      pilotage deploy NAME --model SOURCE")
    click.echo(f"  take down   pilotage down{layout.option}\n")
    for name in (name for name, runs in running.items() if not runs):
        click.echo(f"{name} does not run, and is restarted: {layout.logs / name}.log says why it ended.")


def host_of(layout: Layout) -> Name:
    """The Host that this machine is, with the settings of its folder."""
    from pilotage.api.names import HOSTS
    from pilotage.teardown.snapshot.world import Name
    from pilotage.up.settings import UpOptions

    return Name(HOSTS.group, HOSTS.kind, "", UpOptions(layout.folder, **_remembered(layout)).host)


def _print_unit(layout: Layout, given: Mapping[str, Any]) -> None:
    """A unit for the user who asks. PATH is kept: programs are looked for there."""
    command = " ".join(_in_unit(word).replace("$", "$$") for word in _command(layout, given))
    path = _in_unit(f"PATH={os.environ.get('PATH', os.defpath)}")
    root = os.geteuid() == 0
    click.echo(
        UNIT.format(path=path, command=command, target="multi-user.target" if root else "default.target"), nl=False
    )
    place, user = ("/etc/systemd/system", "") if root else ("~/.config/systemd/user", " --user")
    click.echo(
        f"Save it as {place}/pilotage.service, then: systemctl{user} daemon-reload && "
        f"systemctl{user} enable --now pilotage" + ("" if root else "; to run without a login: loginctl enable-linger"),
        err=True,
    )


def _in_unit(word: str) -> str:
    """A word of a unit: quoted, and without a meaning as a specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{escaped}"'
